"""The accepted run while it lives: inputs out, reports in, a result at the end.

Whatever the supervisor reports is held to order and bounds; what breaks them ends the channel, and a result
always comes. A path it names is a label and never opened.
"""

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, assert_never

from sandyard_api.wire import Outcome, Part, PartKind, RunPhase, RunResult
from sandyard_runtime.agent.bundle import StagedBundle
from sandyard_runtime.agent.channel import ChannelError
from sandyard_runtime.agent.collector import Collector, CollectorError
from sandyard_runtime.agent.redaction import Redactor
from sandyard_runtime.agent.reports import (
    ArtifactPiece,
    Exited,
    Finished,
    Output,
    Placed,
    PlaceFailed,
    RunReport,
    Started,
)
from sandyard_runtime.agent.supervisor import Supervisor
from sandyard_runtime.wire import PAYLOAD_BYTES

PLACE_SECONDS: Final = 30.0  # for the inputs to be written in the workspace
COLLECT_SECONDS: Final = 120.0  # beyond the run's own time: killing, reaping, the artifacts
TRACEBACK_BYTES: Final = 4096  # its tail
ERROR_BYTES: Final = 4096  # of its message, the head


class LiveRun:
    """One run from its acceptance to its result."""

    def __init__(
        self, staged: StagedBundle, *, supervisor: Supervisor, directory: Path, notify: Callable[[], None]
    ) -> None:
        self._staged = staged
        self._supervisor = supervisor
        self._notify = notify
        self._redactor = Redactor(each.value for each in staged.manifest.env if each.secret)
        self._collector = Collector(directory, limits=staged.manifest.limits, redactor=self._redactor)
        self._placed = asyncio.Event()
        self._ended = asyncio.Event()
        self._exited: Exited | None = None
        self._finished: Finished | None = None
        self._failure = ""
        self._cancelled = False
        self._start_sent = False  # from here on it may have run
        self._all_sent = False  # from here on a cancel is heard
        self._started = 0.0  # monotonic
        self._stopped = 0.0
        self.phase = RunPhase.ACCEPTED
        self.started_at = ""
        self.isolation = supervisor.isolation

    @property
    def elapsed_milliseconds(self) -> int:
        """How long the run has been running."""
        if not self._started:
            return 0
        return round(((self._stopped or time.monotonic()) - self._started) * 1000)

    async def carry_out(self, run_id: str, *, timeout_seconds: float) -> RunResult:
        """Start the run and see it through; always returns a result."""
        self._supervisor.listen(self)
        try:
            async with asyncio.timeout(PLACE_SECONDS):
                await self._place()
            if not self._failure and not self._cancelled:
                async with asyncio.timeout(timeout_seconds + COLLECT_SECONDS):
                    await self._start(run_id, timeout_seconds)
                    await self._ended.wait()
        except (ChannelError, TimeoutError) as error:
            self._failure = self._failure or str(error) or "the supervisor did not answer in time"
        self._staged.close()
        return self._result()

    async def cancel(self) -> None:
        """Ask for the end, as soon as it can be heard."""
        self._cancelled = True
        if self._all_sent:
            with suppress(ChannelError):
                await self._supervisor.send({"type": "cancel"})

    def take(self, report: RunReport, payload: bytes) -> None:
        """Take one report."""
        try:
            self._take(report, payload)
        except (CollectorError, OSError) as error:
            raise ChannelError(str(error)) from error

    def lost(self) -> None:
        """Learn that the supervisor is gone."""
        self._failure = self._failure or "the runner went away"
        self._placed.set()
        self._ended.set()

    def _take(self, report: RunReport, payload: bytes) -> None:
        match report:
            case Placed():
                self._placed.set()
            case PlaceFailed():
                self._failure = report.message
                self._placed.set()
            case Started():
                self._begin(report)
            case Output():
                self._collector.output(report.stream, payload)
            case Exited():
                self._end(report)
            case ArtifactPiece():
                self._collector.artifact(report.path, payload, last=report.last)
            case Finished():
                self._finished = report
                self._ended.set()
            case _:
                assert_never(report)

    def _begin(self, report: Started) -> None:
        if self.phase is not RunPhase.ACCEPTED or not self._start_sent:
            raise ChannelError("a run was started that was not asked for")
        self._started = time.monotonic()
        self.started_at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.isolation = report.isolation
        self.phase = RunPhase.RUNNING
        self._notify()

    def _end(self, report: Exited) -> None:
        if self._exited is not None:
            raise ChannelError("a run ended twice")
        self._stopped = time.monotonic()
        self._exited = report
        self._collector.totals(stdout=report.stdout_bytes, stderr=report.stderr_bytes)

    async def _place(self) -> None:
        """Have the files written in the workspace."""
        for part, offset in self._staged.parts():
            if part.kind is PartKind.FILE:
                await self._send_blob({"type": "file", "path": part.path}, part, offset)
        await self._supervisor.send({"type": "place"})
        await self._placed.wait()

    async def _start(self, run_id: str, timeout_seconds: float) -> None:
        manifest = self._staged.manifest
        # Arguments and environment may be larger than a header: they are the payload.
        words = {"args": manifest.args, "env": {each.name: each.value for each in manifest.env}}
        payload = json.dumps(words, ensure_ascii=False).encode()
        if len(payload) > PAYLOAD_BYTES:
            raise ChannelError("arguments and environment together are too large")
        header = {
            "type": "start",
            "runId": run_id,
            "limits": manifest.limits.model_dump(by_alias=True),
            "egress": manifest.egress,
            "timeoutSeconds": timeout_seconds,
        }
        self._start_sent = True
        await self._supervisor.send(header, payload)
        for part, offset in self._staged.parts():
            if part.kind is not PartKind.FILE:
                await self._send_blob({"type": part.kind.value}, part, offset)
        self._all_sent = True
        if self._cancelled:
            await self.cancel()

    async def _send_blob(self, header: dict[str, object], part: Part, offset: int) -> None:
        end = offset + part.bytes
        while True:
            piece = self._staged.read(offset, min(PAYLOAD_BYTES, end - offset))
            offset += len(piece)
            await self._supervisor.send({**header, "last": offset == end}, piece)
            if offset == end:
                return

    def _result(self) -> RunResult:
        stdout, stderr, artifacts = self._collector.close()
        exited, hide = self._exited, self._redactor.text
        if exited is None:
            outcome = Outcome.SUPERVISOR_LOST
            if not self._start_sent:
                outcome = Outcome.CANCELLED if self._cancelled else Outcome.START_FAILED
            return RunResult(outcome=outcome, stdout=stdout, stderr=stderr, message=self._failure)
        warnings = self._collector.warnings + (self._finished.warnings if self._finished else ())
        if self._failure:
            warnings = (*warnings, f"after the script ended: {self._failure}")
        return RunResult(
            outcome=exited.outcome,
            exit_code=exited.exit_code,
            signal=exited.signal,
            error_type=hide(exited.error_type),
            error_message=_head(hide(exited.error_message)),
            traceback=_tail(hide(exited.traceback)),
            stdout=stdout,
            stderr=stderr,
            artifacts=artifacts,
            warnings=warnings,
            run_milliseconds=exited.run_milliseconds,
            message=exited.message,
        )


def _head(text: str) -> str:
    return text.encode()[:ERROR_BYTES].decode(errors="ignore")


def _tail(text: str) -> str:
    return text.encode()[-TRACEBACK_BYTES:].decode(errors="ignore")
