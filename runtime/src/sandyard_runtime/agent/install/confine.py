"""Locks the calling process down for the installer: no new privileges, Landlock, seccomp, rlimits.

Everything it starts inherits it. Runs in the installer's launcher before uv does; a kernel without Landlock
leaves the rest in force. Standard library only, and little of it, for it is on the install's path.
"""

import ctypes
import os
import platform
import resource
import struct
from typing import Final

PR_SET_PDEATHSIG: Final = 1
PR_SET_NO_NEW_PRIVS: Final = 38
PR_SET_SECCOMP: Final = 22
SECCOMP_MODE_FILTER: Final = 2
SIGKILL: Final = 9
OPEN_FILES: Final = 1024
OOM_FIRST: Final = "1000"  # the kernel takes the installer before the agent

_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_VERSION: Final = 1  # flag: tell the ABI
_PATH_BENEATH: Final = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_DEVICES: Final = 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11  # character, socket, fifo, block
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_FILE_RIGHTS: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_RIGHTS_BY_ABI: Final = ((5, (1 << 16) - 1), (3, (1 << 15) - 1), (2, (1 << 14) - 1), (1, (1 << 13) - 1))
_NETWORK_ABI: Final = 4  # the attribute grows by a field
SCOPE_ABI: Final = 6
_SCOPE_ALL: Final = 3  # abstract sockets and signals stay inside

# What no installer needs, by architecture: AUDIT_ARCH and system call numbers of ptrace, process_vm_readv,
# process_vm_writev, pidfd_getfd, bpf, userfaultfd, perf_event_open, io_uring_setup, io_uring_enter,
# io_uring_register, keyctl, add_key, request_key, unshare, setns, setsid, setpgid.
_DENIED: Final = {
    "x86_64": (
        0xC000003E,
        (101, 310, 311, 438, 321, 323, 298, 425, 426, 427, 250, 248, 249, 272, 308, 112, 109),
    ),
    "aarch64": (
        0xC00000B7,
        (117, 270, 271, 438, 280, 282, 241, 425, 426, 427, 219, 217, 218, 97, 268, 157, 154),
    ),
}
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_X32: Final = 0x40000000  # the other numbering of x86-64; no number of aarch64 is so high
_AT_NUMBER, _AT_ARCH = 0, 4
_ALLOW, _KILL, _EPERM = 0x7FFF0000, 0x80000000, 0x00050001

_libc = ctypes.CDLL(None, use_errno=True)


def confine(*, readable: list[str], writable: list[str], max_file_bytes: int) -> None:
    """Lock this process down for good."""
    _check(_libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:  # noqa: PTH123 - pathlib costs start-up
        file.write(OOM_FIRST)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_bytes, max_file_bytes))
    os.umask(0o022)
    _check(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _restrict_files(readable, writable)
    _restrict_calls()


def landlock_abi() -> int:
    """Return what the kernel offers, below 1 for nothing."""
    abi: int = _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)
    return abi


def _restrict_files(readable: list[str], writable: list[str]) -> None:
    abi = landlock_abi()
    handled = next((rights for least, rights in _RIGHTS_BY_ABI if abi >= least), 0)
    if not handled:
        return
    fields = [handled]
    if abi >= _NETWORK_ABI:
        fields.append(0)
    if abi >= SCOPE_ABI:
        fields.append(_SCOPE_ALL)
    attribute = struct.pack(f"={len(fields)}Q", *fields)
    ruleset = _check(_libc.syscall(_CREATE_RULESET, attribute, ctypes.c_size_t(len(attribute)), 0))
    for path in readable:
        _allow(ruleset, path, handled & (_EXECUTE | _READ_FILE | _READ_DIR))
    for path in writable:
        _allow(ruleset, path, handled & ~_MAKE_DEVICES)
    _check(_libc.syscall(_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    if not os.path.isdir(path):  # noqa: PTH112 - pathlib costs start-up
        rights &= _FILE_RIGHTS
    rule = struct.pack("=Qi", rights, descriptor)
    _check(_libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0))
    os.close(descriptor)


def _restrict_calls() -> None:
    arch, denied = _DENIED[platform.machine()]
    filters = [
        (_LOAD, 0, 0, _AT_ARCH),
        (_EQUAL, 1, 0, arch),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _AT_NUMBER),
        (_AT_LEAST, len(denied) + 1, 0, _X32),
        *((_EQUAL, len(denied) - index, 0, number) for index, number in enumerate(denied)),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _EPERM),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *each) for each in filters))
    program = struct.pack("@HP", len(filters), ctypes.addressof(code))
    _check(_libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0))


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
