"""Secrets of a task taken out of what comes back.

A value given as secret and long enough to be told from ordinary text is replaced wherever it stands as it
was given, also across the pieces a stream arrives in. Encoded or split on purpose it is not found: this
guards against accidents, not against the script. Standard library only.
"""

import re
from collections.abc import Iterable
from typing import Final

SHORTEST_SECRET: Final = 8  # characters; shorter ones would blot out ordinary words
SHORTEST_REMAINDER: Final = 4  # of a secret that the cap cut in two
REDACTED: Final = "[redacted]"


class Redactor:
    """Replaces the secrets in whole texts, longest first."""

    def __init__(self, secrets: Iterable[str]) -> None:
        values = sorted(
            {value.encode() for value in secrets if len(value) >= SHORTEST_SECRET},
            key=lambda value: (-len(value), value),
        )
        self.values = tuple(values)
        self.longest = len(values[0]) if values else 0
        self.pattern = re.compile(b"|".join(map(re.escape, values))) if values else None

    def text(self, text: str) -> str:
        """Return ``text`` without the secrets."""
        if self.pattern is None:
            return text
        return self.pattern.sub(REDACTED.encode(), text.encode(errors="replace")).decode(errors="replace")

    def stream(self) -> "StreamRedactor":
        """Start on a stream that comes in pieces."""
        return StreamRedactor(self)


class StreamRedactor:
    """Replaces the secrets in a stream; holds back only what may still become one."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Take the next piece; return what can no longer be part of a secret."""
        pattern = self._redactor.pattern
        if pattern is None:
            return data
        data = self._held + data
        decided = max(0, len(data) - self._redactor.longest + 1)  # a secret that starts before this is whole
        done: list[bytes] = []
        position = 0
        for match in pattern.finditer(data):
            if match.start() >= decided:
                break
            done += data[position : match.start()], REDACTED.encode()
            position = match.end()
        end = max(decided, position)
        done.append(data[position:end])
        self._held = data[end:]
        return b"".join(done)

    def finish(self, *, torn: bool) -> bytes:
        """Return the rest; where the stream was cut short (``torn``), without the beginning of a secret."""
        pattern, rest = self._redactor.pattern, self._held
        self._held = b""
        if pattern is None:
            return rest
        rest = pattern.sub(REDACTED.encode(), rest)
        if torn:
            for length in range(min(len(rest), self._redactor.longest), SHORTEST_REMAINDER - 1, -1):
                if any(value.startswith(rest[-length:]) for value in self._redactor.values):
                    return rest[:-length] + REDACTED.encode()
        return rest
