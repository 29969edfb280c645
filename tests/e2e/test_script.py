"""What a script can rely on, and how each of its ends is told."""

import json

from harness.tenant import Tenant

ENVIRONMENT = """
import json, os, sys
print(json.dumps({
    "name": __name__, "argv": sys.argv, "cwd": os.getcwd(), "encoding": sys.stdout.encoding,
    "uid": os.getuid(), "env": dict(os.environ), "file": os.path.exists(sys.argv[0]),
}))
"""


def test_a_script_is_main_with_a_file_of_its_own(tenant: Tenant) -> None:
    seen = json.loads(tenant.run(ENVIRONMENT, args=["--level", "3"])["result"]["stdout"]["text"])
    assert seen["name"] == "__main__"
    assert seen["argv"][1:] == ["--level", "3"]
    assert seen["file"] is True
    assert seen["cwd"] == "/workspace"
    assert seen["encoding"].lower() == "utf-8"
    assert seen["uid"] != 0


def test_the_environment_carries_what_was_asked_for_and_nothing_of_the_pod(tenant: Tenant) -> None:
    seen = json.loads(tenant.run(ENVIRONMENT, env=[{"name": "COLOUR", "value": "blå"}])["result"]["stdout"]["text"])
    assert seen["env"]["COLOUR"] == "blå"
    assert seen["env"]["SANDYARD_OUTPUT_DIR"] == "/workspace/output"
    assert not [name for name in seen["env"] if name.startswith("KUBERNETES_")]
    assert "SANDYARD_ROOT_KEYS" not in seen["env"]


def test_stdin_is_read_to_its_end(tenant: Tenant) -> None:
    text = "zwölf Boxkämpfer\n" * 100
    status = tenant.run("import sys; print(len(sys.stdin.read()))", stdin=text)
    assert status["result"]["stdout"]["text"] == f"{len(text)}\n"


def test_stdin_comes_from_a_config_map(tenant: Tenant) -> None:
    name = tenant.config_map({"in": "x" * 1000})
    status = tenant.run(
        "import sys; print(len(sys.stdin.read()))", stdinFrom={"configMapKeyRef": {"name": name, "key": "in"}}
    )
    assert status["result"]["stdout"]["text"] == "1000\n"


def test_code_comes_from_a_config_map(tenant: Tenant) -> None:
    name = tenant.config_map({"main.py": "print('from a map')"})
    status = tenant.run(codeFrom={"configMapKeyRef": {"name": name, "key": "main.py"}})
    assert status["result"]["stdout"]["text"] == "from a map\n"


def test_files_are_placed_and_artifacts_listed(tenant: Tenant) -> None:
    name = tenant.config_map({"a.txt": "alpha"})
    status = tenant.run(
        "import os, pathlib\n"
        "out = pathlib.Path(os.environ['SANDYARD_OUTPUT_DIR'])\n"
        "(out / 'sub').mkdir(parents=True)\n"
        "(out / 'sub' / 'deep.txt').write_text(pathlib.Path('in/a.txt').read_text().upper())\n"
        "os.symlink('/etc/hostname', out / 'link')\n"
        "os.mkfifo(out / 'pipe')\n",
        files=[{"path": "in/a.txt", "configMapKeyRef": {"name": name, "key": "a.txt"}}],
    )
    assert [(a["path"], a["bytes"]) for a in status["result"]["artifacts"]] == [("sub/deep.txt", 5)]


def test_an_exception_is_told_by_its_class_and_the_users_lines(tenant: Tenant) -> None:
    status = tenant.run("def f():\n    return 1 / 0\n\nprint('before')\nf()\n")
    assert status["reason"] == "NonZeroExit"
    result = status["result"]
    assert result["exitCode"] == 1
    assert result["errorType"] == "ZeroDivisionError"
    assert "line 5" in result["traceback"]
    assert "sandyard_runtime" not in result["traceback"]
    assert result["stdout"]["text"] == "before\n"


