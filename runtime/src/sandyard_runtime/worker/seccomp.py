"""The system call filter: a deny list in classic BPF, built here and loaded for good.

What a script needs goes on working (files, threads, children, stream socket pairs); the network, other
processes and the kernel's privileged doors answer EPERM. A call by a foreign table kills the process. Filters
stack and are inherited over exec. Source: seccomp(2), Documentation/userspace-api/seccomp_filter.rst.
"""

import ctypes
import errno
import struct
from typing import Final

from sandyard_runtime.worker import syscalls

ALLOW: Final = 0x7FFF0000
ERRNO: Final = 0x00050000
KILL: Final = 0x80000000  # the whole process
LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
AND: Final = 0x54  # BPF_ALU | BPF_AND | BPF_K
EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
AT_LEAST: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
ANY_BIT: Final = 0x45  # BPF_JMP | BPF_JSET | BPF_K
RETURN: Final = 0x06
NUMBER, ARCH, ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
MODE_FILTER: Final = 1

AF_UNIX, AF_INET, AF_INET6 = 1, 2, 10
SOCK_STREAM, SOCK_DGRAM = 1, 2
TYPE_MASK: Final = 0xF  # without SOCK_NONBLOCK and SOCK_CLOEXEC
TCP, UDP, ANY_PROTOCOL = 6, 17, 0
NAMESPACES: Final = 0x7E020000  # every CLONE_NEW flag that clone knows
PROCESS: Final = 0  # PRIO_PROCESS
IO_PROCESS: Final = 1  # IOPRIO_WHO_PROCESS
SELF: Final = 0
INIT: Final = 1
EVERYONE: Final = 0xFFFFFFFF  # -1

NEVER: Final = (
    "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "process_madvise", "process_mrelease", "kcmp",
    # A folder of /proc is a pidfd too, and no filter sees whose.
    "pidfd_send_signal",
    "bpf", "perf_event_open", "userfaultfd", "fanotify_init", "keyctl", "add_key", "request_key",
    "io_uring_setup", "io_uring_enter", "io_uring_register", "unshare", "setns", "mount", "umount2", "pivot_root",
    "chroot", "open_tree", "open_tree_attr", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr",
    "open_by_handle_at", "name_to_handle_at", "init_module", "finit_module", "delete_module", "kexec_load",
    "kexec_file_load", "reboot", "swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "syslog", "settimeofday",
    "clock_settime", "adjtimex", "clock_adjtime", "sethostname", "setdomainname", "iopl", "ioperm", "modify_ldt",
    "move_pages", "migrate_pages", "personality", "lookup_dcookie", "vhangup",
    # The containers of a pod share these.
    "msgget", "semget", "shmget", "mq_open",
)  # fmt: skip
CLOSED_WITHOUT_EGRESS: Final = ("socket", "connect", "accept", "accept4", "bind", "listen")
ONLY_ON_ITSELF: Final = ("prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr")
SIGNALS: Final = {  # call: which arguments name its target
    "kill": (0,), "tkill": (0,), "tgkill": (0, 1), "rt_sigqueueinfo": (0,), "rt_tgsigqueueinfo": (0, 1),
    "pidfd_open": (0,),
}  # fmt: skip

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, operand
DENY: Final[Instruction] = (RETURN, 0, 0, ERRNO | errno.EPERM)
PASS: Final[Instruction] = (RETURN, 0, 0, ALLOW)


def program(table: syscalls.Architecture, *, egress: bool) -> list[Instruction]:
    """Return the filter for a table; with ``egress`` TCP and UDP are left to the network policy."""
    code: list[Instruction] = [
        (LOAD, 0, 0, ARCH),
        (EQUAL, 1, 0, table.audit),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),  # 32 bits, as the kernel takes it: garbage above them changes nothing
    ]
    if table.x32_bit:
        code += [(AT_LEAST, 0, 1, table.x32_bit), (RETURN, 0, 0, KILL)]
    for name, body in _rules(egress=egress).items():
        if name in table.numbers:
            code += [(EQUAL, 0, len(body), table.numbers[name]), *body]
    return [*code, PASS]


def load(*, egress: bool) -> None:
    """Put the calling thread below the filter for good; raises OSError. Needs no_new_privs."""
    table = syscalls.architecture()
    if table is None:
        raise OSError(errno.ENOSYS, "no system call table for this architecture")
    instructions = program(table, egress=egress)
    raw = b"".join(struct.pack("=HBBI", *each) for each in instructions)
    buffer = ctypes.create_string_buffer(raw, len(raw))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    loaded = Program(len(instructions), ctypes.addressof(buffer))
    syscalls.call(syscalls.SECCOMP[syscalls.machine()], MODE_FILTER, 0, ctypes.byref(loaded))


def _rules(*, egress: bool) -> dict[str, list[Instruction]]:
    """Return what happens to each call that is looked at; each body ends in a return."""
    rules = {name: [DENY] for name in NEVER}
    # glibc falls back to clone only on ENOSYS, and clone3 hides its flags from a filter.
    rules["clone3"] = [(RETURN, 0, 0, ERRNO | errno.ENOSYS)]
    rules["clone"] = [_argument(0), (ANY_BIT, 0, 1, NAMESPACES), DENY, PASS]
    rules |= {name: [*_only(0, SELF), PASS] for name in ONLY_ON_ITSELF}
    rules["setpriority"] = [*_only(0, PROCESS), *_only(1, SELF), PASS]
    rules["ioprio_set"] = [*_only(0, IO_PROCESS), *_only(1, SELF), PASS]
    for name, targets in SIGNALS.items():
        rules[name] = [step for target in targets for step in _never(target, INIT, EVERYONE)] + [PASS]
    # PID 1 measures the open files of dumpable processes.
    rules["prctl"] = [_argument(0), (EQUAL, 0, 3, syscalls.PR_SET_DUMPABLE), *_only(1, 1), PASS]
    # A datagram end could be bound to a path and connected elsewhere.
    rules["socketpair"] = [*_only(0, AF_UNIX), *_only(1, SOCK_STREAM, mask=TYPE_MASK), PASS]
    if egress:
        rules["socket"] = [
            *_only(0, AF_INET, AF_INET6),
            *_only(1, SOCK_STREAM, SOCK_DGRAM, mask=TYPE_MASK),
            *_only(2, ANY_PROTOCOL, TCP, UDP),
            PASS,
        ]
        return rules
    rules |= {name: [DENY] for name in CLOSED_WITHOUT_EGRESS}
    # Without an address it is a plain send on a pair.
    rules["sendto"] = [*_only(4, 0), *_only(4, 0, high=True), PASS]
    return rules


def _argument(index: int, *, high: bool = False) -> Instruction:
    return (LOAD, 0, 0, ARGUMENTS + 8 * index + (4 if high else 0))


def _only(index: int, *values: int, mask: int = 0, high: bool = False) -> list[Instruction]:
    """Go on when half of an argument is one of these, else deny."""
    masking: list[Instruction] = [(AND, 0, 0, mask)] if mask else []
    tests: list[Instruction] = [(EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    return [_argument(index, high=high), *masking, *tests, DENY]


def _never(index: int, *values: int) -> list[Instruction]:
    """Deny when the low half of an argument is one of these, else go on."""
    last = len(values) - 1
    tests: list[Instruction] = [
        (EQUAL, last - place, 1 if place == last else 0, value) for place, value in enumerate(values)
    ]
    return [_argument(index), *tests, DENY]
