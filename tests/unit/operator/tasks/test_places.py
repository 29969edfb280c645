"""Who holds a place and who waits, by order and by what is being written."""

from datetime import timedelta
from typing import Any

from harness.simulation import START, make_task
from sandyard_api.conditions import Condition, ConditionStatus
from sandyard_api.task import SandboxTask
from sandyard_api.task_status import Run, TaskStatus
from sandyard_operator.decide.facts import Place
from sandyard_operator.tasks.places import Places, bucket_of, key_of

BUCKET = ("ns", "default")


def standing(task: SandboxTask, reason: str, **status: Any) -> SandboxTask:
    scheduled = Condition(
        type="Scheduled", status=ConditionStatus.FALSE, reason=reason, message="", last_transition_time=START
    )
    return task.model_copy(update={"status": TaskStatus(conditions=(scheduled,), **status)})


def finished(task: SandboxTask) -> SandboxTask:
    end = Condition(
        type="Finished", status=ConditionStatus.TRUE, reason="Succeeded", message="", last_transition_time=START
    )
    return task.model_copy(update={"status": TaskStatus(conditions=(end,))})


def aged(name: str, seconds: int, **spec: Any) -> SandboxTask:
    return make_task(name, created=START + timedelta(seconds=seconds), **spec)


def with_tasks(*tasks: SandboxTask, pods: frozenset[str] = frozenset()) -> Places:
    places = Places(has_pod=lambda uid: uid in pods)
    for task in tasks:
        places.change(None, task)
    return places


def test_order_is_by_age_then_uid() -> None:
    first, second, third = aged("b", 0), aged("a", 1), aged("c", 1)
    places = with_tasks(third, first, second)
    assert places.first_waiting(BUCKET, 9) == tuple(key_of(t) for t in (first, second, third))
    assert [places.of(t).waiting_before for t in (first, second, third)] == [0, 1, 2]


def test_those_accepted_count_for_whoever_comes_later_with_an_earlier_uid() -> None:
    queued, late = standing(aged("z", 0), "Queued"), aged("a", 0)
    places = with_tasks(queued, late)
    assert places.of(late) == Place(admitted=0, waiting_before=0, waiting_taken=1, placed_before=0, quota_before=False)
    assert places.of(queued).waiting_before == 1
    assert places.of(queued).waiting_taken == 1


def test_holders_are_counted_but_not_oneself() -> None:
    one, two = standing(aged("a", 0), "Starting"), standing(aged("b", 1), "Starting")
    places = with_tasks(one, two)
    assert places.admitted(BUCKET) == 2
    assert places.of(one).admitted == 1
    assert (places.of(one).placed_before, places.of(two).placed_before) == (0, 1)


def test_one_with_a_pod_or_a_claim_comes_before_an_older_one_without() -> None:
    older, with_pod = standing(aged("a", 0), "Starting"), standing(aged("b", 1), "Starting")
    run = Run(pod_name="p", pod_uid="u", attempt=1, run_id="r", input_digest="d")
    claimed = standing(aged("c", 2), "PodReady", run=run)
    places = with_tasks(older, with_pod, claimed, pods=frozenset({"uid-b"}))
    assert places.of(older).placed_before == 2
    assert list(places.held_up("ns")) == [key_of(older), key_of(claimed)]


def test_an_older_one_that_waits_for_quota_is_seen() -> None:
    waits, other = standing(aged("a", 0), "QuotaExceeded"), standing(aged("b", 1), "Starting")
    places = with_tasks(waits, other)
    assert places.of(other).quota_before
    assert not places.of(waits).quota_before


def test_a_place_that_is_being_written_is_taken() -> None:
    one, two = aged("a", 0), aged("b", 1)
    places = with_tasks(one, two)
    places.reserve(one)
    assert places.of(two).admitted == 1
    assert places.first_waiting(BUCKET, 9) == (key_of(two),)


def test_a_place_stays_taken_while_events_come_in_between() -> None:
    one = aged("a", 0)
    places = with_tasks(one)
    places.reserve(one)
    places.change(one, one)
    assert places.admitted(BUCKET) == 1


def test_a_write_that_failed_gives_the_place_back() -> None:
    one = aged("a", 0)
    places = with_tasks(one)
    places.reserve(one)
    places.settle(one, one)
    assert places.admitted(BUCKET) == 0
    assert places.first_waiting(BUCKET, 9) == (key_of(one),)


def test_a_write_that_arrived_keeps_it_and_is_settled_once() -> None:
    one, admitted = aged("a", 0), standing(aged("a", 0), "Starting")
    places = with_tasks(one)
    places.reserve(one)
    places.change(one, admitted)
    places.settle(one, admitted)
    places.settle(one, admitted)
    assert places.admitted(BUCKET) == 1


def test_a_task_that_went_while_it_was_written_leaves_nothing() -> None:
    one = aged("a", 0)
    places = with_tasks(one)
    places.reserve(one)
    places.change(one, None)
    places.settle(one, None)
    assert not places._reserved  # noqa: SLF001 - growth is what is tested
    assert places.admitted(BUCKET) == 0
    assert places.first_waiting(BUCKET, 9) == ()


def test_a_finished_task_holds_nothing() -> None:
    one = standing(aged("a", 0), "Starting")
    places = with_tasks(one)
    places.change(one, finished(one))
    assert places.admitted(BUCKET) == 0
    places.change(finished(one), None)
    assert list(places.unfinished("default")) == []


def test_classes_and_namespaces_have_places_of_their_own() -> None:
    here, other = standing(aged("a", 0), "Starting"), aged("b", 0, sandboxClassName="gpu")
    there = make_task("c", namespace="elsewhere")
    places = with_tasks(here, other, there)
    assert places.of(other).admitted == 0
    assert places.of(there).admitted == 0
    assert bucket_of(there) == ("elsewhere", "default")
    assert list(places.unfinished("default")) == [key_of(here), key_of(there)]
    assert list(places.held_up("nowhere")) == []
    assert places.first_waiting(("nowhere", "default"), 1) == ()
    assert places.admitted(("nowhere", "default")) == 0
