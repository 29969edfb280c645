"""Facts for decisions, one change away from a task that goes well."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from harness.simulation import DIGEST, START, make_class, make_task
from sandyard_api.names import NETWORK_CLOSED
from sandyard_api.task import SandboxTask
from sandyard_api.wire import (
    AgentStatus,
    Isolation,
    RequirementsReply,
    RunPhase,
    RunResult,
    RunStatus,
    SupervisorPhase,
)
from sandyard_operator.decide.facts import AgentView, Observed, Place
from sandyard_operator.decide.judge import judge
from sandyard_operator.decide.plan import Action, Plan, StatusStep, WriteStatus
from sandyard_operator.decide.pod import ContainerView, PodPhase, PodView, pod_name
from sandyard_operator.decide.reconcile import reconcile

NOW = START + timedelta(seconds=30)
ALONE = Place(admitted=0, waiting_before=0, waiting_taken=0, placed_before=0, quota_before=False)
DEPENDENT = '# /// script\n# dependencies = ["six==1.17.0"]\n# ///\nimport six\n'
DIGEST_OF_INPUTS = "d" * 64
POD_UID = "pod-uid"
RUN_ID = "uid-t-1"


def later(seconds: float) -> datetime:
    """Return a moment after NOW."""
    return NOW + timedelta(seconds=seconds)


def facts(task: SandboxTask | None = None, **changes: Any) -> Observed:
    """Return what is known of a fresh task in an empty cluster."""
    task = task or make_task()
    sandbox_class = changes.pop("sandbox_class", make_class(index={"url": "http://index.test/simple/"}))
    inputs = changes.pop("inputs", None)
    verdict = judge(task, sandbox_class, labels=None, inputs=inputs)
    known: dict[str, Any] = {
        "sandbox_class": sandbox_class,
        "verdict": verdict,
        "place": ALONE,
        "first_seen": START,
        "bundle_digest": DIGEST_OF_INPUTS,
    }
    return Observed(task=task, **(known | changes))


def written(plan: Plan) -> dict[str, Any]:
    """Return the one status that a plan writes."""
    statuses = [action.status for action in plan.actions if isinstance(action, WriteStatus)]
    assert len(statuses) == 1, plan
    return dict(statuses[0])


def step(plan: Plan) -> StatusStep:
    """Return which write a plan makes."""
    return next(action.step for action in plan.actions if isinstance(action, WriteStatus))


def reason(plan: Plan) -> str:
    """Return the reason of a plan that ends the task."""
    status = written(plan)
    assert step(plan) is StatusStep.FINAL
    finished = [c for c in status["conditions"] if c["type"] == "Finished"]
    assert [c["status"] for c in finished] == ["True"]
    assert status["reason"] == finished[0]["reason"]
    return str(status["reason"])


def message(plan: Plan) -> str:
    """Return the message of the status that a plan writes."""
    return str(written(plan)["message"])


def stored(observed: Observed, plan: Plan) -> SandboxTask:
    """Return the task after a plan's status was written."""
    raw = observed.task.model_dump(mode="json", by_alias=True, exclude_none=True)
    return SandboxTask.model_validate(raw | {"status": written(plan)})


def admitted(task: SandboxTask | None = None, **changes: Any) -> Observed:
    """Return what is known of a task that holds a place."""
    fresh = facts(task, inputs=changes.get("inputs"))
    return facts(stored(fresh, reconcile(fresh, START)), **changes)


def queued(task: SandboxTask | None = None, **changes: Any) -> Observed:
    """Return what is known of a task that waits."""
    full = Place(admitted=4, waiting_before=0, waiting_taken=0, placed_before=4, quota_before=False)
    fresh = facts(task, place=full)
    return facts(stored(fresh, reconcile(fresh, START)), **({"place": full} | changes))


def pod(**changes: Any) -> PodView:
    """Return a pod that is well."""
    known: dict[str, Any] = {
        "namespace": "ns",
        "name": pod_name("uid-t", 1),
        "uid": POD_UID,
        "resource_version": "7",
        "owner_uid": "uid-t",
        "attempt": 1,
        "signed": True,
        "created_at": START,
        "phase": PodPhase.RUNNING,
        "deleting": False,
        "deletion_by_operator": False,
        "network": NETWORK_CLOSED,
        "node_name": "node-1",
        "ip": "192.0.2.1",
        "scheduled": True,
        "image": DIGEST,
        "agent": ContainerView(started=True),
        "runner": ContainerView(started=True),
    }
    return PodView(**(known | changes))


def ready_status(**changes: Any) -> AgentStatus:
    """Return the status of an agent that can take work."""
    known: dict[str, Any] = {
        "pod_uid": POD_UID,
        "version": "0",
        "python": "3.13.5",
        "supervisor": SupervisorPhase.READY,
        "isolation": Isolation(seccomp=True, landlock_abi=6),
    }
    return AgentStatus(**(known | changes))


def view(**changes: Any) -> AgentView:
    """Return what was heard from an agent that is ready and has its inputs."""
    known: dict[str, Any] = {
        "pod_uid": POD_UID,
        "seen_at": START,
        "status": ready_status(),
        "ready_at": START,
        "staged_digest": DIGEST_OF_INPUTS,
        "foreign_policies": (),
    }
    return AgentView(**(known | changes))


def with_pod(observed: Observed, one: PodView | None = None, heard: AgentView | None = None) -> Observed:
    """Add a pod and what was heard from its agent."""
    one = one or pod()
    heard = heard or view()
    return replace(observed, pods=(one,), agents={one.uid: replace(heard, pod_uid=one.uid)})


def claimed(one: PodView | None = None, heard: AgentView | None = None, **changes: Any) -> Observed:
    """Return what is known of a task whose W1 is written."""
    ready = with_pod(admitted(changes.pop("task", None)))
    known = facts(stored(ready, reconcile(ready, NOW)), **changes)
    return with_pod(replace(known, verdict=None), one, heard)


def run_status(phase: RunPhase = RunPhase.RUNNING, result: RunResult | None = None) -> RunStatus:
    """Return the state of the run in W1."""
    return RunStatus(run_id=RUN_ID, phase=phase, result=result, isolation=Isolation(seccomp=True))


def satisfied(*missing: str, **changes: Any) -> RequirementsReply:
    """Return an agent's answer about requirements."""
    return RequirementsReply(**({"missing": missing, "python": "3.13.5"} | changes))


def kinds(plan: Plan) -> Sequence[type[Action]]:
    """Return the kinds of a plan's actions, in order."""
    return [type(action) for action in plan.actions]
