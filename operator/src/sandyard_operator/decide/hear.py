"""What an agent's answer changes in what is known of it. Pure: a view and news give a new view."""

from dataclasses import replace
from datetime import datetime

from sandyard_api.names import NETWORK_CLOSED
from sandyard_api.wire import AgentStatus, InstallPhase, InstallStatus, RunPhase, RunStatus, SupervisorPhase
from sandyard_operator.decide.facts import AgentView
from sandyard_operator.decide.pod import PodView


def heard_status(view: AgentView, status: AgentStatus, now: datetime) -> AgentView:
    """Take the agent's whole state."""
    ready = status.supervisor is SupervisorPhase.READY
    view = replace(
        view,
        status=status,
        unreachable_at=None,
        ready_at=view.ready_at or (now if ready else None),
    )
    if status.install.phase is not InstallPhase.NONE:
        view = heard_install(view, status.install, now)
    return view if status.run is None else heard_run(view, status.run, now)


def heard_install(view: AgentView, status: InstallStatus, now: datetime) -> AgentView:
    """Take the state of the install."""
    return replace(view, install=status, install_at=view.install_at or now, unreachable_at=None)


def heard_run(view: AgentView, status: RunStatus, now: datetime) -> AgentView:
    """Take the state of the run."""
    ended = view.ended_at or (now if status.phase is RunPhase.FINISHED else None)
    return replace(view, run=status, ended_at=ended, unreachable_at=None)


def unheard(view: AgentView, now: datetime) -> AgentView:
    """Take note that the agent did not answer."""
    return replace(view, unreachable_at=view.unreachable_at or now)


def seen(view: AgentView, pod: PodView, now: datetime) -> AgentView:
    """Take note of since when the pod is closed after its install."""
    installed = view.install is not None and view.install.phase is InstallPhase.SUCCEEDED
    if installed and pod.network == NETWORK_CLOSED and view.closed_at is None:
        return replace(view, closed_at=now)
    return view