def test_a_bare_exit_status_has_no_error_type(tenant: Tenant) -> None:
    result = tenant.run("import sys; sys.exit(7)")["result"]
    assert result["exitCode"] == 7
    assert result.get("errorType", "") == ""


def test_exit_with_a_text_is_status_one(tenant: Tenant) -> None:
    status = tenant.run("import sys; sys.exit('no more sand')")
    assert status["reason"] == "NonZeroExit"
    assert status["result"]["exitCode"] == 1
    assert "no more sand" in status["result"]["stderr"]["text"]


def test_a_keyboard_interrupt_of_its_own_is_a_non_zero_exit(tenant: Tenant) -> None:
    status = tenant.run("raise KeyboardInterrupt")
    assert (status["reason"], status["result"]["exitCode"]) == ("NonZeroExit", 1)


def test_a_signal_is_named(tenant: Tenant) -> None:
    status = tenant.run("import os, signal; print('bye', flush=True); os.kill(os.getpid(), signal.SIGSEGV)")
    assert status["reason"] == "KilledBySignal"
    assert status["result"]["signal"] == "SIGSEGV"
    assert status["result"]["stdout"]["text"] == "bye\n"


def test_a_run_above_its_time_is_stopped_and_keeps_its_output(tenant: Tenant) -> None:
    status = tenant.run("import time; print('started', flush=True); time.sleep(600)", runTimeoutSeconds=2)
    assert status["reason"] == "RunTimeout"
    assert status["result"]["stdout"]["text"] == "started\n"
    assert 1500 <= status["timings"]["runMilliseconds"] <= 20_000


def test_too_much_memory_is_oom(tenant: Tenant) -> None:
    status = tenant.run("print('eating', flush=True); x = bytearray(2 << 30)")
    assert status["reason"] == "OOMKilled"
    assert status["result"]["stdout"]["text"] == "eating\n"


def test_a_full_disk_is_told(tenant: Tenant) -> None:
    status = tenant.run("for i in range(400):\n    open(f'/workspace/f{i}', 'wb').write(b'x' * (8 << 20))\n")
    assert status["reason"] == "DiskLimitExceeded"


def test_processes_threads_and_asyncio_work(tenant: Tenant) -> None:
    status = tenant.run(
        "import asyncio, multiprocessing, subprocess, sys, threading\n"
        "def square(x):\n    return x * x\n"
        "if __name__ == '__main__':\n"
        "    for method in ('fork', 'spawn'):\n"
        "        with multiprocessing.get_context(method).Pool(2) as pool:\n"
        "            print(method, pool.map(square, [1, 2, 3]))\n"
        "    child = [sys.executable, '-c', 'import pandas; print(6 * 7)']\n"
        "    print(subprocess.run(child, capture_output=True, text=True).stdout)\n"
        "    asyncio.run(asyncio.sleep(0.01))\n"
        "    thread = threading.Thread(target=lambda: print('thread')); thread.start(); thread.join()\n",
        runTimeoutSeconds=50,
    )
    assert status["reason"] == "Succeeded", status["result"]["stderr"]["text"]
    text = status["result"]["stdout"]["text"]
    assert "fork [1, 4, 9]" in text
    assert "spawn [1, 4, 9]" in text
    assert "42" in text
    assert "thread" in text


def test_children_left_behind_do_not_delay_the_end(tenant: Tenant) -> None:
    status = tenant.run(
        "import subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
        "print('done')\n"
    )
    assert status["reason"] == "Succeeded"
    assert status["timings"]["runMilliseconds"] < 20_000


def test_long_output_is_counted_whole_kept_to_the_cap_and_shown_head_and_tail(tenant: Tenant) -> None:
    status = tenant.run("import sys\nfor i in range(300_000): sys.stdout.write(f'{i:06d}\\n')")
    stdout = status["result"]["stdout"]
    assert stdout["bytes"] == 2_100_000
    assert stdout["truncated"] is True
    assert stdout["text"].startswith("000000\n000001\n")
    assert len(stdout["text"].encode()) <= 16 * 1024
