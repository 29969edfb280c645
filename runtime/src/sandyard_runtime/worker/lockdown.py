"""Lock-down of a process that will run a user's code, and the probe that tells what is in force.

Order matters: what needs a dumpable process first, then no_new_privs, Landlock, seccomp. Raises OSError when a
part cannot be applied; the caller runs nothing then.
"""

import errno
import os
import resource
import socket
from dataclasses import dataclass
from typing import Final

from sandyard_runtime.worker import landlock, seccomp, syscalls

OOM_FIRST: Final = "1000"  # the kernel kills a run before anything of ours
FULL_RANGE: Final = 4294967295  # the length of an identity uid map: no user namespace


@dataclass(frozen=True, slots=True)
class Applied:
    """What a process has put itself under."""

    landlock_abi: int
    seccomp: bool


def enter(*, egress: bool, landlock_required: bool = False) -> Applied:
    """Lock the calling process down for good."""
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)
    with open("/proc/self/oom_score_adj", "w") as score:  # noqa: PTH123 - no pathlib before a run
        score.write(OOM_FIRST)
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    version = landlock.abi()
    if version or landlock_required:
        landlock.restrict(egress=egress)
    seccomp.load(egress=egress)
    probe(egress=egress)
    return Applied(version, seccomp=True)


def narrow(*, egress: bool) -> None:
    """Put a run into a domain of its own below the template's, so that it can signal only its own."""
    if landlock.abi():
        landlock.restrict(egress=egress)


def probe(*, egress: bool) -> None:
    """Raise OSError where a call that must fail does not."""
    for family in (socket.AF_UNIX, *(() if egress else (socket.AF_INET, socket.AF_INET6))):
        try:
            socket.socket(family, socket.SOCK_STREAM).close()
        except PermissionError:
            continue
        except OSError as error:
            if error.errno == errno.EAFNOSUPPORT:
                continue
            raise
        raise OSError(errno.EPERM, "a socket could be made below the filter")


def user_namespace() -> bool:
    """Whether this process's users are mapped, so that user ids and their limits are the pod's own."""
    with open("/proc/self/uid_map") as table:  # noqa: PTH123
        return int(table.read().split()[2]) != FULL_RANGE


def limit(*, open_files: int, processes: int, file_bytes: int) -> None:
    """Set the run's own limits; processes only where the user id is the pod's own."""
    hard = min(open_files, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    if user_namespace():
        resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))


def environment(extra: dict[str, str], *, output: str) -> None:
    """Replace the environment by the allowed one and the task's own."""
    os.environ.clear()
    os.environ.update(
        {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": "/workspace",
            "LANG": "C.UTF-8",
            "TMPDIR": "/tmp",  # noqa: S108 - a mount of the runner's own
            "TZ": "UTC",
            "MPLBACKEND": "Agg",
            "MPLCONFIGDIR": "/tmp/.matplotlib",  # noqa: S108
            "SANDYARD_OUTPUT_DIR": output,
            **extra,
        }
    )
