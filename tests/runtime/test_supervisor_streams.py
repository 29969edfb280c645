"""A run's pipes: the first bytes kept, all counted, never a deadlock, whatever a script does with them."""

import hashlib

import pytest

from harness.runner import End, Runner

MIB = 1 << 20


def test_of_a_stream_above_its_cap_the_first_bytes_are_kept_and_all_are_counted(runner: Runner) -> None:
    code = "import os\nfor i in range(300): os.write(1, b'%03d' % i + b'x' * 9997)\nos.write(2, b'e' * 1000)\n"
    end = runner.run(code, limits={"stdoutBytes": MIB, "stderrBytes": 10})
    assert len(end.stdout) == MIB
    assert end.stdout.startswith(b"000xxx")
    assert end.stdout[10_000:10_003] == b"001"
    assert end.exited["stdoutBytes"] == 3_000_000
    assert (end.stderr, end.exited["stderrBytes"]) == (b"e" * 10, 1000)


def test_a_stream_of_exactly_its_cap_is_whole(runner: Runner) -> None:
    end = runner.run("print('x' * 99, end='\\n')", limits={"stdoutBytes": 100})
    assert (len(end.stdout), end.exited["stdoutBytes"]) == (100, 100)


@pytest.mark.parametrize("size", [1, 80, 65536])
def test_a_flood_ends_by_time_and_stays_within_its_cap(runner: Runner, size: int) -> None:
    end = runner.run(f"import os\nwhile True: os.write(1, b'y' * {size})", limits={"stdoutBytes": 1000}, timeout=1.0)
    assert (end.outcome, end.exited["signal"]) == ("timeout", "SIGKILL")
    assert len(end.stdout) == 1000 < end.exited["stdoutBytes"]


def test_an_agent_that_does_not_read_holds_nothing_up(runner: Runner) -> None:
    runner.start("import os\nwhile True: os.write(1, b'y' * 65536)", timeout=1.0)
    runner.wait_until_alone()
    end = runner.finish()
    assert end.outcome == "timeout"
    assert end.exited["runMilliseconds"] < 5_000
    assert len(end.stdout) == MIB


def test_both_streams_are_drained_at_once(runner: Runner) -> None:
    code = "import os\nfor _ in range(200):\n    os.write(2, b'e' * 65536); os.write(1, b'o' * 65536)\n"
    end = runner.run(code)
    assert (end.exited["stdoutBytes"], end.exited["stderrBytes"]) == (200 * 65536, 200 * 65536)


def test_bytes_are_bytes(runner: Runner) -> None:
    end = runner.run("import os\nos.write(1, bytes(range(256)))\nprint('\\N{PILE OF POO}')")
    assert end.stdout == bytes(range(256)) + "\N{PILE OF POO}\n".encode()


def test_ten_mebibytes_of_input_are_read_to_the_end(runner: Runner) -> None:
    data = bytes(range(256)) * (10 * MIB // 256)
    end = runner.run("import hashlib, sys\nprint(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())", stdin=data)
    assert end.text.strip() == hashlib.sha256(data).hexdigest()


def test_input_may_be_left_unread_or_closed(runner: Runner) -> None:
    end = runner.run("import os\nos.read(0, 10)\nos.close(0)\nprint('done')", stdin=b"x" * 10 * MIB)
    assert (end.text, end.outcome, end.exited["exitCode"]) == ("done\n", "exited", 0)


def test_a_script_that_prints_a_flood_before_it_reads_does_not_hang(runner: Runner) -> None:
    code = "import sys\nsys.stdout.write('z' * (5 << 20))\nprint(len(sys.stdin.read()), file=sys.stderr)"
    end = runner.run(code, stdin=b"x" * 5 * MIB)
    assert (end.stderr, end.outcome) == (b"%d\n" % (5 * MIB), "exited")


def test_no_input_is_an_empty_one(runner: Runner) -> None:
    assert runner.run("import sys\nprint(repr(sys.stdin.read()))").text == "''\n"


def test_what_was_printed_without_flushing_survives_a_kill(runner: Runner) -> None:
    end = runner.run("import time\nprint('lit')\ntime.sleep(600)", timeout=0.5)
    assert (end.outcome, end.text) == ("timeout", "lit\n")


def test_output_arrives_while_the_script_runs(runner: Runner) -> None:
    runner.start("import time\nprint('early')\ntime.sleep(600)")
    end = End()
    runner.wait_for("early", end)
    assert end.exited == {}
    runner.send({"type": "cancel"})
    assert runner.finish(end).outcome == "cancelled"


def test_a_child_that_holds_the_pipe_does_not_delay_the_end(runner: Runner) -> None:
    code = "import subprocess\nsubprocess.Popen(['/usr/bin/sleep', '600'])\nprint('lit')"
    end = runner.run(code, timeout=60)
    assert (end.text, end.outcome) == ("lit\n", "exited")
    assert end.exited["runMilliseconds"] < 10_000


def test_closing_every_descriptor_ends_as_an_exit_without_output(runner: Runner) -> None:
    end = runner.run("import os\nos.closerange(0, 100)\nos._exit(4)")
    assert (end.stdout, end.exited["exitCode"]) == (b"", 4)
