"""Into the queue and out of it."""

from dataclasses import replace

import pytest

from harness.facts import admitted, facts, kinds, later, message, queued, reason, step, written
from harness.simulation import START, make_class, make_task
from sandyard_api.task import SandboxTask
from sandyard_operator.decide.facts import Place
from sandyard_operator.decide.judge import NeedsInputs
from sandyard_operator.decide.plan import Plan, ReadInputs, ReadNamespace, StatusStep
from sandyard_operator.decide.reconcile import reconcile

NOW = later(0)


def place(**changes: int) -> Place:
    known = {"admitted": 4, "waiting_before": 0, "waiting_taken": 0, "placed_before": 4}
    return Place(**(known | changes), quota_before=False)


def test_a_task_with_a_place_is_admitted_by_one_write() -> None:
    plan = reconcile(facts(), NOW)
    assert step(plan) is StatusStep.ADMITTED
    status = written(plan)
    assert status["phase"] == "Starting"
    assert {c["type"]: (c["status"], c["reason"]) for c in status["conditions"]} == {
        "Accepted": ("True", "Accepted"),
        "Scheduled": ("False", "Starting"),
    }
    assert status["classGeneration"] == 1
    assert status["observedGeneration"] == 1


def test_one_that_comes_first_is_admitted_first() -> None:
    assert step(reconcile(facts(place=place(admitted=3, waiting_before=1)), NOW)) is StatusStep.QUEUED
    assert step(reconcile(facts(place=place(admitted=3)), NOW)) is StatusStep.ADMITTED


def test_a_task_without_a_place_is_queued() -> None:
    status = written(reconcile(facts(place=place()), NOW))
    assert status["phase"] == "Queued"
    assert "4 places" in status["message"]


@pytest.mark.parametrize(("taken", "end"), [(9, None), (10, "QueueFull")])
def test_the_eleventh_to_wait_is_refused(taken: int, end: str | None) -> None:
    plan = reconcile(facts(place=place(waiting_taken=taken)), NOW)
    if end is None:
        assert step(plan) is StatusStep.QUEUED
    else:
        assert reason(plan) == end


@pytest.mark.parametrize(("taken", "full"), [(13, False), (14, True)])
def test_of_fifteen_at_once_the_fifteenth_is_refused(taken: int, *, full: bool) -> None:
    plan = reconcile(facts(place=place(admitted=0, waiting_before=taken, waiting_taken=taken)), NOW)
    assert (step(plan) is StatusStep.FINAL) is full


def test_a_class_that_shrank_has_no_place_rather_than_less_than_none() -> None:
    plan = reconcile(facts(place=place(admitted=9, waiting_taken=9)), NOW)
    assert step(plan) is StatusStep.QUEUED


def test_a_queued_task_waits_without_an_end() -> None:
    assert reconcile(queued(), NOW) == Plan()


def test_a_queued_task_is_never_refused_as_one_too_many() -> None:
    assert reconcile(queued(place=place(waiting_taken=50)), NOW) == Plan()


def test_a_queued_task_is_admitted_when_a_place_is_free() -> None:
    assert step(reconcile(queued(place=place(admitted=3)), NOW)) is StatusStep.ADMITTED


def test_how_long_it_waited_is_written_at_admission() -> None:
    waited = reconcile(queued(place=place(admitted=0)), later(0))
    assert written(waited)["timings"]["queueMilliseconds"] == 30_000


def test_waiting_too_long_ends_the_task() -> None:
    task = make_task(queueTimeoutSeconds=40)
    assert reconcile(queued(task), NOW).due == later(10)
    assert reason(reconcile(queued(task), later(10))) == "QueueTimeout"


def test_a_queued_task_needs_no_inputs_until_it_has_a_place() -> None:
    task = make_task(codeFrom={"configMapKeyRef": {"name": "c", "key": "k"}})
    parked = replace(queued(), task=replace_spec(queued().task, task), verdict=NeedsInputs())
    assert reconcile(parked, NOW) == Plan()
    with_place = replace(parked, place=place(admitted=0))
    assert kinds(reconcile(with_place, NOW)) == [ReadInputs]


def replace_spec(task: SandboxTask, other: SandboxTask) -> SandboxTask:
    return task.model_copy(update={"spec": other.spec})


def test_a_fresh_task_reads_its_inputs_first() -> None:
    task = make_task(codeFrom={"configMapKeyRef": {"name": "c", "key": "k"}})
    assert kinds(reconcile(facts(task, place=place()), NOW)) == [ReadInputs]


def test_a_task_of_a_class_for_some_namespaces_reads_its_namespace_first() -> None:
    sandbox_class = make_class(allowedNamespaces={"matchLabels": {"team": "a"}})
    assert kinds(reconcile(facts(sandbox_class=sandbox_class), NOW)) == [ReadNamespace]
    assert kinds(reconcile(admitted(sandbox_class=sandbox_class), NOW)) == [ReadNamespace]


def test_what_is_refused_before_it_was_accepted_says_so() -> None:
    plan = reconcile(facts(make_task(code="# /// script\n")), NOW)
    assert reason(plan) == "InvalidScript"
    conditions = {c["type"]: c["status"] for c in written(plan)["conditions"]}
    assert conditions == {"Accepted": "False", "Finished": "True", "Succeeded": "False"}
    assert "did not run" in message(plan)


def test_a_task_created_cancelled_ends_before_anything_else() -> None:
    plan = reconcile(facts(make_task(cancel=True)), START)
    assert reason(plan) == "Cancelled"
    assert written(plan)["phase"] == "Cancelled"


def test_a_queued_task_whose_class_went_ends() -> None:
    plan = reconcile(queued(sandbox_class=None), NOW)
    assert reason(plan) == "ClassNotFound"
    assert {c["type"]: c["status"] for c in written(plan)["conditions"]}["Accepted"] == "True"
