"""Locks the calling process down for the installer: the walls of a run, but with a network and its own places.

Everything it starts inherits it. Runs in the installer's launcher before uv does; a kernel without Landlock leaves
the rest in force. Standard library only, for it is on the install's path.
"""

import os
import resource
from typing import Final

from sandyard_runtime.worker import landlock, seccomp, syscalls

PR_SET_PDEATHSIG: Final = 1
SIGKILL: Final = 9
OPEN_FILES: Final = 1024
OOM_FIRST: Final = "1000"  # the kernel takes the installer before the agent


def confine(*, readable: tuple[str, ...], writable: tuple[str, ...], max_file_bytes: int) -> None:
    """Lock this process down for good."""
    syscalls.prctl(PR_SET_PDEATHSIG, SIGKILL)
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:  # noqa: PTH123 - pathlib costs start-up
        file.write(OOM_FIRST)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_bytes, max_file_bytes))
    os.umask(0o022)
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    if landlock.abi():
        landlock.restrict(egress=True, readable=readable, writable=writable)
    seccomp.load(egress=True)
