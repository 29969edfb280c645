"""The file system and signal scope of a run, by Landlock: what it may read, the three places it may write.

Everything not named is closed whatever its mode says. Works from ABI 1 on; what a newer ABI adds is used where it
is there. Source: Documentation/userspace-api/landlock.rst.
"""

import ctypes
import errno
import os
from typing import Final

from sandyard_runtime.worker import syscalls

VERSION_FLAG: Final = 1
RULE_PATH_BENEATH: Final = 1
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
REFER: Final = 1 << 13  # since ABI 2
TRUNCATE: Final = 1 << 14  # since ABI 3
ALL_BY_ABI: Final = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
NET_BOTH: Final = 3  # bind and connect TCP
SCOPE_SIGNALS: Final = 2
SCOPE_BOTH: Final = 3  # signals, and abstract Unix sockets
NET_ABI: Final = 4
SCOPE_ABI: Final = 6

READABLE: Final = (
    "/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc/ld.so.cache", "/etc/localtime", "/etc/timezone",
    "/etc/mime.types", "/etc/fonts", "/etc/ssl", "/etc/alternatives", "/etc/python3.13", "/etc/matplotlibrc",
    "/opt/sandyard/site", "/sandyard/packages", "/proc", "/sys/devices/system/cpu", "/sys/fs/cgroup",
)  # fmt: skip
READABLE_WITH_EGRESS: Final = ("/etc/hosts", "/etc/nsswitch.conf", "/etc/resolv.conf", "/etc/gai.conf", "/etc/services")
DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
WRITABLE: Final = ("/workspace", "/tmp", "/dev/shm")  # noqa: S108 - mounts of the runner's own


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def abi() -> int:
    """Return the kernel's Landlock ABI, 0 where it has none."""
    try:
        return syscalls.call(syscalls.LANDLOCK_CREATE_RULESET, 0, 0, VERSION_FLAG)
    except OSError:
        return 0


def restrict(*, egress: bool, writable: tuple[str, ...] = WRITABLE, readable: tuple[str, ...] = READABLE) -> int:
    """Restrict the calling thread for good and return the ABI used; raises OSError. Needs no_new_privs."""
    version = abi()
    if version == 0:
        raise OSError(errno.ENOSYS, "this kernel has no Landlock")
    everything = ALL_BY_ABI[max(known for known in ALL_BY_ABI if known <= version)]
    ruleset = _Ruleset(
        everything,
        NET_BOTH if version >= NET_ABI and not egress else 0,
        SCOPE_BOTH if version >= SCOPE_ABI else 0,
    )
    size = 8 * (3 if version >= SCOPE_ABI else 2 if version >= NET_ABI else 1)
    descriptor = syscalls.call(syscalls.LANDLOCK_CREATE_RULESET, ctypes.byref(ruleset), size, 0)
    try:
        for path in (*readable, *(READABLE_WITH_EGRESS if egress else ())):
            _allow(descriptor, path, EXECUTE | READ_FILE | READ_DIR)
        for path in DEVICES:
            _allow(descriptor, path, READ_FILE | WRITE_FILE | (TRUNCATE & everything))
        for path in writable:
            _allow(descriptor, path, everything)
        syscalls.call(syscalls.LANDLOCK_RESTRICT_SELF, descriptor, 0)
    finally:
        os.close(descriptor)
    return version


def scope_signals() -> None:
    """Open a scope below the present one: its processes signal only each other. Nothing before ABI 6."""
    if abi() < SCOPE_ABI:
        return
    # Each layer forbids to rename and link from folder to folder unless it grants that itself.
    ruleset = _Ruleset(REFER, 0, SCOPE_SIGNALS)
    descriptor = syscalls.call(syscalls.LANDLOCK_CREATE_RULESET, ctypes.byref(ruleset), ctypes.sizeof(ruleset), 0)
    try:
        for path in WRITABLE:
            _allow(descriptor, path, REFER)
        syscalls.call(syscalls.LANDLOCK_RESTRICT_SELF, descriptor, 0)
    finally:
        os.close(descriptor)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not os.path.isdir(path):  # noqa: PTH112 - no pathlib in here: its import costs more than this module
            rights &= EXECUTE | READ_FILE | WRITE_FILE | TRUNCATE
        rule = _PathBeneath(rights, parent)
        syscalls.call(syscalls.LANDLOCK_ADD_RULE, ruleset, RULE_PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(parent)
