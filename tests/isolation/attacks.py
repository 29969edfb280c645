"""Hostile pieces of Python: each defines ``attack()``, true when the attack worked.

The same text runs twice: as a SandboxTask, where it must fail, and as the control in a plain pod of the same
image, as a child of a plain Python PID 1 of the same user, where it must work.
"""

from typing import Final

SOCKET: Final = """
import socket
def attack():
    socket.socket({family}, {kind}).close()
    return True
"""

SYSCALL: Final = """
import ctypes, errno, os
def attack():
    libc = ctypes.CDLL(None, use_errno=True)
    answer = libc.syscall({number}, {arguments})
    return answer >= 0 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS, errno.EACCES)
"""

INT80: Final = """
import ctypes, mmap, os
def attack():
    child = os.fork()
    if child == 0:  # getpid as a 32-bit call: another table of numbers
        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3]))
        code = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
        os._exit(0 if code() > 0 else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""

WRITE: Final = """
def attack():
    with open({path!r}, "ab") as file:
        file.write(b"sand")
    return True
"""

CREATE: Final = """
import os
def attack():
    os.close(os.open({path!r}, os.O_CREAT | os.O_RDONLY))
    return True
"""

READ: Final = """
def attack():
    with open({path!r}, "rb") as file:
        file.read(1)
    return True
"""

CALL: Final = """
import os, resource, signal
def attack():
    {call}
    return True
