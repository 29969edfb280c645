"""Lock-down of a process that will run a user's code, and the probe that tells what is in force.

Order matters: what needs a dumpable process first, then no_new_privs, Landlock, seccomp. Raises OSError when a
part cannot be applied or does not hold; the caller runs nothing then.
"""

import errno
import os
import resource
import socket
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from sandyard_runtime.worker import landlock, seccomp, syscalls

OOM_FIRST: Final = "1000"  # the kernel kills a run before anything of ours
NICE: Final = 10  # within the container PID 1 goes first, whatever a run forks
FULL_RANGE: Final = 4294967295  # the length of an identity uid map: no user namespace


class Isolation(NamedTuple):
    """What is in force for a process, as it found out itself."""

    egress: bool
    landlock_abi: int
    user_namespace: bool

    def told(self) -> dict[str, Any]:
        """Return it as the agent reads it; without the filter there is no isolation to tell of."""
        return {
            "network": "Egress" if self.egress else "None",
            "seccomp": True,
            "landlockABI": self.landlock_abi,
            "userNamespace": self.user_namespace,
        }


def enter(*, egress: bool) -> Isolation:
    """Lock the calling process down for good and tell what is in force."""
    os.nice(NICE)
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)
    with open("/proc/self/oom_score_adj", "w") as score:  # noqa: PTH123 - no pathlib before a run
        score.write(OOM_FIRST)
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    version = landlock.abi()
    if version:
        landlock.restrict(egress=egress)
    seccomp.load(egress=egress)
    return probe(egress=egress, landlock_abi=version)


def probe(*, egress: bool, landlock_abi: int) -> Isolation:
    """Try what must fail; raises OSError where it does not."""
    families = {"a Unix socket": socket.AF_UNIX}
    if not egress:
        families |= {"an IPv4 socket": socket.AF_INET, "an IPv6 socket": socket.AF_INET6}
    attempts: dict[str, Callable[[], object]] = {
        name: lambda family=family: socket.socket(family, socket.SOCK_STREAM).close()  # type: ignore[misc]
        for name, family in families.items()
    }
    attempts["a signal to PID 1"] = lambda: os.kill(1, 0)
    attempts["the limits of PID 1"] = lambda: resource.prlimit(1, resource.RLIMIT_NOFILE)
    if landlock_abi:
        attempts["a look at the root folder"] = lambda: os.listdir("/")  # noqa: PTH208 - no pathlib
    for name, attempt in attempts.items():
        if not _refused(attempt):
            raise OSError(errno.EPERM, f"{name} was possible below the lock-down")
    return Isolation(egress, landlock_abi, user_namespace())


def show_files() -> None:
    """Let PID 1 see this process's open files, to measure those without a name; the filter keeps it so."""
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)


def user_namespace() -> bool:
    """Whether this process's users are mapped, so that user ids and their limits are the pod's own."""
    with open("/proc/self/uid_map") as table:  # noqa: PTH123
        return int(table.read().split()[2]) != FULL_RANGE


def limit(*, open_files: int, processes: int, file_bytes: int) -> None:
    """Set the run's own limits; processes only where the user id is the pod's own."""
    files = min(open_files, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    if user_namespace():
        resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))


def _refused(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except PermissionError:
        return True
    except OSError as error:
        return error.errno == errno.EAFNOSUPPORT
    return False
