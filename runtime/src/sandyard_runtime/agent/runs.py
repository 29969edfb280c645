"""The one run of this pod's life: accepted at most once, ever; its result held until it is safe elsewhere.

The order is the promise: an acceptance is on disk before the supervisor hears of it, a revocation is on
disk before it is answered, and a higher epoch shuts every lower one out.
"""

import asyncio
import logging
from collections.abc import Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from sandyard_api.wire import (
    BundleReply,
    ErrorCode,
    Outcome,
    RunPhase,
    RunResult,
    RunStatus,
    StartRequest,
    SupervisorPhase,
)
from sandyard_runtime.agent.bundle import StagedBundle
from sandyard_runtime.agent.changes import Changes
from sandyard_runtime.agent.collector import artifact_file
from sandyard_runtime.agent.gate import RefusedError
from sandyard_runtime.agent.ledger import Acceptance, AlreadyAcceptedError, Ledger, TooManyRevokedError
from sandyard_runtime.agent.run import LiveRun
from sandyard_runtime.agent.supervisor import Supervisor

MAX_RUN_SECONDS: Final = 7 * 24 * 3600.0
log = logging.getLogger(__name__)


class Runs:
    """Answers for every run id; only one of them is ever more than unknown or revoked."""

    def __init__(self, directory: Path, *, ledger: Ledger, supervisor: Supervisor, changes: Changes) -> None:
        self._directory = directory
        self._ledger = ledger
        self._supervisor = supervisor
        self._changes = changes
        self._staged: StagedBundle | None = None
        self._live: LiveRun | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._epoch = ledger.acceptance.epoch if ledger.acceptance is not None else 0
        if ledger.acceptance is not None and ledger.final is None:
            # Another process of this agent accepted it and is gone. It may have run; it never runs again.
            lost = RunResult(outcome=Outcome.SUPERVISOR_LOST, message="the agent was restarted during the run")
            self._close(ledger.acceptance.run_id, lost)

    @property
    def bundle_digest(self) -> str:
        """The digest of the inputs at hand."""
        if self._ledger.acceptance is not None:
            return self._ledger.acceptance.input_digest
        return self._staged.digest if self._staged is not None else ""

    @property
    def must_serve(self) -> bool:
        """Whether somebody still has to fetch what is here."""
        return self._ledger.acceptance is not None and not self._ledger.acknowledged

    def current(self) -> RunStatus | None:
        """Return the accepted run's state, if there is one."""
        acceptance = self._ledger.acceptance
        return None if acceptance is None else self.status(acceptance.run_id)

    def status(self, run_id: str) -> RunStatus:
        """Return a run id's state as recorded."""
        acceptance = self._ledger.acceptance
        if acceptance is None or acceptance.run_id != run_id:
            phase = RunPhase.REVOKED if run_id in self._ledger.revoked else RunPhase.UNKNOWN
            return RunStatus(run_id=run_id, phase=phase)
        if self._ledger.final is not None:
            return self._ledger.final.model_copy(update={"acknowledged": self._ledger.acknowledged})
        return self._describe(run_id, None)

    async def wait(self, run_id: str, *, seconds: float) -> RunStatus:
        """Return the state at its next change of phase, at the latest after ``seconds``."""
        before = self.status(run_id).phase
        if before not in {RunPhase.REVOKED, RunPhase.FINISHED}:
            await self._changes.until(lambda: self.status(run_id).phase is not before, seconds=seconds)
        return self.status(run_id)

    def check_stageable(self) -> None:
        """Refuse inputs once a run was accepted."""
        if self._ledger.acceptance is not None:
            raise RefusedError(ErrorCode.CONFLICT, "this pod has accepted its run")

    def stage(self, staged: StagedBundle) -> BundleReply:
        """Take inputs in place of what was staged before."""
        try:
            self.check_stageable()
        except RefusedError:
            staged.close()
            raise
        if self._staged is not None:
            self._staged.close()
        self._staged = staged
        return BundleReply(digest=staged.digest)

    def start(self, run_id: str, request: StartRequest) -> RunStatus:
        """Accept the run, once ever; the same request again finds its state."""
        if request.epoch < self._epoch:
            raise RefusedError(ErrorCode.STALE_EPOCH, f"epoch {self._epoch} has spoken")
        if not 0 < request.run_timeout_seconds <= MAX_RUN_SECONDS:
            raise RefusedError(ErrorCode.BAD_REQUEST, "the run's time is out of range")
        self._epoch = request.epoch
        acceptance = self._ledger.acceptance
        if acceptance is not None:
            if (acceptance.run_id, acceptance.input_digest) != (run_id, request.input_digest):
                raise RefusedError(ErrorCode.CONFLICT, "this pod has accepted another run")
            return self.status(run_id)
        if run_id in self._ledger.revoked:
            raise RefusedError(ErrorCode.REVOKED, "this run id was revoked")
        if self._supervisor.phase is not SupervisorPhase.READY:
            raise RefusedError(ErrorCode.NOT_READY, f"the supervisor is {self._supervisor.phase}")
        staged = self._staged
        if staged is None or staged.digest != request.input_digest:
            raise RefusedError(ErrorCode.CONFLICT, "these are not the inputs at hand")
        self._record(run_id, request)
        self._staged = None
        self._live = LiveRun(
            staged,
            supervisor=self._supervisor,
            directory=self._directory,
            notify=self._changes.notify,
        )
        self._spawn(self._carry_out(self._live, run_id, request.run_timeout_seconds))
        return self.status(run_id)

    def _record(self, run_id: str, request: StartRequest) -> None:
        acceptance = Acceptance(
            run_id=run_id,
            input_digest=request.input_digest,
            epoch=request.epoch,
            accepted_at=datetime.now(UTC).isoformat(),
        )
        try:
            self._ledger.accept(acceptance)
        except (AlreadyAcceptedError, OSError) as error:
            log.exception("the acceptance could not be recorded")
            raise RefusedError(ErrorCode.INTERNAL, "the acceptance could not be recorded") from error

    def cancel(self, run_id: str) -> RunStatus:
        """End the run; one that was not accepted yet never will be."""
        acceptance = self._ledger.acceptance
        if acceptance is None or acceptance.run_id != run_id:
            return self.revoke(run_id)
        if self._live is not None and self._ledger.final is None:
            self._spawn(self._live.cancel())
        return self.status(run_id)

    def revoke(self, run_id: str) -> RunStatus:
        """Promise never to accept this id, unless it was accepted: the state says which."""
        acceptance = self._ledger.acceptance
        if acceptance is None or acceptance.run_id != run_id:
            try:
                self._ledger.revoke(run_id)
            except TooManyRevokedError as error:
                raise RefusedError(ErrorCode.TOO_LARGE, "too many run ids were revoked") from error
        return self.status(run_id)

    def acknowledge(self, run_id: str) -> RunStatus:
        """Learn that the result is safe elsewhere."""
        status = self._known(run_id)
        if status.phase is not RunPhase.FINISHED:
            raise RefusedError(ErrorCode.CONFLICT, "the run has not finished")
        self._ledger.acknowledge()
        self._changes.notify()
        return self.status(run_id)

    def stream_file(self, run_id: str, stream: str) -> Path:
        """Return where a finished run's stream is kept."""
        if self._known(run_id).phase is not RunPhase.FINISHED:
            raise RefusedError(ErrorCode.NOT_READY, "the run has not finished")
        return self._existing(self._directory / stream)

    def artifact_file(self, run_id: str, index: int) -> Path:
        """Return where a finished run's artifact of that index is kept."""
        result = self._known(run_id).result
        if result is None or index >= len(result.artifacts):
            raise RefusedError(ErrorCode.NOT_FOUND, "there is no such artifact")
        return self._existing(artifact_file(self._directory, index))

    def _known(self, run_id: str) -> RunStatus:
        status = self.status(run_id)
        if status.phase in {RunPhase.UNKNOWN, RunPhase.REVOKED}:
            raise RefusedError(ErrorCode.NOT_FOUND, "this pod has no such run")
        return status

    def _existing(self, file: Path) -> Path:
        if not file.is_file():
            raise RefusedError(ErrorCode.NOT_FOUND, "the run left no such bytes")
        return file

    def _describe(self, run_id: str, result: RunResult | None) -> RunStatus:
        live = self._live
        status = RunStatus(
            run_id=run_id,
            phase=RunPhase.ACCEPTED if result is None else RunPhase.FINISHED,
            input_digest=self.bundle_digest,
            result=result,
        )
        if live is None:
            return status
        return status.model_copy(
            update={
                "phase": live.phase if result is None else RunPhase.FINISHED,
                "started_at": live.started_at,
                "elapsed_milliseconds": live.elapsed_milliseconds,
                "isolation": live.isolation,
            }
        )

    def _close(self, run_id: str, result: RunResult) -> None:
        final = self._describe(run_id, result)
        try:
            self._ledger.close(final)
        except OSError:
            log.exception("the result is held in memory alone")
            self._ledger.final = final
        self._changes.notify()

    async def _carry_out(self, live: LiveRun, run_id: str, timeout_seconds: float) -> None:
        try:
            result = await live.carry_out(run_id, timeout_seconds=timeout_seconds)
        except Exception:
            log.exception("the run was lost in the agent")
            result = RunResult(outcome=Outcome.SUPERVISOR_LOST, message="the agent failed; its log says why")
        self._close(run_id, result)

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
