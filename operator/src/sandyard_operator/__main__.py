"""``python -m sandyard_operator``: puts the rooms together and runs them until told to stop.

The only place that knows all rooms. Whatever ends one part ends the process, with one line that says why; the
kubelet starts it again and it goes on from what the cluster tells.
"""

import asyncio
import logging
import random
import secrets
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Final

from sandyard_operator.agents.client import AgentClient
from sandyard_operator.agents.signer import Signer
from sandyard_operator.drive.clock import SteadyClock
from sandyard_operator.drive.leadership import Leadership
from sandyard_operator.edge.feed import FeedError, KopfFeed
from sandyard_operator.edge.probes import ProbeServer
from sandyard_operator.kube.authority import agent_name
from sandyard_operator.kube.connect import Kube, MissingKindsError, Place, connect
from sandyard_operator.kube.lease import LeaseKeeper, LeaseLostError
from sandyard_operator.kube.policies import Neighbours
from sandyard_operator.ports import PortError
from sandyard_operator.settings import Settings, SettingsError
from sandyard_operator.tasks.conductor import Conductor
from sandyard_operator.tasks.engine import Engine
from sandyard_operator.tasks.sweep import Sweep
from sandyard_operator.telemetry.logs import configure
from sandyard_operator.telemetry.metrics import Gauges, Metrics
from sandyard_operator.telemetry.server import MetricsServer

SALT_BYTES: Final = 16
EXPECTED: Final = (FeedError, LeaseLostError, MissingKindsError, PortError)  # said in one line

logger = logging.getLogger(__name__)


class Operator:
    """The rooms of one process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._clock = SteadyClock()
        self._leadership = Leadership(self._clock.monotonic)
        self._metrics = Metrics()

    async def run(self) -> None:
        """Run until SIGTERM or SIGINT; raises what ended any part."""
        async with AsyncExitStack() as stack:
            kube = await stack.enter_async_context(self._connect())
            agents = await stack.enter_async_context(self._agents(kube))
            conductor = self._conductor(kube, agents)
            sweep = Sweep(cluster=kube.cluster, conductor=conductor, monotonic=self._clock.monotonic)
            engine = Engine(
                conductor=conductor,
                sweep=sweep,
                leadership=self._leadership,
                clock=self._clock,
                workers=self._settings.workers,
            )
            self._metrics.watch(lambda: self._gauges(conductor, engine))
            await self._serve(stack, engine, sweep)
            await self._run_parts(kube, engine)

    def _connect(self) -> AbstractAsyncContextManager[Kube]:
        settings = self._settings
        neighbours = Neighbours(
            namespace=settings.namespace,
            operator_cidrs=settings.operator_cidrs,
            dns_namespace=settings.dns_namespace,
        )
        place = Place(neighbours=neighbours, identity=settings.identity, extra_cidrs=settings.cluster_cidrs)
        return connect(
            place,
            may_write=lambda: self._leadership.epoch is not None,
            now=self._clock.now,
            monotonic=self._clock.monotonic,
            observer=self._metrics.asked_api,
            event_dropped=self._metrics.event_dropped,
        )

    def _agents(self, kube: Kube) -> AgentClient:
        return AgentClient(
            ca_bundle=kube.authority.ca_bundle,
            signer=Signer(kube.authority.root),
            server_name=agent_name,
            now=time.time,
            monotonic=self._clock.monotonic,
            observer=self._metrics.asked_agent,
        )

    def _conductor(self, kube: Kube, agents: AgentClient) -> Conductor:
        return Conductor(
            cluster=kube.cluster,
            agents=agents,
            recorder=self._metrics,
            leadership=self._leadership,
            clock=self._clock,
            operator_namespace=self._settings.namespace,
            jitter=random.random,
            salt=lambda: secrets.token_hex(SALT_BYTES),
        )

    async def _serve(self, stack: AsyncExitStack, engine: Engine, sweep: Sweep) -> None:
        probes = ProbeServer(
            port=self._settings.probe_port,
            ailments=lambda: engine.health().ailments,
            ready=lambda: sweep.complete,
        )
        await stack.enter_async_context(probes)
        metrics = MetricsServer(port=self._settings.metrics_port, render=self._metrics.render)
        await stack.enter_async_context(metrics)

    async def _run_parts(self, kube: Kube, engine: Engine) -> None:
        keeper = LeaseKeeper(
            kube.client,
            namespace=self._settings.namespace,
            identity=self._settings.identity,
            leadership=self._leadership,
            now=self._clock.now,
            monotonic=self._clock.monotonic,
            jitter=random.random,
        )
        feed = KopfFeed(kube.access, read_pod=kube.reader.read)
        await feed.start()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):  # after kopf, which takes them for itself
            loop.add_signal_handler(number, engine.stop)
        async with asyncio.TaskGroup() as group:
            others = [group.create_task(keeper.run()), group.create_task(feed.run())]
            await engine.run(feed)
            await keeper.release()
            for other in others:
                other.cancel()

    def _gauges(self, conductor: Conductor, engine: Engine) -> Gauges:
        health, epoch = engine.health(), self._leadership.epoch
        return Gauges(
            tasks=conductor.world.phases,
            pods=len(conductor.world.pods),
            queue_keys=len(conductor.queue),
            queue_oldest_seconds=health.oldest_key_seconds,
            waits=len(conductor.listening),
            leader=epoch is not None,
            epoch=epoch or 0,
            loop_lag_seconds=health.loop_lag_seconds,
            sweep_overdue_seconds=health.sweep_overdue_seconds,
        )


def main() -> int:
    """Run the operator; return the exit status."""
    try:
        settings = Settings.from_env()
    except SettingsError as error:
        print(f"sandyard operator: {error}", file=sys.stderr)  # noqa: T201 - there are no logs yet
        return 2
    configure(settings.log_level)
    try:
        asyncio.run(Operator(settings).run())
    except (*EXPECTED, BaseExceptionGroup) as error:
        causes = tuple(_causes(error))
        if not all(isinstance(cause, EXPECTED) for cause in causes):
            raise
        for cause in causes:
            logger.error("the operator ends: %s", cause)  # noqa: TRY400 - the message says it all
        return 1
    return 0


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors in a group of groups."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _causes(inner)
    else:
        yield error


if __name__ == "__main__":
    sys.exit(main())
