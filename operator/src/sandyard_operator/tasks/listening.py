"""Background waits: one long poll per task, replaced or cancelled as soon as a plan wants another.

A wait holds no worker, so a cancel, a delete or a deadline is acted on at once. It asks again by itself
while the agent does not answer, and ends with the first news, which it hands over.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias, assert_never

from sandyard_api.wire import MAX_WAIT_SECONDS, AgentStatus, InstallStatus, RunStatus
from sandyard_operator.decide.plan import AwaitAgent, AwaitInstall, AwaitRun, Wait
from sandyard_operator.decide.pod import PodView
from sandyard_operator.ports import (
    AgentRefusedError,
    Agents,
    AgentUnreachableError,
    Key,
    PortError,
    UnavailableError,
)

News: TypeAlias = AgentStatus | InstallStatus | RunStatus | AgentRefusedError | AgentUnreachableError

STARTING_SECONDS: Final = 0.05  # between two tries while a pod comes up: a refused connect costs nothing
STARTING_TRIES: Final = 100
FIRST_SECONDS: Final = 0.2
LAST_SECONDS: Final = 5.0  # an agent that was there comes back within seconds or not at all
QUIET_SECONDS: Final = 1.0  # least time between two polls that bring nothing new
DOUBLINGS: Final = 10


class Hearer(Protocol):
    """Who is told; returns whether it was news, after which the wait has ended."""

    def __call__(self, key: Key, pod_uid: str, news: News) -> bool:
        """Take news of a task's pod."""


class Listening:
    """The waits of this process."""

    def __init__(
        self,
        *,
        agents: Agents,
        pod_of: Callable[[Key, str], PodView | None],
        hearer: Hearer,
        monotonic: Callable[[], float],
    ) -> None:
        self._agents = agents
        self._pod_of = pod_of
        self._hearer = hearer
        self._monotonic = monotonic
        self._waits: dict[Key, tuple[Wait, asyncio.Task[None]]] = {}

    def __len__(self) -> int:
        return len(self._waits)

    def listen(self, key: Key, wait: Wait | None) -> None:
        """Make this the key's only wait."""
        current = self._waits.get(key)
        if current is not None:
            if current[0] == wait and not current[1].done():
                return
            current[1].cancel()
            del self._waits[key]
        if wait is not None:
            task = asyncio.create_task(self._run(key, wait), name=f"wait {key.namespace}/{key.name}")
            self._waits[key] = (wait, task)

    async def close(self) -> None:
        """Cancel all waits."""
        running = [task for _, task in self._waits.values()]
        self._waits.clear()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _run(self, key: Key, wait: Wait) -> None:
        failures, before = 0, ""
        while (pod := self._pod_of(key, wait.pod_uid)) is not None:
            asked = self._monotonic()
            try:
                news: News = await ask(self._agents, wait, pod)
            except (AgentUnreachableError, AgentRefusedError) as error:
                news = error
            except UnavailableError as error:
                news = AgentUnreachableError(str(error))
            except PortError as error:
                news = AgentUnreachableError(f"{type(error).__name__}: {error}")
            if self._hearer(key, wait.pod_uid, news):
                return
            if isinstance(news, AgentUnreachableError | AgentRefusedError):
                failures += 1
                await asyncio.sleep(_pause(wait, failures))
                continue
            state, failures = _state(news), 0
            if state == before:  # nothing new: the agent held the call, else it is not asked at once again
                await asyncio.sleep(max(0.0, QUIET_SECONDS - (self._monotonic() - asked)))
            before = state


async def ask(agents: Agents, wait: Wait, pod: PodView) -> AgentStatus | InstallStatus | RunStatus:
    """Ask once what a wait is about."""
    match wait:
        case AwaitAgent():
            return await agents.status(pod, wait=MAX_WAIT_SECONDS)
        case AwaitInstall():
            return await agents.install_status(pod, wait=MAX_WAIT_SECONDS)
        case AwaitRun():
            return await agents.run_status(pod, wait.run_id, wait=MAX_WAIT_SECONDS)
    assert_never(wait)


def _state(news: AgentStatus | InstallStatus | RunStatus) -> str:
    return news.supervisor if isinstance(news, AgentStatus) else news.phase


def _pause(wait: Wait, failures: int) -> float:
    if isinstance(wait, AwaitAgent) and failures <= STARTING_TRIES:
        return STARTING_SECONDS
    return min(LAST_SECONDS, FIRST_SECONDS * 2.0 ** min(failures, DOUBLINGS))
