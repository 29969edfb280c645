"""Hostile scripts under a real supervisor, each beside its control: the same attack in the same room unprotected."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from harness.cgroups import bounded
from harness.runner import DEADLINE_SECONDS, Room, Runner, python
from isolation.attacks import ATTACKS, CONTROL, all_in_one, script, verdicts

MIB: Final = 1 << 20
EGRESS: Final = {
    "a TCP connection": (
        "server = socket.create_server(('127.0.0.1', 0)); socket.create_connection(server.getsockname()).close()",
        True,
    ),
    "a UDP packet": ("socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))", True),
    "an IPv6 socket": ("socket.socket(socket.AF_INET6).close()", True),
    "a Unix socket": ("socket.socket(socket.AF_UNIX).close()", False),
    "a netlink socket": ("socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close()", False),
    "a raw socket": ("socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()", False),
    "a ping socket": ("socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP).close()", False),
    "an SCTP socket": ("socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_SCTP).close()", False),
    "a pair of datagram sockets": ("socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)", False),
}


@pytest.fixture(scope="module")
def controls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return what each attack said without protection."""
    room = Room(tmp_path_factory.mktemp("control"))
    codes = [script(attack) for attack in ATTACKS.values()]
    process = room.start([python(), "-c", CONTROL, *codes], stdout=subprocess.PIPE)
    return verdicts(process.communicate(timeout=DEADLINE_SECONDS)[0])


@pytest.fixture(scope="module")
def attempts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Return what each attack said in a sandbox."""
    with bounded(memory_bytes=256 * MIB, processes=64) as (groups, views):
        room = Room(tmp_path_factory.mktemp("sandbox"), cgroups=groups, binds=views)
        with Runner(room) as runner:
            end = runner.run(all_in_one())
            yield verdicts(end.text)


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_that_works_unprotected_fails_in_a_sandbox(
    controls: dict[str, str], attempts: dict[str, str], name: str
) -> None:
    assert "attack worked: True" in controls[name]
    assert "attack worked: False" in attempts[name]


@pytest.mark.parametrize("name", EGRESS)
def test_with_egress_there_is_tcp_and_udp_and_nothing_else(runner: Runner, name: str) -> None:
    call, allowed = EGRESS[name]
    code = f"import socket\ntry:\n    {call}\n    print(True)\nexcept PermissionError: print(False)"
    end = runner.run(code, egress=True)
    assert end.started["isolation"]["network"] == "Egress"
    assert (end.text, end.stderr) == (f"{allowed}\n", b"")


def test_a_script_cannot_signal_the_template(runner: Runner) -> None:
    code = (
        "import os\nothers = [int(p) for p in os.listdir('/proc') if p.isdigit() and int(p) not in (1, os.getpid())]\n"
        "for pid in others:\n    try: os.kill(pid, 0)\n    except PermissionError as e: print('refused')\n"
    )
    assert runner.run(code).text == "refused\n"


def test_it_may_signal_its_own(runner: Runner) -> None:
    code = (
        "import os, signal, subprocess\nchild = subprocess.Popen(['/usr/bin/sleep', '600'])\n"
        "child.terminate(); print(child.wait())\nsignal.signal(signal.SIGUSR1, lambda *a: print('own'))\n"
        "os.kill(os.getpid(), signal.SIGUSR1)\nos.kill(0, 0)\n"
    )
    assert runner.run(code).text == "-15\nown\n"


def test_it_may_limit_itself(runner: Runner) -> None:
    code = (
        "import os, resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "resource.prlimit(0, resource.RLIMIT_CPU)\nos.sched_setaffinity(0, os.sched_getaffinity(0))\nos.nice(1)\n"
        "print(resource.getrlimit(resource.RLIMIT_CORE), resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    assert runner.run(code, limits={"openFiles": 100}).text == "(0, 0) (100, 100)\n"


def test_it_goes_first_when_memory_ends(runner: Runner) -> None:
    assert runner.run("print(open('/proc/self/oom_score_adj').read())").text == "1000\n\n"


def test_system_calls_of_a_plain_program_go_on_working(runner: Runner) -> None:
    code = (
        "import ctypes, os, threading\n"
        "assert ctypes.CDLL(None, use_errno=True).syscall(435, 0, 0) == -1 and ctypes.get_errno() == 38\n"
        "os.memfd_create('m'); os.eventfd(0); os.pipe(); os.posix_spawn('/usr/bin/true', ['true'], {})\n"
        "os.mkdir('sub'); open('sub/a', 'w').close(); os.replace('sub/a', 'a'); os.rename('a', 'sub/b')\n"
        "os.mkfifo('/tmp/fifo'); os.link(__file__, '/tmp/link'); os.symlink('x', '/tmp/symlink'); os.getrandom(1)\n"
        "t = [threading.Thread(target=os.getpid) for _ in range(50)]\n[x.start() for x in t]; [x.join() for x in t]\n"
        "print('fine')"
    )
    end = runner.run(code)
    assert end.text == "fine\n", end.stderr


@pytest.mark.parametrize(
    ("path", "mode"),
    [("/dev/null", "r+b"), ("/dev/zero", "rb"), ("/dev/urandom", "rb"), ("/dev/full", "r+b"), ("/dev/stdin", "rb"),
     ("/proc/meminfo", "rb"), ("/proc/self/status", "rb"), ("/sys/devices/system/cpu/online", "rb"),
     ("/etc/localtime", "rb"), ("/dev/shm/mine", "w+b"), ("/tmp/mine", "w+b"), ("/workspace/mine", "w+b")],
)  # fmt: skip
def test_what_a_program_needs_is_open(runner: Runner, path: str, mode: str) -> None:
    end = runner.run(f"open({path!r}, {mode!r}, buffering=0).close()\nprint('open')")
    assert end.text == "open\n", end.stderr


def test_a_lock_down_that_fails_runs_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "lockdown.py"
    source = Path(__file__).parents[2] / "runtime/src/sandyard_runtime/worker/lockdown.py"
    broken.write_text(source.read_text().replace("seccomp.load(egress=egress)", "pass"))
    room = Room(tmp_path, binds=[(str(broken), "/opt/sandyard/runtime/sandyard_runtime/worker/lockdown.py")])
    with Runner(room) as runner:
        assert runner.ready["isolation"] == {}
        end = runner.run("print('ran')")
    assert (end.outcome, end.stdout, end.order) == ("isolationUnavailable", b"", ["exited", "finished"])
    assert "a Unix socket was possible below the lock-down" in end.exited["message"]
