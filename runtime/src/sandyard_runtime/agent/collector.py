"""What a run leaves behind, gathered on the agent's own disk: two streams and the artifacts.

Everything comes through the supervisor's channel; no path of the workspace is ever opened, an artifact's
path is a label and its bytes land in a file we name. Counts and sizes are held to the run's limits whatever
arrives. Standard library and the wire models only.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from sandyard_api.wire import Artifact, RunLimits, Stream
from sandyard_runtime.agent.media import SNIFF_BYTES, media_type
from sandyard_runtime.agent.redaction import Redactor
from sandyard_runtime.agent.spool import Spool

STDOUT: Final = "stdout"
STDERR: Final = "stderr"
MAX_PATH_BYTES: Final = 4096


class CollectorError(Exception):
    """The supervisor sent what no supervisor of ours sends."""


@dataclass(slots=True)
class _Open:
    path: str
    file: IO[bytes]
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

    def close(self) -> tuple[Stream, Stream, tuple[Artifact, ...]]:
        """End everything; a half-received artifact is not one."""
        if self._open is not None:
            self._open.file.close()
            self._open = None
        return self._spools[STDOUT].close(), self._spools[STDERR].close(), tuple(self._artifacts)

    def _begin(self, path: str) -> None:
        if len(self._artifacts) >= self._limits.artifact_count:
            raise CollectorError("more artifacts than allowed")
        if not 0 < len(path.encode(errors="replace")) <= MAX_PATH_BYTES:
            raise CollectorError("an artifact's path is empty or too long")
        file = artifact_file(self._directory, len(self._artifacts)).open("wb")
        self._open = _Open(path=path, file=file, digest=hashlib.sha256())

    def _finish(self, current: _Open) -> None:
        current.file.close()
        self._open = None
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
