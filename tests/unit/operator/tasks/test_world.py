"""The cluster as last seen: who is concerned by a change, and what is kept of what is over."""

import pytest

from harness.facts import NOW, claimed, pod, run_status, stored, view
from harness.simulated_agents import SUCCESS
from harness.simulation import make_class, make_task
from sandyard_api.wire import RunPhase
from sandyard_operator.decide.reconcile import reconcile
from sandyard_operator.decide.standing import Standing, standing_of
from sandyard_operator.ports import Change, Key, ObjectKind
from sandyard_operator.tasks.places import key_of
from sandyard_operator.tasks.world import World


class Witness:
    """A world, and whom it said to be concerned."""

    def __init__(self) -> None:
        self.concerned: list[Key] = []
        self.gone: list[str] = []
        self.world = World(self.concerned.append, lambda _, one: self.gone.append(one.uid))

    def see(self, kind: ObjectKind, value: object, *, gone: bool = False) -> list[Key]:
        self.concerned.clear()
        self.world.take(Change(kind=kind, value=value, gone=gone))  # type: ignore[arg-type]
        return list(self.concerned)


def test_a_task_is_concerned_by_its_own_changes() -> None:
    witness, task = Witness(), make_task()
    assert witness.see(ObjectKind.TASK, task) == [key_of(task)]
    assert key_of(task) in witness.see(ObjectKind.TASK, task, gone=True)
    assert witness.world.task(key_of(task)) is None
    assert witness.world.every_key() == ()


def test_a_pod_concerns_its_task_once_that_is_known() -> None:
    witness, task = Witness(), make_task()
    assert witness.see(ObjectKind.POD, pod()) == []
    witness.see(ObjectKind.TASK, task)
    assert witness.see(ObjectKind.POD, pod(resource_version="8")) == [key_of(task)]
    assert key_of(task) in witness.see(ObjectKind.POD, pod(), gone=True)
    assert witness.gone == [pod().uid]
    assert witness.world.pods_of("uid-t") == ()


def test_a_pod_that_is_not_ours_concerns_nobody() -> None:
    witness = Witness()
    witness.see(ObjectKind.TASK, make_task())
    assert witness.see(ObjectKind.POD, pod(signed=False)) == []
    assert witness.see(ObjectKind.POD, pod(signed=False), gone=True) == []


def test_a_pod_that_somebody_changed_is_followed_to_its_end() -> None:
    witness = Witness()
    witness.see(ObjectKind.TASK, make_task())
    witness.see(ObjectKind.POD, pod())
    assert witness.see(ObjectKind.POD, pod(signed=False, resource_version="8"))
    assert [one.signed for one in witness.world.pods_of("uid-t")] == [False]
    witness.see(ObjectKind.POD, pod(signed=False), gone=True)
    assert witness.world.pods_of("uid-t") == ()


def test_a_class_concerns_those_that_are_not_finished() -> None:
    witness, task = Witness(), make_task()
    witness.see(ObjectKind.TASK, task)
    assert witness.see(ObjectKind.CLASS, make_class()) == [key_of(task)]
    assert witness.see(ObjectKind.CLASS, make_class("other")) == []
    assert witness.see(ObjectKind.CLASS, make_class(), gone=True) == [key_of(task)]


@pytest.mark.parametrize("version", ["7", "odd"])
def test_versions_that_are_no_numbers_are_taken_as_they_come(version: str) -> None:
    witness = Witness()
    witness.see(ObjectKind.POD, pod(resource_version=version))
    assert witness.world.pods.get(("ns", pod().name)) is not None


def test_of_what_is_over_little_is_kept() -> None:
    witness = Witness()
    done = claimed(heard=view(run=run_status(RunPhase.FINISHED, SUCCESS)))
    over = stored(done, reconcile(done, NOW))
    witness.see(ObjectKind.TASK, over)
    kept = witness.world.task(key_of(over))
    assert kept is not None
    assert kept.status is not None
    assert over.status is not None
    assert standing_of(kept) is Standing.FINISHED
    assert (kept.status.run, kept.status.completion_time) == (over.status.run, over.status.completion_time)
    assert kept.spec.code is None
    assert kept.status.result is None
    assert witness.world.phases == {"Succeeded": 1}
    witness.see(ObjectKind.TASK, over, gone=True)
    assert witness.world.phases["Succeeded"] == 0  # type: ignore[index]
