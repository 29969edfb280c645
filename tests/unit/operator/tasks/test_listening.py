"""One background wait per key: asks again while nobody answers, hands news over, ends when told."""

import asyncio
import time
from typing import Any

import pytest

from harness.facts import POD_UID, pod, ready_status, run_status
from sandyard_api.wire import AgentStatus, ErrorCode, InstallPhase, InstallStatus, RunPhase, RunStatus, SupervisorPhase
from sandyard_operator.decide.plan import AwaitAgent, AwaitInstall, AwaitRun
from sandyard_operator.decide.pod import PodView
from sandyard_operator.ports import (
    AgentRefusedError,
    AgentUnreachableError,
    ConflictError,
    Key,
    UnavailableError,
)
from sandyard_operator.tasks import listening as module
from sandyard_operator.tasks.listening import Listening, News

KEY = Key(namespace="ns", name="t", uid="u")
RUN = AwaitRun(POD_UID, "r")
STARTING = ready_status(supervisor=SupervisorPhase.STARTING)


class Answers:
    """Agents that give one answer after another; the last one for ever, held as a long poll is."""

    def __init__(self, *answers: Any) -> None:
        self._answers = iter(answers)
        self.asked: list[str] = []

    async def _next(self, call: str) -> Any:
        self.asked.append(call)
        answer = next(self._answers, None)
        if answer is None:
            await asyncio.Event().wait()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def status(self, pod: PodView, *, wait: float) -> AgentStatus:
        return await self._next(f"status {pod.uid} {wait:.0f}")  # type: ignore[no-any-return]

    async def install_status(self, pod: PodView, *, wait: float) -> InstallStatus:
        return await self._next(f"install {pod.uid} {wait:.0f}")  # type: ignore[no-any-return]

    async def run_status(self, pod: PodView, run_id: str, *, wait: float) -> RunStatus:
        return await self._next(f"run {pod.uid} {run_id} {wait:.0f}")  # type: ignore[no-any-return]


class Ear:
    """Remembers all news; some of it ends the wait."""

    def __init__(self, *ends: type | object) -> None:
        self.news: list[News] = []
        self._ends = ends
        self.ended = asyncio.Event()

    def __call__(self, key: Key, pod_uid: str, news: News) -> bool:
        assert (key, pod_uid) == (KEY, POD_UID)
        self.news.append(news)
        ends = any(news == end or (isinstance(end, type) and isinstance(news, end)) for end in self._ends)
        if ends:
            self.ended.set()
        return ends


def listening(answers: Answers, ear: Ear, *, there: bool = True) -> Listening:
    return Listening(
        agents=answers,  # type: ignore[arg-type]
        pod_of=lambda _, uid: pod() if there and uid == POD_UID else None,
        hearer=ear,
        monotonic=time.monotonic,
    )


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STARTING_SECONDS", "FIRST_SECONDS", "QUIET_SECONDS"):
        monkeypatch.setattr(module, name, 0.01)


async def heard(ear: Ear) -> None:
    async with asyncio.timeout(5):
        await ear.ended.wait()


@pytest.mark.parametrize(
    ("wait", "asked", "answer"),
    [
        (AwaitAgent(POD_UID), f"status {POD_UID} 25", ready_status()),
        (AwaitInstall(POD_UID), f"install {POD_UID} 25", InstallStatus(phase=InstallPhase.SUCCEEDED)),
        (RUN, f"run {POD_UID} r 25", run_status(RunPhase.FINISHED)),
    ],
)
async def test_each_wait_asks_its_own_question(wait: Any, asked: str, answer: Any) -> None:
    answers, ear = Answers(answer), Ear(answer)
    listening(answers, ear).listen(KEY, wait)
    await heard(ear)
    assert answers.asked == [asked]


async def test_it_asks_again_until_somebody_answers() -> None:
    silent = [AgentUnreachableError("no")] * 3
    answers, ear = Answers(*silent, ready_status()), Ear(AgentStatus)
    listening(answers, ear).listen(KEY, AwaitAgent(POD_UID))
    await heard(ear)
    assert len(ear.news) == 4


@pytest.mark.parametrize("error", [UnavailableError("busy"), ConflictError("odd")])
async def test_any_other_trouble_counts_as_no_answer(error: Exception) -> None:
    ear = Ear(AgentUnreachableError)
    listening(Answers(error), ear).listen(KEY, RUN)
    await heard(ear)


async def test_a_refusal_is_news_like_another() -> None:
    ear = Ear(AgentRefusedError)
    listening(Answers(AgentRefusedError(ErrorCode.NOT_FOUND, "what")), ear).listen(KEY, RUN)
    await heard(ear)


async def test_a_change_of_phase_is_followed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUIET_SECONDS", 60)
    accepted, running, done = (run_status(p) for p in (RunPhase.ACCEPTED, RunPhase.RUNNING, RunPhase.FINISHED))
    ear = Ear(done)
    listening(Answers(accepted, running, done), ear).listen(KEY, RUN)
    await heard(ear)
    assert ear.news == [accepted, running, done]


async def test_the_same_told_again_at_once_is_not_asked_for_at_once() -> None:
    answers, ear = Answers(*[STARTING] * 4, ready_status()), Ear(ready_status())
    began = time.monotonic()
    listening(answers, ear).listen(KEY, AwaitAgent(POD_UID))
    await heard(ear)
    assert time.monotonic() - began >= 0.03


async def test_the_same_wait_goes_on_and_another_takes_its_place() -> None:
    answers = Answers()
    waits = listening(answers, Ear())
    waits.listen(KEY, AwaitAgent(POD_UID))
    waits.listen(KEY, AwaitAgent(POD_UID))
    await asyncio.sleep(0)
    assert len(answers.asked) == 1
    waits.listen(KEY, RUN)
    await asyncio.sleep(0)
    assert len(answers.asked) == 2
    assert len(waits) == 1
    waits.listen(KEY, None)
    assert len(waits) == 0
    waits.listen(KEY, None)


async def test_a_wait_that_ended_may_begin_again() -> None:
    answers, ear = Answers(run_status(RunPhase.UNKNOWN)), Ear(RunStatus)
    waits = listening(answers, ear)
    waits.listen(KEY, RUN)
    await heard(ear)
    await asyncio.sleep(0)
    waits.listen(KEY, RUN)
    await asyncio.sleep(0)
    assert len(answers.asked) == 2
    await waits.close()
    assert len(waits) == 0


async def test_a_wait_for_a_pod_that_went_ends() -> None:
    answers = Answers()
    waits = listening(answers, Ear(), there=False)
    waits.listen(KEY, RUN)
    await asyncio.sleep(0)
    assert answers.asked == []


def test_tries_come_quickly_while_a_pod_starts_and_ever_more_slowly_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    starting = [module._pause(AwaitAgent(POD_UID), n) for n in (1, 100, 101)]  # noqa: SLF001
    assert starting[0] == starting[1] == module.STARTING_SECONDS
    assert starting[2] == module.LAST_SECONDS
    running = [module._pause(RUN, n) for n in (1, 2, 9)]  # noqa: SLF001
    assert running == [0.4, 0.8, module.LAST_SECONDS]
