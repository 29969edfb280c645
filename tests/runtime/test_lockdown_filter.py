"""The system call filter as the kernel would judge it: its program interpreted for both architectures."""

import errno
from typing import Final

import pytest

from sandyard_runtime.worker import seccomp
from sandyard_runtime.worker.syscalls import AARCH64, X86_64, Architecture

TABLES: Final = {"x86_64": X86_64, "aarch64": AARCH64}
EPERM: Final = seccomp.ERRNO | errno.EPERM
ENOSYS: Final = seccomp.ERRNO | errno.ENOSYS
MINUS_ONE: Final = 0xFFFFFFFFFFFFFFFF
DIRTY: Final = 0xDEADBEEF << 32
AF_VSOCK, AF_ALG, AF_NETLINK, AF_PACKET = 40, 38, 16, 17
NONBLOCK: Final = 0o4000

DENIED: Final = [
    ("ptrace", ()),
    ("clone", (0x10000000 | 17,)),
    ("clone", (DIRTY | 0x40000000,)),
    ("kill", (1, 9)),
    ("kill", (MINUS_ONE, 9)),
    ("kill", (DIRTY | 1, 9)),
    ("tgkill", (1, 1, 9)),
    ("tgkill", (5, 1, 9)),
    ("rt_tgsigqueueinfo", (1, 5, 9)),
    ("pidfd_open", (1,)),
    ("prlimit64", (1,)),
    ("prlimit64", (77,)),
    ("setpriority", (0, 1)),
    ("setpriority", (2, 0)),
    ("ioprio_set", (3, 0)),
    ("ioprio_set", (1, 1)),
    ("sched_setaffinity", (1,)),
    ("prctl", (4, 0)),
    ("prctl", (4, 2)),
    ("socketpair", (1, 2)),
    ("socketpair", (1, 5)),
    ("socketpair", (2, 1)),
    ("io_uring_setup", ()),
]
ALLOWED: Final = [
    ("clone", (0x00010F00 | 17,)),
    ("kill", (0, 9)),
    ("kill", (77, 9)),
    ("tgkill", (77, 78, 6)),
    ("pidfd_open", (77,)),
    ("prlimit64", (0,)),
    ("prlimit64", (DIRTY,)),
    ("setpriority", (0, 0)),
    ("ioprio_set", (1, 0)),
    ("sched_setaffinity", (0,)),
    ("prctl", (4, 1)),
    ("prctl", (38, 0)),
    ("socketpair", (1, 1)),
    ("socketpair", (1, 1 | NONBLOCK)),
]
SOCKETS: Final = [
    ((2, 1, 0), True), ((2, 2, 0), True), ((10, 1, 6), True), ((10, 2 | NONBLOCK, 17), True), ((DIRTY | 2, 1, 0), True),
    ((2, 3, 1), False), ((2, 2, 1), False), ((2, 1, 132), False), ((2, 5, 0), False), ((1, 1, 0), False),
    ((AF_VSOCK, 1, 0), False), ((AF_ALG, 5, 0), False), ((AF_NETLINK, 3, 0), False), ((AF_PACKET, 3, 0), False),
]  # fmt: skip


def judge(
    table: Architecture, number: int, arguments: tuple[int, ...] = (), *, egress: bool = False, audit: int = 0
) -> int:
    """Interpret the program for one call and return its verdict."""
    data = {seccomp.NUMBER: number & 0xFFFFFFFF, seccomp.ARCH: audit or table.audit}
    for index, value in enumerate((*arguments, *(0,) * (6 - len(arguments)))):
        data[seccomp.ARGUMENTS + 8 * index] = value & 0xFFFFFFFF
        data[seccomp.ARGUMENTS + 8 * index + 4] = value >> 32
    program = seccomp.program(table, egress=egress)
    place = accumulator = 0
    while True:
        code, if_true, if_false, operand = program[place]
        place += 1
        match code:
            case seccomp.LOAD:
                accumulator = data[operand]
            case seccomp.AND:
                accumulator &= operand
            case seccomp.EQUAL:
                place += if_true if accumulator == operand else if_false
            case seccomp.AT_LEAST:
                place += if_true if accumulator >= operand else if_false
            case seccomp.ANY_BIT:
                place += if_true if accumulator & operand else if_false
            case seccomp.RETURN:
                return operand
            case unknown:
                raise AssertionError(f"no instruction {unknown:#x}")


