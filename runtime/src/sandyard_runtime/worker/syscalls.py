"""Numbers of the system calls the filter knows, per architecture, and the few calls made by number.

Sources: the kernel's ``arch/x86/entry/syscalls/syscall_64.tbl`` and ``include/uapi/asm-generic/unistd.h``.
"""

import ctypes
import os
from typing import Final, NamedTuple


class Architecture(NamedTuple):
    """An architecture's audit number and its table; ``x32_bit`` marks the foreign ABI that shares it."""

    audit: int
    x32_bit: int
    numbers: dict[str, int]


X86_64: Final = Architecture(
    0xC000003E,
    0x40000000,
    {
        "socket": 41, "connect": 42, "accept": 43, "sendto": 44, "bind": 49, "listen": 50, "socketpair": 53,
        "accept4": 288, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "pidfd_getfd": 438,
        "pidfd_open": 434, "process_madvise": 440, "process_mrelease": 448, "kcmp": 312,
        "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "keyctl": 250, "add_key": 248, "request_key": 249,
        "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
        "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161,
        "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
        "mount_setattr": 442, "open_by_handle_at": 304, "name_to_handle_at": 303,
        "init_module": 175, "finit_module": 313, "delete_module": 176, "kexec_load": 246, "kexec_file_load": 320,
        "reboot": 169, "swapon": 167, "swapoff": 168, "acct": 163, "quotactl": 179, "syslog": 103,
        "settimeofday": 164, "clock_settime": 227, "adjtimex": 159, "clock_adjtime": 305, "iopl": 172, "ioperm": 173,
        "move_pages": 279, "migrate_pages": 256, "personality": 135, "lookup_dcookie": 212, "vhangup": 153,
        "clone3": 435, "prlimit64": 302, "sched_setaffinity": 203, "sched_setscheduler": 144, "sched_setparam": 142,
        "sched_setattr": 314, "setpriority": 141, "ioprio_set": 251, "kill": 62, "tkill": 200, "tgkill": 234,
        "rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297, "msgget": 68, "semget": 64, "shmget": 29, "mq_open": 240,
        "clone": 56, "prctl": 157, "pidfd_send_signal": 424, "quotactl_fd": 443, "open_tree_attr": 467,
        "sethostname": 170, "setdomainname": 171, "fanotify_init": 300, "modify_ldt": 154,
    },
)  # fmt: skip
AARCH64: Final = Architecture(
    0xC00000B7,
    0,
    {
        "socket": 198, "connect": 203, "accept": 202, "sendto": 206, "bind": 200, "listen": 201, "socketpair": 199,
        "accept4": 242, "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "pidfd_getfd": 438,
        "pidfd_open": 434, "process_madvise": 440, "process_mrelease": 448, "kcmp": 272,
        "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "keyctl": 219, "add_key": 217, "request_key": 218,
        "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
        "unshare": 97, "setns": 268, "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51,
        "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
        "mount_setattr": 442, "open_by_handle_at": 265, "name_to_handle_at": 264,
        "init_module": 105, "finit_module": 273, "delete_module": 106, "kexec_load": 104, "kexec_file_load": 294,
        "reboot": 142, "swapon": 224, "swapoff": 225, "acct": 89, "quotactl": 60, "syslog": 116,
        "settimeofday": 170, "clock_settime": 112, "adjtimex": 171, "clock_adjtime": 266,
        "move_pages": 239, "migrate_pages": 238, "personality": 92, "lookup_dcookie": 18, "vhangup": 58,
        "clone3": 435, "prlimit64": 261, "sched_setaffinity": 122, "sched_setscheduler": 119, "sched_setparam": 118,
        "sched_setattr": 274, "setpriority": 140, "ioprio_set": 30, "kill": 129, "tkill": 130, "tgkill": 131,
        "rt_sigqueueinfo": 138, "rt_tgsigqueueinfo": 240, "msgget": 186, "semget": 190, "shmget": 194, "mq_open": 180,
        "clone": 220, "prctl": 167, "pidfd_send_signal": 424, "quotactl_fd": 443, "open_tree_attr": 467,
        "sethostname": 161, "setdomainname": 162, "fanotify_init": 262,
    },
)  # fmt: skip
SECCOMP: Final = {"x86_64": 317, "aarch64": 277}
LANDLOCK_CREATE_RULESET: Final = 444  # the same on every architecture, as the next two
LANDLOCK_ADD_RULE: Final = 445
LANDLOCK_RESTRICT_SELF: Final = 446
PR_SET_DUMPABLE: Final = 4
PR_SET_NO_NEW_PRIVS: Final = 38

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def machine() -> str:
    """Return the kernel's name for this architecture."""
    return os.uname().machine


def architecture() -> Architecture | None:
    """Return this machine's table, or None where there is none of ours."""
    return {"x86_64": X86_64, "aarch64": AARCH64}.get(machine())


def call(number: int, *arguments: int | ctypes.c_void_p | object) -> int:
    """Make a system call by number; raises OSError."""
    wrapped = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    answer: int = _libc.syscall(ctypes.c_long(number), *wrapped)
    if answer < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return answer


def prctl(option: int, value: int) -> None:
    """Set a process attribute; raises OSError."""
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
