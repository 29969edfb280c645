"""What a run leaves behind, gathered on the agent's own disk: two streams and the artifacts.

Everything comes through the supervisor's channel; no path of the workspace is ever opened, an artifact's
path is a label and its bytes land in a file we name. Counts and sizes are held to the run's limits whatever
arrives. Standard library and the wire models only.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from sandyard_api.wire import Artifact, RunLimits, Stream
from sandyard_runtime.agent.media import SNIFF_BYTES, media_type
from sandyard_runtime.agent.redaction import Redactor
from sandyard_runtime.agent.spool import Spool

STDOUT: Final = "stdout"
STDERR: Final = "stderr"
PATHS_BYTES: Final = 128 * 1024  # of all artifacts together: a result must fit into one reply, and into etcd


class CollectorError(Exception):
    """The supervisor sent what no supervisor of ours sends."""


@dataclass(slots=True)
class _Open:
    path: str
    file: IO[bytes]  # nowhere, for what is left out
    kept: bool
    digest: "hashlib._Hash"
    first: bytes = b""
    size: int = 0


class Collector:
    """The outputs of one run."""

    def __init__(self, directory: Path, *, limits: RunLimits, redactor: Redactor) -> None:
        self._directory = directory
        self._limits = limits
        self.redactor = redactor
        self._spools = {
            STDOUT: Spool(directory / STDOUT, cap=limits.stdout_bytes, redactor=redactor.stream()),
            STDERR: Spool(directory / STDERR, cap=limits.stderr_bytes, redactor=redactor.stream()),
        }
        self._artifacts: list[Artifact] = []
        self._open: _Open | None = None
        self._artifact_bytes = 0
        self._path_bytes = 0
        self._left_out = 0

    def output(self, stream: str, data: bytes) -> None:
        """Take a piece of a stream."""
        if stream not in self._spools:
            raise CollectorError("an unknown stream")
        self._spools[stream].write(data)

    def totals(self, *, stdout: int, stderr: int) -> None:
        """Take the supervisor's counts of all that was written."""
        self._spools[STDOUT].note_total(stdout)
        self._spools[STDERR].note_total(stderr)

    def artifact(self, path: str, data: bytes, *, last: bool) -> None:
        """Take a piece of an artifact; one comes after the other."""
        if self._open is None:
            self._begin(path)
        current = self._open
        if current is None or current.path != path:
            raise CollectorError("artifacts are interleaved")
        self._artifact_bytes += len(data)
        if self._artifact_bytes > self._limits.artifact_bytes:
            raise CollectorError("artifacts above their cap")
        current.file.write(data)
        current.digest.update(data)
        current.size += len(data)
        if len(current.first) < SNIFF_BYTES:
            current.first += data[: SNIFF_BYTES - len(current.first)]
        if last:
            self._finish(current)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was left out, and why."""
        if not self._left_out:
            return ()
        return (f"{self._left_out} artifacts were left out: their names are above {PATHS_BYTES} bytes together",)

    def close(self) -> tuple[Stream, Stream, tuple[Artifact, ...]]:
        """End everything; a half-received artifact is not one."""
        if self._open is not None:
            self._open.file.close()
            self._open = None
        return self._spools[STDOUT].close(), self._spools[STDERR].close(), tuple(self._artifacts)

    def _begin(self, path: str) -> None:
        if len(self._artifacts) + self._left_out >= self._limits.artifact_count:
            raise CollectorError("more artifacts than allowed")
        self._path_bytes += len(path.encode())
        kept = self._path_bytes <= PATHS_BYTES
        file = artifact_file(self._directory, len(self._artifacts)) if kept else Path(os.devnull)
        self._open = _Open(path=path, file=file.open("wb"), kept=kept, digest=hashlib.sha256())

    def _finish(self, current: _Open) -> None:
        current.file.close()
        self._open = None
        if not current.kept:
            self._left_out += 1
            return
        self._artifacts.append(
            Artifact(
                path=current.path,
                bytes=current.size,
                sha256=current.digest.hexdigest(),
                media_type=media_type(current.path, current.first),
            )
        )


def artifact_file(directory: Path, index: int) -> Path:
    """Return where the artifact of that index is kept."""
    return directory / f"artifact-{index}"