"""

EVERYONE: Final = """
import os, signal, time
def attack():
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    try:
        os.kill(-1, 0)
        return True
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
"""

PROCESSES: Final = """
import os, signal, time
def attack():
    children = []
    try:
        for _ in range(300):
            child = os.fork()
            if child == 0:
                time.sleep(60)
                os._exit(0)
            children.append(child)
        return True
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
"""

# clone's flags: CLONE_NEWUSER | SIGCHLD
NAMESPACE: Final = """
import ctypes, os
def attack():
    child = ctypes.CDLL(None).syscall(56, 0x10000000 | 17, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    return child > 0 and os.waitpid(child, 0)[1] == 0
"""

BOUND_PAIR: Final = """
import socket
def attack():
    left, right = socket.socketpair()
    left.bind("/tmp/bound")
    return True
"""

DGRAM_PAIR: Final = """
import socket
def attack():
    left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    left.close(), right.close()
    return True
"""

ATTACKS: Final[dict[str, str]] = {
    **{
        f"a socket of {family} {kind}": SOCKET.format(family=f"socket.{family}", kind=f"socket.{kind}")
        for family, kind in (
            ("AF_INET", "SOCK_STREAM"),
            ("AF_INET", "SOCK_DGRAM"),
            ("AF_INET6", "SOCK_STREAM"),
            ("AF_INET6", "SOCK_DGRAM"),
            ("AF_UNIX", "SOCK_STREAM"),
            ("AF_UNIX", "SOCK_DGRAM"),
            ("AF_NETLINK", "SOCK_RAW"),
        )
    },
    "a pair of datagram sockets": DGRAM_PAIR,
    "a socket by a number with a dirty upper half": SYSCALL.format(
        number="ctypes.c_long(41 | 1 << 40)", arguments="2, 1, 0"
    ),
    "io_uring": SYSCALL.format(number="425", arguments="4, ctypes.create_string_buffer(120)"),
    "a call by the 32-bit table": INT80,
    "a bound end of a pair": BOUND_PAIR,
    "a user namespace by clone": NAMESPACE,
    "a user namespace by unshare": SYSCALL.format(number="272", arguments="0x10000000"),
    "tracing": SYSCALL.format(number="101", arguments="0, 0, 0, 0"),
    "reading another's memory": SYSCALL.format(number="310", arguments="os.getpid(), 0, 0, 0, 0, 0"),
    "a kernel keyring": SYSCALL.format(number="250", arguments="0, -3, 1"),
    "faults handled in user space": SYSCALL.format(number="323", arguments="1"),
    "a file handle": SYSCALL.format(number="303", arguments="-100, b'/', ctypes.create_string_buffer(64), 0, 0"),
    "another personality": SYSCALL.format(number="135", arguments="0xFFFFFFFF"),
    "System V shared memory": SYSCALL.format(number="29", arguments="0, 4096, 0o1600"),
    "a message queue": SYSCALL.format(number="240", arguments="b'sand', 0x42, 0o600, 0"),
    "a signal to PID 1": CALL.format(call="os.kill(1, 0)"),
    "a signal to every process": EVERYONE,
    "a signal to a thread of PID 1": SYSCALL.format(number="234", arguments="1, 1, 0"),
    "a signal to PID 1 by its folder": CALL.format(
        call="signal.pidfd_send_signal(os.open('/proc/1', os.O_RDONLY | os.O_DIRECTORY), 0)"
    ),
    "a descriptor of PID 1": CALL.format(call="os.pidfd_open(1)"),
    "a limit on PID 1": CALL.format(call="resource.prlimit(1, resource.RLIMIT_NOFILE, (64, 64))"),
    "the affinity of PID 1": CALL.format(call="os.sched_setaffinity(1, os.sched_getaffinity(0))"),
    "the scheduler of PID 1": CALL.format(call="os.sched_setscheduler(1, os.SCHED_OTHER, os.sched_param(0))"),
    "the priority of PID 1": CALL.format(call="os.setpriority(os.PRIO_PROCESS, 1, 19)"),
    "the priority of the user": CALL.format(call="os.setpriority(os.PRIO_USER, 0, 19)"),
    "the disk priority of the user": SYSCALL.format(number="251", arguments="3, 0, 2 << 13 | 7"),
    "its own place before the OOM killer": CALL.format(call="open('/proc/self/oom_score_adj', 'w').write('999')"),
    "the environment of PID 1": READ.format(path="/proc/1/environ"),
    "the memory of PID 1": READ.format(path="/proc/1/mem").replace("file.read(1)", "pass"),
    "the output of PID 1": WRITE.format(path="/proc/1/fd/1"),
    "a write to /var/tmp": WRITE.format(path="/var/tmp/sand"),
    "a write to the termination log": WRITE.format(path="/dev/termination-log"),
    "a message queue of its own": CREATE.format(path="/dev/mqueue/sand"),
    "the users of the image": READ.format(path="/etc/passwd"),
    "the supervisor's own code": READ.format(path="/opt/sandyard/runtime/__main__.py"),
    "the root folder": CALL.format(call="os.listdir('/')"),
    "an emptied termination log": CALL.format(call="os.truncate('/dev/termination-log', 0)"),
    "a folder in /var/tmp": CALL.format(call="os.mkdir('/var/tmp/sand-%d' % os.getpid())"),
    "three hundred processes": PROCESSES,
}

VERDICT: Final = """
try:
    worked, error = attack(), None
except BaseException as caught:
    worked, error = False, repr(caught)
print("attack worked:", worked, error)
"""

# Tries each attack in a child of its own. As PID 1 of a plain pod it is the control: a parent of the same user, as a
# supervisor without protection would be.
EACH: Final = """
import subprocess, sys
def each(codes):
    for code in codes:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        print(done.stdout.strip() or f"attack worked: False {done.stderr!r}", flush=True)
"""
CONTROL: Final = EACH + "each(sys.argv[1:])\n"


def script(attack: str) -> str:
    """Return the script that tries an attack and prints how it went."""
    return attack + VERDICT


def all_in_one() -> str:
    """Return one script that tries them all."""
    return f"{EACH}each({[script(attack) for attack in ATTACKS.values()]!r})\n"


def verdicts(printed: str) -> dict[str, str]:
    """Return what each attack said."""
    lines = [line for line in printed.splitlines() if "attack worked:" in line]
    assert len(lines) == len(ATTACKS), printed
    return dict(zip(ATTACKS, lines, strict=True))
