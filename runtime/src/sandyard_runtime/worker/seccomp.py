"""The system call filter: a deny list in classic BPF, built here and loaded for good.

What a script needs goes on working (files, threads, children, stream socket pairs); the network, other
processes and the kernel's privileged doors answer EPERM. A call by a foreign table kills the process. Filters
stack and are inherited over exec. Source: seccomp(2), Documentation/userspace-api/seccomp_filter.rst.
"""

import ctypes
import errno
import platform
import struct
from collections.abc import Iterable
from typing import Final

from sandyard_runtime.worker import syscalls

ALLOW: Final = 0x7FFF0000
ERRNO: Final = 0x00050000
KILL: Final = 0x80000000
LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
AT_LEAST: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
MASK: Final = 0x54  # BPF_ALU | BPF_AND | BPF_K
RETURN: Final = 0x06
NUMBER, ARCH, ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
MODE_FILTER: Final = 1
AF_UNIX, AF_INET, AF_INET6 = 1, 2, 10
SOCK_STREAM, SOCK_DGRAM = 1, 2
TYPE_MASK: Final = 0xF  # without SOCK_NONBLOCK and SOCK_CLOEXEC
MINUS_ONE: Final = 0xFFFFFFFF
SELF: Final = 0

NETWORK: Final = ("connect", "accept", "accept4", "bind", "listen")
NEVER: Final = (
    "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "process_madvise", "process_mrelease", "kcmp",
    "bpf", "perf_event_open", "userfaultfd", "keyctl", "add_key", "request_key",
    "io_uring_setup", "io_uring_enter", "io_uring_register", "unshare", "setns", "mount", "umount2", "pivot_root",
    "chroot", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr",
    "open_by_handle_at", "name_to_handle_at", "init_module", "finit_module", "delete_module", "kexec_load",
    "kexec_file_load", "reboot", "swapon", "swapoff", "acct", "quotactl", "syslog", "settimeofday", "clock_settime",
    "adjtimex", "clock_adjtime", "iopl", "ioperm", "move_pages", "migrate_pages", "personality", "lookup_dcookie",
    "vhangup", "msgget", "semget", "shmget", "mq_open",
)  # fmt: skip
ONLY_ON_ITSELF: Final = (
    "prlimit64",
    "sched_setaffinity",
    "sched_setscheduler",
    "sched_setparam",
    "sched_setattr",
)
NOT_TO_INIT: Final = (("kill", 0), ("tkill", 0), ("tgkill", 0), ("tgkill", 1), ("rt_sigqueueinfo", 0),
                      ("rt_tgsigqueueinfo", 0), ("rt_tgsigqueueinfo", 1), ("pidfd_open", 0))  # fmt: skip

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, operand
DENY: Final[Instruction] = (RETURN, 0, 0, ERRNO | errno.EPERM)
PASS: Final[Instruction] = (RETURN, 0, 0, ALLOW)


def _argument(index: int, *, high: bool = False) -> Instruction:
    return (LOAD, 0, 0, ARGUMENTS + 8 * index + (4 if high else 0))


def _for_call(number: int, body: list[Instruction]) -> list[Instruction]:
    """Run a body, which ends in a return, for one system call; then have its number again."""
    return [(EQUAL, 0, len(body), number), *body]


def _unless(index: int, values: Iterable[int], *, mask: int | None = None) -> list[Instruction]:
    """Pass when the low half of an argument is one of these, else deny."""
    wanted = list(values)
    loads = [_argument(index), *([(MASK, 0, 0, mask)] if mask is not None else [])]
    tests: list[Instruction] = [(EQUAL, len(wanted) - place, 0, value) for place, value in enumerate(wanted)]
    return [*loads, *tests, DENY, PASS]


def _if_any(index: int, values: Iterable[int]) -> list[Instruction]:
    """Deny when the low half of an argument is one of these, else pass."""
    wanted = list(values)
    tests: list[Instruction] = [(EQUAL, len(wanted) - place, 0, value) for place, value in enumerate(wanted)]
    return [_argument(index), *tests, PASS, DENY]


def _both_zero(first: int, second: int) -> list[Instruction]:
    """Pass when two arguments are zero, else deny."""
    return [_argument(first), (EQUAL, 0, 3, 0), _argument(second), (EQUAL, 0, 1, 0), PASS, DENY]


def program(*, egress: bool) -> list[Instruction]:
    """Return the filter; with ``egress`` TCP and UDP sockets are left to the network policy."""
    table = syscalls.architecture()
    if table is None:
        raise OSError(errno.ENOSYS, "no system call table for this architecture")
    code: list[Instruction] = [
        (LOAD, 0, 0, ARCH),
        (EQUAL, 1, 0, table.audit),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
    ]
    if table.x32_bit:
        code += [(AT_LEAST, 0, 1, table.x32_bit), (RETURN, 0, 0, KILL)]
    number = table.numbers
    # glibc falls back to clone only on ENOSYS, and clone3 hides its flags from a filter.
    code += _for_call(number["clone3"], [(RETURN, 0, 0, ERRNO | errno.ENOSYS)])
    for name in NEVER:
        if name in number:
            code += _for_call(number[name], [DENY])
    for name in ONLY_ON_ITSELF:
        code += _for_call(number[name], _unless(0, (SELF,)))
    code += _for_call(number["setpriority"], _both_zero(0, 1))
    code += _for_call(number["ioprio_set"], [_argument(1), (EQUAL, 1, 0, SELF), DENY, PASS])
    for name, indexes in _grouped(NOT_TO_INIT):
        body = [step for index in indexes[:-1] for step in _init_test(index)] + _if_any(indexes[-1], (1, MINUS_ONE))
        code += _for_call(number[name], body)
    code += _for_call(number["socketpair"], [_argument(0), (EQUAL, 1, 0, AF_UNIX), DENY,
                                             *_unless(1, (SOCK_STREAM,), mask=TYPE_MASK)])  # fmt: skip
    if egress:
        code += _for_call(number["socket"], [_argument(0), (EQUAL, 2, 0, AF_INET), (EQUAL, 1, 0, AF_INET6), DENY,
                                             *_unless(1, (SOCK_STREAM, SOCK_DGRAM), mask=TYPE_MASK)])  # fmt: skip
    else:
        for name in ("socket", *NETWORK):
            code += _for_call(number[name], [DENY])
        # sendto with an address; without one it is a plain send on a pair
        code += _for_call(number["sendto"], [_argument(4), (EQUAL, 1, 0, 0), DENY,
                                             _argument(4, high=True), (EQUAL, 1, 0, 0), DENY, PASS])  # fmt: skip
    return [*code, PASS]


def _grouped(pairs: Iterable[tuple[str, int]]) -> Iterable[tuple[str, list[int]]]:
    groups: dict[str, list[int]] = {}
    for name, index in pairs:
        groups.setdefault(name, []).append(index)
    return groups.items()


def _init_test(index: int) -> list[Instruction]:
    return [_argument(index), (EQUAL, 0, 1, 1), DENY, (EQUAL, 0, 1, MINUS_ONE), DENY]


def load(*, egress: bool) -> None:
    """Put the calling thread below the filter for good; raises OSError. Needs no_new_privs."""
    instructions = program(egress=egress)
    raw = b"".join(struct.pack("=HBBI", *each) for each in instructions)
    buffer = ctypes.create_string_buffer(raw, len(raw))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    loaded = Program(len(instructions), ctypes.addressof(buffer))
    syscalls.call(syscalls.SECCOMP[platform.machine()], MODE_FILTER, 0, ctypes.byref(loaded))
