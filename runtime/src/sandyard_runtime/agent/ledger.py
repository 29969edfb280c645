"""What this agent has promised, on disk before anybody is told: the accepted run, revoked ids, the result.

The first acceptance is the only one: its file appears complete or not at all, by an exclusive link, and
survives the agent's process. Nothing here decides; nothing here talks. Standard library and the wire models
only.
"""

import os
from pathlib import Path
from typing import Final

from sandyard_api.wire import RunStatus, Wire

MAX_REVOKED: Final = 1000  # one W1 may be replaced now and then, not for ever
_ACCEPTED: Final = "accepted.json"
_FINAL: Final = "final.json"
_ACKNOWLEDGED: Final = "acknowledged"
_MET: Final = "supervisor-met"
_REVOKED: Final = "revoked"


class Acceptance(Wire):
    """The one run of this pod's life."""

    run_id: str
    input_digest: str
    epoch: int
    accepted_at: str  # RFC 3339


class AlreadyAcceptedError(Exception):
    """An acceptance is on record."""


class TooManyRevokedError(Exception):
    """More run ids were revoked than a pod can ever see."""


class Ledger:
    """The record in one directory of the agent's own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._revoked = directory / _REVOKED
        self._revoked.mkdir(mode=0o700, exist_ok=True)
        self.revoked = {entry.name for entry in self._revoked.iterdir()}
        self.acceptance = self._read_acceptance()
        self.final = self._read_final()
        self.acknowledged = (directory / _ACKNOWLEDGED).exists()
        self.met_supervisor = (directory / _MET).exists()

    def accept(self, acceptance: Acceptance) -> None:
        """Record the acceptance durably; raises AlreadyAcceptedError where there is one."""
        draft = self._write(f"{_ACCEPTED}.draft", acceptance.to_json())
        try:
            os.link(draft, self._directory / _ACCEPTED)
        except FileExistsError as error:
            raise AlreadyAcceptedError from error
        _sync(self._directory)
        draft.unlink()
        self.acceptance = acceptance

    def revoke(self, run_id: str) -> None:
        """Promise durably never to accept ``run_id``."""
        if run_id in self.revoked:
            return
        if len(self.revoked) >= MAX_REVOKED:
            raise TooManyRevokedError
        (self._revoked / run_id).touch()
        _sync(self._revoked)
        self.revoked.add(run_id)

    def close(self, final: RunStatus) -> None:
        """Keep the run's last state with its result, complete or not at all."""
        self._write(f"{_FINAL}.draft", final.to_json()).replace(self._directory / _FINAL)
        _sync(self._directory)
        self.final = final

    def acknowledge(self) -> None:
        """Note that the result is safe elsewhere."""
        (self._directory / _ACKNOWLEDGED).touch()
        self.acknowledged = True

    def meet_supervisor(self) -> None:
        """Note that the one supervisor has connected: no second one ever will."""
        (self._directory / _MET).touch()
        self.met_supervisor = True

    def _write(self, name: str, content: bytes) -> Path:
        path = self._directory / name
        with path.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return path

    def _read_acceptance(self) -> Acceptance | None:
        try:
            return Acceptance.model_validate_json((self._directory / _ACCEPTED).read_bytes())
        except FileNotFoundError:
            return None

    def _read_final(self) -> RunStatus | None:
        try:
            return RunStatus.model_validate_json((self._directory / _FINAL).read_bytes())
        except FileNotFoundError:
            return None


def _sync(directory: Path) -> None:
    """Make a directory's entries durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
