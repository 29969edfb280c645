"""The runner's PID 1 as this agent sees it: not there yet, ready, or lost for good.

Exactly one connection is accepted in a pod's life. Reports go to whoever listens for the run; a channel
that ends, for whatever reason, is never opened again.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final, Protocol

from sandyard_api import names
from sandyard_api.wire import Isolation, SupervisorPhase
from sandyard_runtime.agent.changes import Changes
from sandyard_runtime.agent.channel import Channel, ChannelError, accept
from sandyard_runtime.agent.ledger import Ledger
from sandyard_runtime.agent.reports import Ready, RunReport, read_report
from sandyard_runtime.agent.settings import Settings

READY_SECONDS: Final = 60.0  # from connecting to being ready
log = logging.getLogger(__name__)


class Listener(Protocol):
    """The run, as far as the channel is concerned."""

    def take(self, report: RunReport, payload: bytes) -> None:
        """Take a report; raises ChannelError for one that is out of order or out of bounds."""

    def lost(self) -> None:
        """Learn that no report will come any more."""


class Supervisor:
    """The one supervisor of this pod."""

    def __init__(self, settings: Settings, *, ledger: Ledger, changes: Changes) -> None:
        self._settings = settings
        self._ledger = ledger
        self._changes = changes
        self._channel: Channel | None = None
        self._listener: Listener | None = None
        self.phase = SupervisorPhase.LOST if ledger.met_supervisor else SupervisorPhase.STARTING
        self.python = ""
        self.isolation = Isolation()

    async def run(self) -> None:
        """Accept the supervisor and read its reports until it is gone."""
        if self.phase is SupervisorPhase.LOST:
            return
        path = self._settings.at(names.CONTROL_SOCKET)
        channel = await accept(path, uid=self._settings.runner_uid)
        self._ledger.meet_supervisor()
        try:
            async with asyncio.timeout(READY_SECONDS):
                self._take_ready(*await channel.receive())
            self._channel = channel
            self._changes.notify()
            while True:
                self._dispatch(*await channel.receive())
        except (ChannelError, ValueError, RecursionError, TimeoutError) as error:
            log.warning("the supervisor is lost: %s", error)
        except Exception:
            log.exception("the supervisor is given up")
        finally:
            self._lose(channel)

    async def send(self, header: Mapping[str, Any], payload: bytes = b"") -> None:
        """Send a frame; raises ChannelError when the supervisor is lost."""
        if self._channel is None:
            raise ChannelError("there is no supervisor")
        await self._channel.send(header, payload)

    def listen(self, listener: Listener) -> None:
        """Pass the run's reports to ``listener`` from now on."""
        self._listener = listener

    def _take_ready(self, header: bytes, _payload: bytes) -> None:
        report = read_report(header)
        if not isinstance(report, Ready):
            raise ChannelError("the first report was not that it is ready")
        self.python = report.python
        self.isolation = report.isolation
        self.phase = SupervisorPhase.READY

    def _dispatch(self, header: bytes, payload: bytes) -> None:
        report = read_report(header)
        if isinstance(report, Ready) or self._listener is None:
            raise ChannelError("a report nobody waits for")
        self._listener.take(report, payload)

    def _lose(self, channel: Channel) -> None:
        channel.close()
        self._channel = None
        self.phase = SupervisorPhase.LOST
        if self._listener is not None:
            self._listener.lost()
        self._changes.notify()
