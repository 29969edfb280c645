"""Why an install failed, told from what uv printed; and what of that may be shown.

Pure. The order of the checks matters: an index that refuses the password makes every package look absent.
Nothing that identifies the index, and no credential, leaves in a message or an excerpt.
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from itertools import pairwise
from typing import Final
from urllib.parse import urlsplit

from sandyard_api.wire import TEXT_BYTES

MESSAGE_CHARACTERS: Final = 1024
SHORTEST_SECRET: Final = 4  # shorter ones would blot out ordinary words
INDEX: Final = "<index>"
HIDDEN: Final = "[redacted]"
_URL: Final = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s`'\"()<>]+")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Reason(StrEnum):
    """The install reasons of the API."""

    INDEX_UNAVAILABLE = "IndexUnavailable"
    INDEX_AUTH_FAILED = "IndexAuthFailed"
    DEPENDENCY_NOT_FOUND = "DependencyNotFound"
    NO_WHEEL_AVAILABLE = "NoWheelAvailable"
    DEPENDENCY_CONFLICT = "DependencyConflict"
    HASH_MISMATCH = "HashMismatch"
    INSTALL_TIMEOUT = "InstallTimeout"
    INSTALL_FAILED = "InstallFailed"


# Each pattern is a phrase of uv's; the first that is found decides.
_SIGNS: Final = (
    (
        Reason.INDEX_AUTH_FAILED,
        r"40[137] (?:Unauthorized|Forbidden|Proxy Authentication)|lack of valid authentication credentials",
    ),
    (Reason.HASH_MISMATCH, r"[Hh]ash mismatch|[Hh]ashes? .*did not match"),
    (Reason.INSTALL_FAILED, r"No space left on device|File too large|[Ii]nvalid wheel"),
    (
        Reason.INDEX_UNAVAILABLE,
        r"HTTP status (?:server|client) error|[Rr]equest failed|error sending request|response body",
    ),
    (Reason.INSTALL_FAILED, r"[Ff]ailed to (?:unzip|extract)"),
    (Reason.INDEX_UNAVAILABLE, r"[Ff]ailed to (?:fetch|download)"),
    (
        Reason.NO_WHEEL_AVAILABLE,
        r"no usable wheels|no wheels with a matching|requires Python|building from source is disabled",
    ),
    (Reason.DEPENDENCY_NOT_FOUND, r"was not found in the package registry"),
    (Reason.DEPENDENCY_CONFLICT, r"incompatible|conclude that you require"),
    (
        Reason.DEPENDENCY_NOT_FOUND,
        r"there (?:is|are) no versions? of|(?:only|following versions of) .* (?:is|are) available",
    ),
    (Reason.DEPENDENCY_CONFLICT, r"No solution found|requirements are unsatisfiable"),
)
_COMPILED: Final = tuple((reason, re.compile(pattern)) for reason, pattern in _SIGNS)


def diagnose(stderr: str) -> Reason:
    """Return the reason that uv's words stand for."""
    for reason, sign in _COMPILED:
        if sign.search(stderr):
            return reason
    return Reason.INSTALL_FAILED


class Curtain:
    """Hides the index and its credentials in text."""

    def __init__(self, *, url: str, netrc: str) -> None:
        words = set(_netrc_secrets(netrc))
        parts = urlsplit(url)
        words |= {word for word in (parts.password, parts.username) if word}
        self._secrets = sorted(words, key=len, reverse=True)
        self._hosts = sorted({host for host in (parts.netloc, parts.hostname) if host}, key=len, reverse=True)

    def hide(self, text: str) -> str:
        """Return ``text`` with every URL reduced to its last segment."""
        text = _URL.sub(_reduce, text)
        for host in self._hosts:
            text = text.replace(host, INDEX)
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return _CONTROL.sub("", text)

    def excerpt(self, text: str) -> str:
        """Return the last 16 KiB that may be shown."""
        return self.hide(text).encode()[-TEXT_BYTES:].decode(errors="ignore")

    def message(self, text: str) -> str:
        """Return the first sentences of uv's explanation."""
        lines = [
            line.strip().removeprefix("error: ").removeprefix("cause: ")
            for line in self.hide(text).splitlines()
            if line.strip() and not line.startswith(("warning:", "Using ", "Resolved ", "Prepared "))
        ]
        return " ".join(lines)[:MESSAGE_CHARACTERS]


def _reduce(match: re.Match[str]) -> str:
    segments = [part for part in urlsplit(match.group()).path.split("/") if part]
    return "/".join((INDEX, *segments[-1:]))


def _netrc_secrets(netrc: str) -> Iterable[str]:
    words = netrc.split()
    for keyword, value in pairwise(words):
        if keyword in {"login", "password", "account"} and len(value) >= SHORTEST_SECRET:
            yield value
