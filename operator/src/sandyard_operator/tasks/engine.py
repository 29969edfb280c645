"""The running core: feed, workers, sweep, leadership and heartbeat of one process, begun and ended as one.

Whatever ends one of them ends all: a process that is half alive is worse than one that is restarted.
"""

import asyncio
import logging
from typing import Final

from sandyard_operator.drive.clock import SteadyClock
from sandyard_operator.drive.health import Health, LoopLag
from sandyard_operator.drive.leadership import Leadership
from sandyard_operator.ports import ChangeFeed, PortError
from sandyard_operator.tasks.conductor import Conductor
from sandyard_operator.tasks.sweep import Sweep

DRAIN_SECONDS: Final = 10.0  # for actions under way at SIGTERM, well within the pod's 30 s of grace
GAIN_RETRY_SECONDS: Final = 1.0

logger = logging.getLogger(__name__)


class Engine:
    """Runs a conductor."""

    def __init__(
        self,
        *,
        conductor: Conductor,
        sweep: Sweep,
        leadership: Leadership,
        clock: SteadyClock,
        workers: int,
    ) -> None:
        self._conductor = conductor
        self._sweep = sweep
        self._leadership = leadership
        self._workers = workers
        self._lag = LoopLag(clock.monotonic)
        self._stopping = asyncio.Event()

    def health(self) -> Health:
        """Return the facts for the probes."""
        return Health(
            loop_lag_seconds=self._lag.seconds,
            oldest_key_seconds=self._conductor.queue.oldest_seconds(),
            longest_work_seconds=self._conductor.queue.longest_work_seconds(),
            sweep_overdue_seconds=self._sweep.overdue_seconds,
        )

    def stop(self) -> None:
        """Begin no more actions and let ``run`` return."""
        self._stopping.set()

    async def run(self, feed: ChangeFeed) -> None:
        """Run until ``stop``; raises what ended any part."""
        async with asyncio.TaskGroup() as group:
            parts = [group.create_task(self._conductor.work()) for _ in range(self._workers)]
            parts.append(group.create_task(self._take_changes(feed)))
            parts.append(group.create_task(self._follow_leadership()))
            parts.append(group.create_task(self._sweep.run()))
            parts.append(group.create_task(self._lag.run()))
            await self._stopping.wait()
            await self._drain()
            for part in parts:
                part.cancel()

    async def _drain(self) -> None:
        await self._conductor.stand_by()
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                await self._conductor.queue.quiet()
        except TimeoutError:
            logger.warning("actions were still under way after %.0f s", DRAIN_SECONDS)

    async def _take_changes(self, feed: ChangeFeed) -> None:
        async for change in feed.changes():
            self._conductor.world.take(change)

    async def _follow_leadership(self) -> None:
        """On a gain read everything first, then act."""
        while True:
            epoch = self._leadership.epoch
            if epoch is None:
                await self._conductor.stand_by()
            else:
                await self._take_over(epoch)
            await self._leadership.changed()

    async def _take_over(self, epoch: int) -> None:
        while self._leadership.epoch == epoch and not self._stopping.is_set():
            try:
                await self._sweep.once()
            except PortError as error:
                logger.warning("cannot act yet, the first full list failed: %s", error)
                await asyncio.sleep(GAIN_RETRY_SECONDS)
            else:
                self._conductor.take_over(epoch)
                logger.info("acting under epoch %d", epoch)
                return