@pytest.fixture(params=TABLES)
def table(request: pytest.FixtureRequest) -> Architecture:
    """Return each architecture's table."""
    return TABLES[request.param]


@pytest.mark.parametrize("egress", [False, True])
@pytest.mark.parametrize(("name", "arguments"), DENIED)
def test_it_denies(table: Architecture, name: str, arguments: tuple[int, ...], egress: bool) -> None:
    assert judge(table, table.numbers[name], arguments, egress=egress) == EPERM


@pytest.mark.parametrize("egress", [False, True])
@pytest.mark.parametrize(("name", "arguments"), ALLOWED)
def test_it_allows(table: Architecture, name: str, arguments: tuple[int, ...], egress: bool) -> None:
    assert judge(table, table.numbers[name], arguments, egress=egress) == seccomp.ALLOW


@pytest.mark.parametrize("name", seccomp.NEVER)
def test_it_never_allows(table: Architecture, name: str) -> None:
    if name in table.numbers:
        assert {judge(table, table.numbers[name], egress=egress) for egress in (False, True)} == {EPERM}
    else:
        assert (table, name) in [(AARCH64, "iopl"), (AARCH64, "ioperm"), (AARCH64, "modify_ldt")]


@pytest.mark.parametrize("arguments", [arguments for arguments, _ in SOCKETS])
def test_without_egress_no_socket_is_made(table: Architecture, arguments: tuple[int, ...]) -> None:
    assert judge(table, table.numbers["socket"], arguments) == EPERM


@pytest.mark.parametrize(("arguments", "allowed"), SOCKETS)
def test_with_egress_tcp_and_udp_alone_are(table: Architecture, arguments: tuple[int, ...], allowed: bool) -> None:
    verdict = judge(table, table.numbers["socket"], arguments, egress=True)
    assert verdict == (seccomp.ALLOW if allowed else EPERM)


@pytest.mark.parametrize("name", ["bind", "connect", "listen", "accept", "accept4"])
def test_a_pair_goes_nowhere_else_without_egress(table: Architecture, name: str) -> None:
    assert judge(table, table.numbers[name]) == EPERM
    assert judge(table, table.numbers[name], egress=True) == seccomp.ALLOW


@pytest.mark.parametrize("address", [1, 1 << 32, MINUS_ONE])
def test_sending_to_an_address_is_denied_and_plain_sending_is_not(table: Architecture, address: int) -> None:
    assert judge(table, table.numbers["sendto"], (3, 0, 0, 0, address, 0)) == EPERM
    assert judge(table, table.numbers["sendto"], (3, 0, 0, 0, 0, 0)) == seccomp.ALLOW


def test_clone3_is_not_there(table: Architecture) -> None:
    assert judge(table, table.numbers["clone3"]) == ENOSYS


def test_garbage_above_a_number_changes_nothing(table: Architecture) -> None:
    assert judge(table, DIRTY | table.numbers["socket"]) == EPERM


def test_a_foreign_table_kills(table: Architecture) -> None:
    other = AARCH64 if table is X86_64 else X86_64
    assert judge(table, 20, audit=0x40000003) == judge(table, 20, audit=other.audit) == seccomp.KILL


def test_x32_kills() -> None:
    assert judge(X86_64, 0x40000000 | 39) == seccomp.KILL
    assert judge(X86_64, 39) == seccomp.ALLOW


def test_every_jump_lands_inside(table: Architecture) -> None:
    for egress in (False, True):
        program = seccomp.program(table, egress=egress)
        assert len(program) < 4096
        for place, (_, if_true, if_false, _) in enumerate(program):
            assert max(if_true, if_false) < 256
            assert place + 1 + max(if_true, if_false) <= len(program)
