"""How a task ends: the reason and message for what became of its pod, its install or its run.

The truth of a run's end is what the agent told by ``Outcome``; that of a lost pod is what the pod's object
shows. Messages are ours and say what happened and whether the script may have run.
"""

from dataclasses import dataclass
from typing import Final, assert_never

from sandyard_api.reasons import Reason
from sandyard_api.wire import Outcome, RunResult, RunStatus
from sandyard_operator.decide.pod import PodPhase, PodView

DID_NOT_RUN: Final = "The script did not run."
MAY_HAVE_RUN: Final = "The script may have run; what it did is not known."

NODE_DISRUPTIONS: Final = frozenset({"DeletionByTaintManager", "DeletionByPodGC"})
NODE_REASONS: Final = frozenset({"NodeLost", "NodeShutdown", "Terminated"})
EVICTED: Final = frozenset({"Evicted", "Preempting"})
IMAGE_REASONS: Final = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
OOM_KILLED: Final = "OOMKilled"
OOM_EXIT_CODE: Final = 137  # SIGKILL: a healthy supervisor ends with another code even when a child was OOM


@dataclass(frozen=True, slots=True)
class End:
    """Reason and message of a finished task."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A run that ended, as the agent of its pod told it."""

    state: RunStatus
    result: RunResult
    pod: PodView


def pod_deleted(pod: PodView | None) -> End:
    """Say why a pod went that is gone now; ``pod`` is its last known form."""
    if pod is None:
        return End(Reason.POD_DELETED, "The pod is gone.")
    return pod_loss(pod) or End(Reason.POD_DELETED, f"Pod {pod.name} was deleted by somebody else.")


def pod_loss(pod: PodView) -> End | None:
    """Say why a pod is lost or being taken away; None while it is well."""
    if pod.disruption_reason in NODE_DISRUPTIONS or pod.status_reason in NODE_REASONS:
        return End(Reason.NODE_LOST, f"Node {pod.node_name} went away under pod {pod.name}.")
    if pod.disruption_reason or pod.status_reason in EVICTED:
        why = pod.disruption_reason or pod.status_reason
        return End(Reason.POD_EVICTED, f"Pod {pod.name} was taken away by the cluster ({why}).")
    if pod.deleting:
        if not pod.node_ready:
            return End(Reason.NODE_LOST, f"Node {pod.node_name} does not answer and its pods are being removed.")
        return End(Reason.POD_DELETED, f"Pod {pod.name} was deleted by somebody else.")
    if pod.status_reason and pod.phase is PodPhase.FAILED:
        return End(Reason.POD_REJECTED, f"The node refused pod {pod.name}: {pod.status_reason}. {pod.status_message}")
    if pod.agent.exit_code is not None:
        oom = " (out of memory)" if pod.agent.terminated_reason == OOM_KILLED else ""
        return End(Reason.AGENT_LOST, f"The agent of pod {pod.name} ended with {pod.agent.exit_code}{oom}.")
    if pod.runner.exit_code is not None:
        return runner_loss(pod)
    if pod.phase in (PodPhase.FAILED, PodPhase.SUCCEEDED):
        return End(Reason.AGENT_LOST, f"Pod {pod.name} ended by itself.")
    return None


def runner_loss(pod: PodView) -> End:
    """Say why the supervisor ended: with cgroup v2 the whole container may be killed for its memory."""
    if pod.runner.terminated_reason == OOM_KILLED and pod.runner.exit_code == OOM_EXIT_CODE:
        return End(Reason.OOM_KILLED, "The container ran out of memory and was killed as a whole.")
    return End(Reason.AGENT_LOST, f"The supervisor of pod {pod.name} ended with {pod.runner.exit_code}.")


def start_timeout(pod: PodView, seconds: int) -> End:
    """Say why a pod was not ready in time, by what it shows."""
    if not pod.scheduled:
        why = pod.unschedulable_message or "no node was found for it"
        return End(Reason.UNSCHEDULABLE, f"Pod {pod.name} had no node after {seconds} s: {why}. {DID_NOT_RUN}")
    for container in (pod.agent, pod.runner):
        if container.waiting_reason in IMAGE_REASONS:
            return End(
                Reason.IMAGE_PULL_FAILED,
                f"The image could not be pulled within {seconds} s: {container.waiting_reason}. "
                f"{container.waiting_message} {DID_NOT_RUN}",
            )
    waiting = pod.runner.waiting_reason or pod.agent.waiting_reason or "its agent did not answer"
    details = pod.runner.waiting_message or pod.agent.waiting_message
    return End(
        Reason.START_FAILED,
        f"Pod {pod.name} was not ready after {seconds} s: {waiting}. {details}".rstrip() + f" {DID_NOT_RUN}",
    )


def run_end(result: RunResult, *, run_timeout_seconds: int) -> End:
    """Turn the end of a run into a reason; a lost supervisor is judged by the pod elsewhere."""
    match result.outcome:
        case Outcome.EXITED:
            if result.exit_code == 0:
                return End(Reason.SUCCEEDED, "The script ended with exit status 0.")
            raised = f" after {result.error_type}" if result.error_type else ""
            return End(Reason.NON_ZERO_EXIT, f"The script ended with exit status {result.exit_code}{raised}.")
        case Outcome.SIGNALED:
            return End(Reason.KILLED_BY_SIGNAL, f"The script was ended by {result.signal}.")
        case Outcome.TIMEOUT:
            return End(Reason.RUN_TIMEOUT, f"The script was stopped after {run_timeout_seconds} s.")
        case Outcome.OOM:
            return End(Reason.OOM_KILLED, "The script needed more memory than its limit and was killed.")
        case Outcome.DISK:
            return End(Reason.DISK_LIMIT_EXCEEDED, "The script wrote more than its disk limit and was killed.")
        case Outcome.CANCELLED:
            return End(Reason.CANCELLED, "The script was stopped because spec.cancel was set.")
        case Outcome.ISOLATION_UNAVAILABLE:
            return End(Reason.ISOLATION_UNAVAILABLE, f"{result.message or 'Lock-down failed.'} {DID_NOT_RUN}")
        case Outcome.START_FAILED:
            return End(Reason.START_FAILED, f"{result.message or 'The run could not start.'} {DID_NOT_RUN}")
        case Outcome.SUPERVISOR_LOST:
            return End(Reason.AGENT_LOST, f"The supervisor was lost during the run. {MAY_HAVE_RUN}")
    assert_never(result.outcome)


def python_unsatisfied(requires_python: str, python: str) -> End:
    """Say that the image's Python is not one the script accepts."""
    return End(
        Reason.PYTHON_VERSION_UNSATISFIED,
        f"The script requires Python {requires_python}; the class's image has {python}. {DID_NOT_RUN}",
    )
