"""The helper that sends the artifacts: a process of its own, locked to reading the output folder."""

import json
import os

from sandyard_runtime import wire
from sandyard_runtime.supervisor.link import Link, LinkLostError
from sandyard_runtime.supervisor.workspace import FOLDER, OUTPUT, Collection
from sandyard_runtime.worker import landlock, seccomp, syscalls


def collect(link: Link, limits: dict[str, int]) -> list[str]:
    """Have the helper send the artifacts; return its warnings. Nothing else is sent meanwhile."""
    if is_empty(OUTPUT):
        return []
    link.flush_all()
    reader, writer = os.pipe()
    helper = os.fork()
    if helper == 0:
        os.close(reader)
        os._exit(help_collect(link, limits, writer))
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read(wire.HEADER_BYTES)
    status = os.waitpid(helper, 0)[1]
    link.connection.setblocking(False)  # noqa: FBT003 - the helper's own setting was on the same open file
    if status != 0:
        raise LinkLostError("the helper died, perhaps within a frame")
    warnings: list[str] = json.loads(said)
    return warnings


def help_collect(link: Link, limits: dict[str, int], writer: int) -> int:
    """Lock down to reading, send the files, tell the warnings; the helper's exit code."""
    try:
        send_all(link, limits, writer)
    except OSError:
        return 1
    return 0


def send_all(link: Link, limits: dict[str, int], writer: int) -> None:
    """Do a helper's work; raises OSError."""
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    if landlock.abi():
        landlock.restrict(egress=False, writable=(), readable=(OUTPUT,))
    seccomp.load(egress=False)
    link.connection.setblocking(True)  # noqa: FBT003 - the method's own signature
    collection = Collection(
        link.connection.sendall, max_bytes=limits["artifactBytes"], max_count=limits["artifactCount"]
    )
    os.write(writer, json.dumps(collection.send()).encode())


def is_empty(path: str) -> bool:
    """Whether there is a folder with nothing in it: most scripts leave no file."""
    try:
        folder = os.open(path, FOLDER)
    except OSError:
        return False
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is None
    finally:
        os.close(folder)
