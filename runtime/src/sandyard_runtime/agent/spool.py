"""One output stream of a run on the agent's own disk: counted whole, kept up to its cap.

Of a stream above the cap the first bytes stay. What is kept is what is served: secrets are taken out before.
Standard library and the wire models only.
"""

import hashlib
from pathlib import Path

from sandyard_api.wire import TEXT_BYTES, Stream
from sandyard_runtime.agent.excerpt import excerpt
from sandyard_runtime.agent.redaction import StreamRedactor


class Spool:
    """A stream being received."""

    def __init__(self, path: Path, *, cap: int, redactor: StreamRedactor) -> None:
        self.path = path
        self._cap = cap
        self._redactor = redactor
        self._file = path.open("wb", buffering=0)
        self._digest = hashlib.sha256()
        self._kept = 0
        self._written = 0

    def write(self, data: bytes) -> None:
        """Take the next piece."""
        self._written += len(data)
        if self._kept < self._cap:
            self._keep(self._redactor.feed(data))

    def note_total(self, total: int) -> None:
        """Take the supervisor's count of all that was written, where it passed on less."""
        self._written = max(self._written, total)

    def close(self) -> Stream:
        """End the stream and describe it."""
        self._keep(self._redactor.finish(torn=self._written > self._cap))
        self._file.close()
        with self.path.open("rb") as file:
            head = file.read(TEXT_BYTES)
            file.seek(max(0, self._kept - TEXT_BYTES))
            tail = file.read(TEXT_BYTES)
        return Stream(
            text=excerpt(head, tail, size=self._kept, limit=TEXT_BYTES),
            bytes=self._written,
            truncated=self._written > self._cap,
            sha256=self._digest.hexdigest(),
        )

    def _keep(self, data: bytes) -> None:
        data = data[: self._cap - self._kept]
        self._file.write(data)
        self._digest.update(data)
        self._kept += len(data)
