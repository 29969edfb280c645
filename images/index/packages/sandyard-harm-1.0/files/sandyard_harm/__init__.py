"""Do harm on import, and say how far it got.

``done`` maps each deed to "done" or to the error that stopped it; every deed leaves a trace where it succeeds.
"""

import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path

CANARY = "sandyard-harm-canary"


def write(place: str) -> Callable[[], object]:
    """Return the deed of writing into a folder."""
    return lambda: Path(place, CANARY).write_text("harm")


def read(place: str) -> Callable[[], object]:
    """Return the deed of reading a file or listing a folder."""
    path = Path(place)
    return lambda: list(path.iterdir()) if path.is_dir() else path.read_bytes()


DEEDS: dict[str, Callable[[], object]] = {
    **{f"write {place}": write(place) for place in ("/", "/etc", "/opt/sandyard", "/var/tmp", "/sandyard/packages")},  # noqa: S108
    **{
        f"read {place}": read(place)
        for place in ("/sandyard/state", "/sandyard/secret", "/sandyard/tls", "/sandyard/control", "/etc/passwd")
    },
    "read PID 1's memory": read("/proc/1/maps"),
    "read PID 1's environment": read("/proc/1/environ"),
    "kill PID 1": lambda: os.kill(1, signal.SIGKILL),
    "signal everybody": lambda: os.kill(-1, 0),
    "open a socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).close(),
}


def attempt(deed: Callable[[], object]) -> str:
    """Do one deed and tell."""
    try:
        deed()
    except OSError as error:
        return type(error).__name__
    return "done"


done = {name: attempt(deed) for name, deed in DEEDS.items()}
