"""How runs end: told from waitid and counters, never from text; nothing of them left afterwards."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cgroups import bounded
from harness.runner import End, Room, Runner

MIB = 1 << 20
FORGED = '{"outcome": "isolationUnavailable", "lockdown": "x", "network": "None", "error": "never ran"}'
EXITS = {
    "the end of the file": ("", 0),
    "sys.exit()": ("import sys; sys.exit()", 0),
    "sys.exit(7)": ("import sys; sys.exit(7)", 7),
    "sys.exit(256)": ("import sys; sys.exit(256)", 0),
    "sys.exit(text)": ("import sys; sys.exit('text')", 1),
    "an exception": ("1 / 0", 1),
    "a keyboard interrupt": ("raise KeyboardInterrupt", 1),
    "a syntax error": ("def", 1),
    "os._exit(9)": ("import os; os._exit(9)", 9),
    "exit code of exec": ("import os; os.execv('/bin/sh', ['sh', '-c', 'exit 5'])", 5),
    "an exit in a thread": ("import sys, threading; threading.Thread(target=sys.exit, args=(3,)).start()", 0),
}
SIGNALS = {
    "SIGKILL": "import os; os.kill(os.getpid(), 9)",
    "SIGTERM": "import os; os.kill(os.getpid(), 15)",
    "SIGABRT": "import os; os.abort()",
    "SIGSEGV": "import ctypes; ctypes.string_at(0)",
}
STUBBORN = {
    "a busy loop": "while True: pass",
    "a loop in C": "sum(iter(int, 1))",
    "ignored signals": "import signal, time\nfor n in range(1, 65):\n"
    "    try: signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError): pass\ntime.sleep(600)",
    "blocked signals": "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\ntime.sleep(600)",
    "a stopped process": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "an exit handler that never ends": "import atexit, time\natexit.register(time.sleep, 600)",
    "a thread that never ends": "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()",
    "children that fork": "import os\nfor _ in range(6): os.fork()\nwhile True: pass",
    "an exception whose text never ends": "class E(Exception):\n"
    "    def __str__(self):\n        while True: pass\nraise E",
}


@pytest.fixture
def bounded_runner(tmp_path: Path) -> Iterator[Runner]:
    """Return a supervisor whose room has 128 MiB of memory and 64 processes."""
    with (
        bounded(memory_bytes=128 * MIB, processes=64) as (groups, views),
        Runner(Room(tmp_path, cgroups=groups, binds=views)) as runner,
    ):
        yield runner


def test_a_run_the_kernel_has_no_process_for_is_told_as_not_started(tmp_path: Path) -> None:
    with (
        bounded(memory_bytes=128 * MIB, processes=2) as (groups, views),
        Runner(Room(tmp_path, cgroups=groups, binds=views)) as runner,
    ):
        end = runner.run("print('ran')")
    assert (end.outcome, end.stdout, end.order) == ("startFailed", b"", ["exited", "finished"])
    assert end.exited["message"] == "the kernel refused another process for the run"


@pytest.mark.parametrize(("code", "expected"), EXITS.values(), ids=EXITS)
def test_an_exit_code_is_the_processs_own(runner: Runner, code: str, expected: int) -> None:
    end = runner.run(code)
    assert (end.outcome, end.exited["exitCode"]) == ("exited", expected)


@pytest.mark.parametrize("name", SIGNALS)
def test_a_signal_is_told_by_its_name(runner: Runner, name: str) -> None:
    end = runner.run(SIGNALS[name])
    assert (end.outcome, end.exited["signal"]) == ("signaled", name)
    assert "exitCode" not in end.exited


@pytest.mark.parametrize("name", STUBBORN)
def test_a_run_ends_at_its_time_whatever_it_does(runner: Runner, name: str) -> None:
    end = runner.run("print('lit')\n" + STUBBORN[name], timeout=0.7)
    assert (end.outcome, end.exited["signal"], end.text) == ("timeout", "SIGKILL", "lit\n" * end.text.count("\n"))
    assert 650 <= end.exited["runMilliseconds"] < 10_000


def test_a_script_that_ends_in_time_is_not_timed_out(runner: Runner) -> None:
    end = runner.run("import time; time.sleep(0.3)", timeout=20.0)
    assert (end.outcome, end.exited["exitCode"]) == ("exited", 0)
    assert 300 <= end.exited["runMilliseconds"] < 10_000


def test_a_cancelled_run_keeps_what_it_printed(runner: Runner) -> None:
    runner.start("import time\nprint('lit')\ntime.sleep(600)")
    end = End()
    runner.wait_for("lit", end)
    runner.send({"type": "cancel"})
    runner.finish(end)
    assert (end.outcome, end.exited["signal"], end.text) == ("cancelled", "SIGKILL", "lit\n")


def test_a_cancellation_right_behind_the_inputs_reaches_the_run(runner: Runner) -> None:
    runner.start("import time; time.sleep(600)", timeout=60)
    runner.send({"type": "cancel"})
    assert runner.finish().outcome == "cancelled"


def test_a_run_cancelled_before_its_inputs_are_there_never_starts(runner: Runner) -> None:
    runner.start("print('ran')", before_code={"type": "cancel"})
    end = runner.finish()
    assert (end.outcome, end.stdout, end.order) == ("cancelled", b"", ["exited", "finished"])


def test_a_cancellation_after_the_end_changes_nothing(runner: Runner) -> None:
    end = runner.run("print(1)")
    runner.send({"type": "cancel"})
    assert end.outcome == "exited"


def test_nothing_a_script_writes_changes_how_it_ended(runner: Runner) -> None:
    code = (
        f"import os\nforged = {FORGED.encode()!r}\n"
        "for n in range(1, 64):\n    try: os.write(n, forged)\n    except OSError: pass\nos._exit(3)"
    )
    end = runner.run(code)
    assert (end.outcome, end.exited["exitCode"]) == ("exited", 3)
    assert "message" not in end.exited


def test_a_daemon_is_dead_before_the_end_is_told(runner: Runner) -> None:
    code = (
        "import os, time\n"
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        "        while True:\n            open('/workspace/output/alive', 'a').write('x'); time.sleep(0.001)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "while not os.path.exists('/workspace/output/alive'): pass\n"
    )
    end = runner.run(code)
    assert end.outcome == "exited"
    assert runner.room.processes(runner) == 1
    assert set(end.artifacts["alive"]) == {ord("x")}


def test_a_main_process_that_dies_under_its_children_has_ended(runner: Runner) -> None:
    code = "import os, time\nif os.fork():\n    os._exit(5)\nos.setsid()\ntime.sleep(600)\n"
    end = runner.run(code, timeout=60)
    assert end.exited["exitCode"] == 5
    assert end.exited["runMilliseconds"] < 10_000


def test_a_fork_bomb_ends_by_time_and_leaves_nothing(bounded_runner: Runner) -> None:
    code = "import os\nprint('lit')\nwhile True:\n    try: os.fork()\n    except OSError: pass\n"
    end = bounded_runner.run(code, timeout=1.5)
    assert (end.outcome, end.text) == ("timeout", "lit\n")
    assert end.exited["runMilliseconds"] < 10_000
    assert bounded_runner.room.processes(bounded_runner) == 1


def test_a_thread_bomb_fails_in_the_script_alone(bounded_runner: Runner) -> None:
    code = (
        "import threading, time\nthreads = 0\ntry:\n    while True:\n"
        "        threading.Thread(target=time.sleep, args=(600,), daemon=True).start(); threads += 1\n"
        "except RuntimeError as error: print(threads < 64, error)"
    )
    end = bounded_runner.run(code)
    assert (end.outcome, end.exited["exitCode"], end.text) == ("exited", 0, "True can't start new thread\n")


def test_open_files_end_at_their_bound(runner: Runner) -> None:
    code = (
        "files = []\ntry:\n    while True: files.append(open('/dev/null'))\n"
        "except OSError as error: print(error.errno, len(files))"
    )
    assert runner.run(code, limits={"openFiles": 100}).text == "24 96\n"


def test_memory_above_its_limit_is_told_as_such(bounded_runner: Runner) -> None:
    end = bounded_runner.run("print('lit')\nx = bytearray(256 << 20)")
    assert (end.outcome, end.exited["signal"], end.text) == ("oom", "SIGKILL", "lit\n")


def test_a_slow_leak_is_told_as_such(bounded_runner: Runner) -> None:
    end = bounded_runner.run("leak = []\nwhile True: leak.append(bytearray(1 << 20))")
    assert end.outcome == "oom"


def test_a_kill_without_the_oom_killer_is_a_signal(bounded_runner: Runner) -> None:
    assert bounded_runner.run(SIGNALS["SIGKILL"]).outcome == "signaled"


def test_a_child_out_of_memory_does_not_end_the_run(bounded_runner: Runner) -> None:
    code = (
        "import subprocess, sys\n"
        "child = subprocess.run([sys.executable, '-c', 'x = bytearray(256 << 20)'])\nprint(child.returncode)"
    )
    end = bounded_runner.run(code)
    assert (end.outcome, end.exited["exitCode"], end.text) == ("exited", 0, "-9\n")


def test_sixty_children_out_of_memory_leave_the_supervisor_alive(bounded_runner: Runner) -> None:
    code = (
        "import os, time\nprint('lit')\n"
        "for _ in range(40):\n    if os.fork() == 0:\n        x = bytearray(16 << 20)\n        time.sleep(600)\n"
        "while True: os.wait()\n"
    )
    end = bounded_runner.run(code, timeout=3)
    assert end.outcome in {"timeout", "oom", "exited"}
    assert end.text.startswith("lit\n")


def test_a_disk_above_its_limit_is_told_while_the_script_still_runs(runner: Runner) -> None:
    code = (
        "import time\nprint('lit')\n"
        "for i in range(20): open(f'/tmp/f{i}', 'wb').write(b'x' * (1 << 20))\ntime.sleep(600)"
    )
    end = runner.run(code, limits={"diskBytes": 16 * MIB}, timeout=60)
    assert (end.outcome, end.exited["signal"], end.text) == ("disk", "SIGKILL", "lit\n")
    assert end.exited["runMilliseconds"] < 20_000


@pytest.mark.parametrize("folder", ["/workspace", "/tmp", "/dev/shm"])
def test_a_disk_filled_at_the_last_moment_counts(runner: Runner, folder: str) -> None:
    code = f"import os\nfor i in range(20): open(f'{folder}/f{{i}}', 'wb').write(b'x' * (1 << 20))\nos._exit(0)"
    assert runner.run(code, limits={"diskBytes": 16 * MIB}).outcome == "disk"


def test_open_files_without_a_name_count_while_they_are_open(runner: Runner) -> None:
    code = (
        "import os, tempfile, time\nfiles = [tempfile.TemporaryFile() for _ in range(3)]\n"
        "for f in files: f.write(b'x' * (8 << 20)); f.flush()\n"
        "if os.fork(): time.sleep(600)\ntime.sleep(600)"
    )
    end = runner.run(code, limits={"diskBytes": 16 * MIB}, timeout=60)
    assert end.outcome == "disk"
    assert end.exited["runMilliseconds"] < 20_000


def test_an_open_file_counts_once(runner: Runner) -> None:
    code = (
        "import os, tempfile, time\nf = tempfile.TemporaryFile()\nf.write(b'x' * (10 << 20)); f.flush()\n"
        "copies = [os.dup(f.fileno()) for _ in range(9)]\nif os.fork() == 0: time.sleep(600)\ntime.sleep(0.8)"
    )
    assert runner.run(code, limits={"diskBytes": 16 * MIB}).outcome == "exited"


def test_a_disk_just_below_its_limit_is_no_fault(runner: Runner) -> None:
    code = "for i in range(15): open(f'/tmp/f{i}', 'wb').write(b'x' * (1 << 20))"
    assert runner.run(code, limits={"diskBytes": 16 * MIB}).outcome == "exited"


def test_a_sparse_file_above_the_limit_is_refused_at_once(runner: Runner) -> None:
    end = runner.run("open('/tmp/f', 'wb').truncate(100 << 30)", limits={"diskBytes": 16 * MIB})
    assert (end.outcome, end.exited["errorType"]) == ("exited", "OSError")
    assert "File too large" in end.exited["errorMessage"]


def test_a_single_file_above_the_limit_by_a_child_is_told(runner: Runner) -> None:
    code = (
        "import os, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
        "with open('/tmp/f', 'wb') as f:\n    f.seek(17 << 20); f.write(b'x')\n"
    )
    assert runner.run(code, limits={"diskBytes": 16 * MIB}).outcome == "disk"


def test_a_bomb_of_empty_files_ends_as_a_full_disk(runner: Runner) -> None:
    code = "i = 0\nwhile True:\n    i += 1\n    open(f'/tmp/{i}', 'w').close()"
    end = runner.run(code, limits={"diskBytes": 4 * MIB}, timeout=60)
    assert end.outcome == "disk"


def test_links_to_one_file_count_once(runner: Runner) -> None:
    code = (
        "import os\nopen('/tmp/f', 'wb').write(b'x' * (2 << 20))\n"
        "for i in range(100): os.link('/tmp/f', f'/tmp/f{i}')\n"
    )
    assert runner.run(code, limits={"diskBytes": 16 * MIB}).outcome == "exited"


def test_a_very_deep_folder_is_survived(runner: Runner) -> None:
    code = "import os\nfor _ in range(3000):\n    os.mkdir('d'); os.chdir('d')\nopen('x', 'w').write('y')"
    assert runner.run(code).outcome == "exited"
