"""What a background wait brought: remembered, and judged for whether a decision may follow from it."""

from datetime import datetime
from typing import assert_never

from sandyard_api.wire import AgentStatus, InstallPhase, InstallStatus, RunPhase, RunStatus, SupervisorPhase
from sandyard_operator.decide.facts import AgentView
from sandyard_operator.decide.hear import heard_install, heard_run, heard_status, unheard
from sandyard_operator.ports import AgentRefusedError, AgentUnreachableError
from sandyard_operator.tasks.converse import refused
from sandyard_operator.tasks.listening import News
from sandyard_operator.tasks.memory import TaskMemory


def hear(memory: TaskMemory, pod_uid: str, news: News, now: datetime) -> bool:
    """Take news in; tell whether the task has to be looked at."""
    view = memory.agents.get(pod_uid) or AgentView(pod_uid=pod_uid, seen_at=now)
    match news:
        case AgentStatus():
            memory.agents[pod_uid] = heard_status(view, news, now)
            return news.supervisor is not SupervisorPhase.STARTING
        case InstallStatus():
            memory.agents[pod_uid] = heard_install(view, news, now)
            return news.phase is not InstallPhase.RUNNING
        case RunStatus():
            memory.agents[pod_uid] = heard_run(view, news, now)
            return news.phase not in (RunPhase.ACCEPTED, RunPhase.RUNNING)
        case AgentRefusedError():
            return refused(memory, pod_uid, news, now=now) or view.unreachable_at is None
        case AgentUnreachableError():
            memory.agents[pod_uid] = unheard(view, now)
            # A pod that comes up does not answer at first, and its deadline is known already.
            return view.unreachable_at is None and view.status is not None
    assert_never(news)
