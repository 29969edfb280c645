"""Packages, with the network open only for that: flip, install, flip back, and the cut is proven.

The proof: the agent's own fresh connect to the index fails while the operator's to the same address
succeeds, twice, and the installer with its sockets is gone. A dead index proves nothing.
"""

from datetime import datetime, timedelta
from typing import Final, assert_never

from sandyard_api.names import NETWORK_CLOSED, NETWORK_INSTALLING
from sandyard_api.reasons import Reason, TaskCondition
from sandyard_api.wire import InstallPhase, InstallStatus
from sandyard_operator.decide.ends import DID_NOT_RUN, End
from sandyard_operator.decide.facts import AgentView, Observed
from sandyard_operator.decide.finish import finish
from sandyard_operator.decide.judge import Accepted
from sandyard_operator.decide.plan import (
    Action,
    AwaitInstall,
    Install,
    Plan,
    ProveCut,
    SetNetwork,
    StatusStep,
    WriteStatus,
)
from sandyard_operator.decide.pod import PodView
from sandyard_operator.decide.standing import condition
from sandyard_operator.decide.status import dump, installing

INSTALL_REASONS: Final = {
    reason.value: reason
    for reason in (
        Reason.INDEX_UNAVAILABLE,
        Reason.INDEX_AUTH_FAILED,
        Reason.DEPENDENCY_NOT_FOUND,
        Reason.NO_WHEEL_AVAILABLE,
        Reason.DEPENDENCY_CONFLICT,
        Reason.HASH_MISMATCH,
        Reason.INSTALL_TIMEOUT,
        Reason.INSTALL_FAILED,
    )
}
PROOFS: Final = 2
GRACE_SECONDS: Final = 30.0  # the agent ends the install itself; this is for one that does not
CUT_SECONDS: Final = 30.0  # for the network plugin to close the pod again
RETRY_SECONDS: Final = 0.1  # between two proofs


def install(observed: Observed, accepted: Accepted, pod: PodView, view: AgentView, now: datetime) -> Plan | None:
    """Decide the next step of the install; None when there is nothing to install or all is done and cut."""
    state = _state(view)
    phase = InstallPhase.NONE if state is None else state.phase
    missing = () if view.requirements is None else view.requirements.missing
    if not missing and phase is InstallPhase.NONE and pod.network == NETWORK_CLOSED:
        return None
    match phase:
        case InstallPhase.NONE:
            return _begin(observed, accepted, pod, view, now)
        case InstallPhase.RUNNING:
            return _until_installed(observed, accepted, view, now)
        case InstallPhase.FAILED:
            return finish(observed, now, _failure(state), installed=state)
        case InstallPhase.SUCCEEDED:
            return _cut(observed, pod, view, now)
    assert_never(phase)


def _state(view: AgentView) -> InstallStatus | None:
    if view.install is not None:
        return view.install
    return None if view.status is None else view.status.install


def _begin(observed: Observed, accepted: Accepted, pod: PodView, view: AgentView, now: datetime) -> Plan:
    if observed.sandbox_class is None or observed.sandbox_class.spec.index is None:
        name = observed.task.spec.sandbox_class_name
        message = f"Class {name} names no package index and its image lacks what the script needs."
        return finish(observed, now, End(Reason.INDEX_UNAVAILABLE, f"{message} {DID_NOT_RUN}"))
    actions: list[Action] = []
    told = condition(observed.task.status, TaskCondition.INSTALLED)
    if told is None:
        actions.append(WriteStatus(StatusStep.PROGRESS, dump(installing(observed, pod, view, now))))
    if pod.network != NETWORK_INSTALLING:
        actions.append(SetNetwork(pod, NETWORK_INSTALLING))
    actions.append(Install(pod, accepted.requirements, accepted.install_timeout_seconds))
    return Plan(actions=tuple(actions))


def _until_installed(observed: Observed, accepted: Accepted, view: AgentView, now: datetime) -> Plan:
    seconds = accepted.install_timeout_seconds
    deadline = (view.install_at or now) + timedelta(seconds=seconds + GRACE_SECONDS)
    if now >= deadline:
        message = f"The installer did not end within {seconds} s. {DID_NOT_RUN}"
        return finish(observed, now, End(Reason.INSTALL_TIMEOUT, message))
    return Plan(wait=AwaitInstall(view.pod_uid), due=deadline)


def _failure(state: InstallStatus | None) -> End:
    reason = "" if state is None else state.reason
    message = "" if state is None else state.message
    known = INSTALL_REASONS.get(reason, Reason.INSTALL_FAILED)
    return End(known, f"{message or 'The install failed.'} {DID_NOT_RUN}")


def _cut(observed: Observed, pod: PodView, view: AgentView, now: datetime) -> Plan | None:
    if pod.network != NETWORK_CLOSED:
        return Plan(actions=(SetNetwork(pod, NETWORK_CLOSED),))
    if view.cut_proofs >= PROOFS:
        return None
    deadline = (view.closed_at or now) + timedelta(seconds=CUT_SECONDS)
    if now >= deadline:
        message = f"It could not be proven within {CUT_SECONDS:.0f} s that the pod's way to the index is cut."
        return finish(observed, now, End(Reason.ISOLATION_UNAVAILABLE, f"{message} {DID_NOT_RUN}"))
    if view.cut_failed_at is not None:
        again = view.cut_failed_at + timedelta(seconds=RETRY_SECONDS)
        if now < again:
            return Plan(due=again)
    return Plan(actions=(ProveCut(pod),))
