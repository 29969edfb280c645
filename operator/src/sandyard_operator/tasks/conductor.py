"""The conductor: takes keys off the queue, makes a plan for each, carries it out until nothing is left.

One key is worked on by one worker at a time. No action is begun without the lease, and none before a full
list was read under it. An error costs its key a backoff and never a worker.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from sandyard_api.task import SandboxTask
from sandyard_operator.decide.plan import Plan, StatusStep, WriteStatus
from sandyard_operator.decide.pod import PodView
from sandyard_operator.decide.reconcile import reconcile
from sandyard_operator.decide.standing import Standing, standing_of
from sandyard_operator.drive.clock import SteadyClock
from sandyard_operator.drive.leadership import Leadership
from sandyard_operator.drive.queue import KeyedQueue
from sandyard_operator.ports import (
    Agents,
    Cluster,
    ConflictError,
    Key,
    NotFoundError,
    PortError,
    Recorder,
    UnavailableError,
)
from sandyard_operator.tasks.act import Actor, Subject
from sandyard_operator.tasks.converse import Conversation
from sandyard_operator.tasks.hearing import hear
from sandyard_operator.tasks.listening import Listening, News
from sandyard_operator.tasks.memory import TaskMemory
from sandyard_operator.tasks.observe import observe
from sandyard_operator.tasks.world import World

ROUNDS: Final = 64  # plans for one key in a row; more means that they make no progress
CONFLICTS: Final = 5  # in a row, before the key has to wait
FAULT_SECONDS: Final = 10.0  # after a fault of ours, which must not take the processor

logger = logging.getLogger(__name__)


class Conductor:
    """Carries tasks through; ``work`` is one worker, of which many may run."""

    def __init__(  # noqa: PLR0913 - its doors, clocks and chance
        self,
        *,
        cluster: Cluster,
        agents: Agents,
        recorder: Recorder,
        leadership: Leadership,
        clock: SteadyClock,
        operator_namespace: str,
        jitter: Callable[[], float],
        salt: Callable[[], str],
    ) -> None:
        self._cluster = cluster
        self._recorder = recorder
        self._leadership = leadership
        self._clock = clock
        self._memories: dict[Key, TaskMemory] = {}
        self._ready_epoch: int | None = None
        self.queue: KeyedQueue[Key] = KeyedQueue(monotonic=clock.monotonic, jitter=jitter)
        self.world = World(self.queue.add, self._pod_gone)
        self._conversation = Conversation(
            agents=agents,
            cluster=cluster,
            operator_namespace=operator_namespace,
            now=clock.now,
            epoch=lambda: leadership.epoch,
            salt=salt,
        )
        self._actor = Actor(cluster=cluster, conversation=self._conversation, world=self.world, now=clock.now)
        self.listening = Listening(
            agents=agents,
            pod_of=lambda key, uid: self.world.pod(key.uid, uid),
            hearer=self.hear,
            monotonic=clock.monotonic,
        )

    @property
    def may_act(self) -> bool:
        """Tell whether this process leads and has read everything since it does."""
        return self._ready_epoch is not None and self._leadership.epoch == self._ready_epoch

    def take_over(self, epoch: int) -> None:
        """Act from now on: a full list was read under this epoch."""
        self._ready_epoch = epoch
        self.look_at_all()

    def look_at_all(self) -> None:
        """Ask for every task."""
        for key in self.world.every_key():
            self.queue.add(key)

    async def stand_by(self) -> None:
        """Act no more; caches stay warm."""
        self._ready_epoch = None
        await self.listening.close()

    async def work(self) -> None:
        """Serve keys until cancelled."""
        while True:
            key = await self.queue.get()
            try:
                await self.look_at(key)
            except PortError as error:
                self._back_off(key, error)
            except Exception:
                logger.exception("a task could not be looked at", extra=_names(key))
                if key in self._memories:
                    self._memories[key].faults += 1
                self.queue.add_after_failure(key, at_least=FAULT_SECONDS)
            finally:
                self.queue.done(key)

    async def look_at(self, key: Key) -> None:
        """Decide and act on a key until nothing is left to do now."""
        conflicts = 0
        for _ in range(ROUNDS):
            if not self.may_act:
                self.listening.listen(key, None)
                return
            task = self.world.task(key)
            if task is None:
                await self._forget(key)
                return
            memory = self._memories.get(key)
            if memory is None:
                memory = self._memories[key] = TaskMemory(first_seen=self._clock.now())
            now = self._clock.now()
            observed = observe(self.world, task, memory, now)
            plan = reconcile(observed, now)
            self.listening.listen(key, plan.wait)
            if not plan.actions:
                memory.faults = 0
                self._rest(key, task, memory, plan, now)
                return
            subject = Subject(key=key, task=task, sandbox_class=observed.sandbox_class, memory=memory)
            try:
                await self._carry_out(subject, plan)
            except (ConflictError, NotFoundError) as error:
                conflicts += 1
                if conflicts > CONFLICTS:
                    raise
                logger.info("looking again: %s", error, extra=_names(key))
                await self._actor.refresh(key)
            except PortError as error:
                self._back_off(key, error, due=plan.due, now=now)
                return
            else:
                self.queue.succeeded(key)
        raise RuntimeError(f"{ROUNDS} plans in a row made no progress")

    async def _carry_out(self, subject: Subject, plan: Plan) -> None:
        places, memory = self.world.places, subject.memory
        if any(isinstance(a, WriteStatus) and a.step is StatusStep.ADMITTED for a in plan.actions):
            places.reserve(subject.task)
        try:
            for action in plan.actions:
                if not self.may_act:
                    return
                began = self._clock.monotonic()
                error = ""
                try:
                    await self._actor.carry_out(subject, action)
                except PortError as failure:
                    error = type(failure).__name__
                    raise
                finally:
                    seconds = self._clock.monotonic() - began
                    self._recorder.acted(type(action).__name__, seconds=seconds, error=error)
                if isinstance(action, WriteStatus) and action.step is StatusStep.FINAL:
                    self._record_end(subject.key)
        finally:
            if not memory.unsure:
                places.settle(subject.task, self.world.task(subject.key))

    def _record_end(self, key: Key) -> None:
        task = self.world.task(key)
        if task is not None and standing_of(task) is Standing.FINISHED:
            self._recorder.finished(task)

    def _rest(self, key: Key, task: SandboxTask, memory: TaskMemory, plan: Plan, now: datetime) -> None:
        """Nothing to do now: see when to look again, and keep no more than is needed until then."""
        if plan.due is not None:
            self.queue.add_at(key, self._clock.monotonic() + (plan.due - now) / timedelta(seconds=1))
        standing = standing_of(task)
        if standing is Standing.QUEUED:
            memory.drop_inputs()
        elif standing is Standing.FINISHED and not self.world.pods_of(key.uid):
            self._memories.pop(key, None)

    async def _forget(self, key: Key) -> None:
        """Drop all that is remembered of a task that is gone, and delete its pods."""
        self.listening.listen(key, None)
        self._memories.pop(key, None)
        self.queue.forget(key)
        pods = [pod for pod in self.world.pods_of(key.uid) if not pod.deleting]
        if pods and await self._actor.read_task(key) is None:
            for pod in pods:
                await self._cluster.delete_pod(pod)

    def _back_off(
        self, key: Key, error: PortError, *, due: datetime | None = None, now: datetime | None = None
    ) -> None:
        after = error.retry_after if isinstance(error, UnavailableError) else 0.0
        latest = None if due is None or now is None else max(0.0, (due - now) / timedelta(seconds=1))
        self.queue.add_after_failure(key, at_least=after, at_most=latest)
        logger.info("trying again later: %s: %s", type(error).__name__, error, extra=_names(key))

    def _pod_gone(self, key: Key, pod: PodView) -> None:
        memory = self._memories.get(key)
        if memory is not None:
            memory.last_views[pod.uid] = pod
            memory.absent.add(pod.uid)

    def hear(self, key: Key, pod_uid: str, news: News) -> bool:
        """Take in what a background wait brought; tell whether it was news."""
        memory = self._memories.get(key)
        if memory is None or hear(memory, pod_uid, news, self._clock.now()):
            self.queue.add(key)
            return True
        return False


def _names(key: Key) -> dict[str, str]:
    return {"namespace": key.namespace, "task": key.name, "uid": key.uid}
