"""Full lists: read when the lease was gained and again and again, they repair whatever a watch lost.

What a list costs decides how often it is read. Pods of ours whose task is not there are deleted.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from sandyard_operator.decide.pod import PodView
from sandyard_operator.ports import Cluster, PortError, RefusedError
from sandyard_operator.tasks.conductor import Conductor

PERIOD_SECONDS: Final = 60.0  # a lost event is made good within 75 s
SHARE: Final = 0.01  # of the time at most, spent in full lists
AGAIN_SECONDS: Final = 2.0  # after one that failed
OVERDUE_PERIODS: Final = 3.0

logger = logging.getLogger(__name__)


class Sweep:
    """Reads full lists into the conductor's world."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        conductor: Conductor,
        monotonic: Callable[[], float],
    ) -> None:
        self._cluster = cluster
        self._conductor = conductor
        self._monotonic = monotonic
        self._next = monotonic()
        self._period = PERIOD_SECONDS
        self.complete = False  # everything was read once

    @property
    def overdue_seconds(self) -> float:
        """Return by how much the next list is late; 0 while it is not."""
        return max(0.0, self._monotonic() - self._next - OVERDUE_PERIODS * self._period)

    async def run(self) -> None:
        """Sweep until cancelled."""
        while True:
            await asyncio.sleep(max(0.0, self._next - self._monotonic()))
            try:
                await self.once()
            except PortError as error:
                logger.warning("a full list failed: %s", error)
                await asyncio.sleep(AGAIN_SECONDS)

    async def once(self) -> None:
        """Read everything once; pods before tasks, so that an orphan is one for sure."""
        began = self._monotonic()
        world = self._conductor.world
        pods_since = world.pods.mark()
        pods = await self._cluster.list_pods()
        classes_since = world.classes.mark()
        classes = await self._cluster.list_classes()
        tasks_since = world.tasks.mark()
        tasks = await self._cluster.list_tasks()
        missed = world.classes.replace(classes, since=classes_since)
        missed += world.tasks.replace(tasks, since=tasks_since)
        missed += world.pods.replace(pods, since=pods_since)
        if missed:
            logger.warning("%d deletions had gone unnoticed", missed)
        self._period = max(PERIOD_SECONDS, (self._monotonic() - began) / SHARE)
        self._next = self._monotonic() + self._period
        self.complete = True
        self._conductor.look_at_all()
        await self._delete_orphans()

    async def _delete_orphans(self) -> None:
        for pod in self._conductor.world.orphans():
            if not self._conductor.may_act:
                return
            if await self._is_orphan(pod):
                logger.warning("deleting a pod whose task is gone", extra={"namespace": pod.namespace, "pod": pod.name})
                await self._cluster.delete_pod(pod)

    async def _is_orphan(self, pod: PodView) -> bool:
        """Ask for its task by name: a list leaves out what this version of the operator cannot read."""
        try:
            task = await self._cluster.get_task(pod.namespace, pod.owner_name)
        except RefusedError:
            return False
        return task is None or task.metadata.uid != pod.owner_uid
