"""The channel as a supervisor keeps it: what it says first, what it obeys, what ends it."""

import contextlib
import signal
import socket
import subprocess
import time

import pytest

from harness.runner import DEADLINE_SECONDS, LOOK_SECONDS, Room, Runner, python
from sandyard_api import names


def test_it_says_first_what_is_in_force(runner: Runner) -> None:
    told = dict(runner.ready)
    version = told.pop("python")
    assert told == {
        "type": "ready",
        "isolation": {
            "network": "None",
            "seccomp": True,
            "landlockABI": told["isolation"]["landlockABI"],
            "userNamespace": False,
        },
    }
    assert python().endswith(f"python{version.rpartition('.')[0]}")


def test_a_run_is_told_in_order_and_under_its_id(runner: Runner) -> None:
    end = runner.run("print('hello')\nopen('/workspace/output/a.txt', 'w').write('x')")
    assert end.order == ["started", "output", "exited", "artifact", "finished"]
    assert end.started["runId"] == end.exited["runId"] == "run-1"
    assert end.started["isolation"] == runner.ready["isolation"]
    assert (end.text, end.outcome, end.exited["exitCode"]) == ("hello\n", "exited", 0)


def test_it_waits_for_an_agent_that_comes_late(room: Room) -> None:
    process = room.start([python(), *names.SUPERVISOR_COMMAND[1:]], stderr=subprocess.PIPE)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.4)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.settimeout(DEADLINE_SECONDS)
        path = room.control / "supervisor.sock"
        listener.bind(str(path))
        path.chmod(0o666)
        listener.listen()
        connection, _ = listener.accept()
    with connection:
        assert b"ready" in connection.recv(1 << 16)
    _, log = process.communicate(timeout=DEADLINE_SECONDS)
    assert "the agent closed the channel" in log


def test_it_ends_on_sigterm_while_there_is_no_agent(room: Room) -> None:
    process = room.start([python(), *names.SUPERVISOR_COMMAND[1:]], stderr=subprocess.PIPE)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while process.poll() is None:  # one sent before it listens for it is none to PID 1
        assert time.monotonic() < deadline
        with contextlib.suppress(ProcessLookupError):
            room.signal(process, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LOOK_SECONDS)
    _, log = process.communicate()
    assert "told to end before there was an agent" in log


def test_sigterm_and_sigint_leave_a_run_alone(runner: Runner) -> None:
    assert runner.process is not None
    runner.start("import sys\nprint('up')\nprint(len(sys.stdin.read()))\n", stdin=b"x" * 100_000)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        runner.room.signal(runner.process, number)
    end = runner.finish()
    assert (end.text, end.outcome) == ("up\n100000\n", "exited")


def test_when_the_agent_goes_away_everything_ends(room: Room) -> None:
    with Runner(room) as runner:
        runner.start("import time\nprint('up')\ntime.sleep(600)")
        while runner.receive().kind != "output":
            pass
    assert runner.process is not None
    assert "the agent closed the channel" in runner.log


@pytest.mark.parametrize(
    "header",
    [{"type": "code", "last": True}, {"type": "nonsense"}, {"type": "cancel"}],
    ids=["code without a start", "an unknown type", "a cancellation of nothing"],
)
def test_what_is_out_of_order_ends_it(room: Room, header: dict[str, object]) -> None:
    with Runner(room) as runner:
        runner.send(header)
        with pytest.raises(EOFError):
            runner.receive()
    assert "out of order" in runner.log


def test_a_second_run_in_the_same_pod_is_never_started(room: Room) -> None:
    with Runner(room) as runner:
        assert runner.run("print(1)").outcome == "exited"
        runner.start("print(2)")
        with pytest.raises((EOFError, ConnectionResetError, BrokenPipeError)):
            runner.receive()
    assert "a frame of type start out of order" in runner.log


def test_a_start_during_a_run_ends_everything(room: Room) -> None:
    with Runner(room) as runner:
        runner.start("import time\nprint('up')\ntime.sleep(600)")
        while runner.receive().kind != "output":
            pass
        runner.send({"type": "start", "runId": "run-2"})
        with pytest.raises((EOFError, ConnectionResetError)):
            runner.receive()
    assert "a frame of type start during a run" in runner.log


def test_a_frame_above_its_bounds_ends_it(room: Room) -> None:
    with Runner(room) as runner:
        runner.socket.sendall(b"\xff" * 8)
        with pytest.raises((EOFError, ConnectionResetError)):
            runner.receive()
    assert "above its bounds" in runner.log
