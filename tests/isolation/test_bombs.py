"""Bombs end in their reason, the agent alive to report it, what was printed kept; each has a control."""

from typing import Any

import pytest

from harness.plain import plain_pod
from harness.tenant import Tenant, new_tenant

MEMORY = "print('lit', flush=True)\nx = bytearray(700 << 20)\nprint('survived')\n"
SIXTY = (
    "import subprocess, sys\nprint('lit', flush=True)\n"
    "child = 'x = bytearray(20 << 20); import time; time.sleep(8)'\n"
    "children = [subprocess.Popen([sys.executable, '-I', '-S', '-c', child]) for _ in range(60)]\n"
    "codes = [c.wait() for c in children]\nprint('survived' if not any(codes) else 'some died')\n"
)
PRINT = "import sys\nfor _ in range(3 << 10): sys.stdout.write('y' * 1024)\nprint('survived')\n"
DISK = (
    "print('lit', flush=True)\nfor i in range(24):\n    open(f'/tmp/f{i}', 'wb').write(b'x' * (8 << 20))\n"
    "import time; time.sleep(2)\nprint('survived')\n"
)
DAEMON = (  # lives for SECONDS
    "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(SECONDS)\n"
    "        print('survived', flush=True)\n    os._exit(0)\nprint('lit', flush=True)\n"
)
PARENT = (
    "import subprocess, sys, time\n"
    "subprocess.run([sys.executable, '-c', sys.argv[1]])\n"
    "time.sleep(float(sys.argv[2]))\n"
)


@pytest.fixture(scope="module")
def plain(runtime_image: str) -> Any:
    """Return a function that runs a bomb in a plain pod and returns its log."""
    with new_tenant("control") as tenant:

        def run(name: str, code: str, wait: float = 0) -> str:
            command = ["/usr/bin/python3.13", "-c", PARENT, code, str(wait)]
            return plain_pod(tenant, runtime_image, name=name, command=command)

        yield run


def test_a_memory_bomb_is_oom_killed(tenant: Tenant, plain: Any) -> None:
    assert "survived" in plain("memory", MEMORY)
    status = tenant.run(MEMORY)
    assert (status["reason"], status["result"]["stdout"]["text"]) == ("OOMKilled", "lit\n")


def test_sixty_small_memory_bombs_do_not_reach_the_agent(tenant: Tenant, plain: Any) -> None:
    assert "survived" in plain("sixty", SIXTY)
    status = tenant.run(SIXTY)
    assert status["reason"] in {"Succeeded", "OOMKilled"}
    assert "survived" not in status["result"]["stdout"]["text"]
    assert status["result"]["stdout"]["text"].startswith("lit\n")


def test_an_endless_print_is_cut_at_its_cap_and_ends_by_time(tenant: Tenant, plain: Any) -> None:
    assert len(plain("print", PRINT)) > 3 << 20
    status = tenant.run("while True: print('y' * 1000)", runTimeoutSeconds=4)
    assert status["reason"] == "RunTimeout"
    assert status["result"]["stdout"]["truncated"] is True


def test_a_full_disk_ends_in_its_reason(tenant: Tenant, plain: Any) -> None:
    assert "survived" in plain("disk", DISK)
    status = tenant.run(DISK, resources={"limits": {"ephemeral-storage": "64Mi"}})
    assert (status["reason"], status["result"]["stdout"]["text"]) == ("DiskLimitExceeded", "lit\n")


def test_a_daemon_left_behind_is_gone_at_the_end(tenant: Tenant, plain: Any) -> None:
    assert "survived" in plain("daemon", DAEMON.replace("SECONDS", "2"), wait=5)
    status = tenant.run(DAEMON.replace("SECONDS", "60"))
    assert (status["reason"], status["result"]["stdout"]["text"]) == ("Succeeded", "lit\n")
    assert status["timings"]["runMilliseconds"] < 15_000


def test_a_fork_bomb_ends_by_time_and_is_told(tenant: Tenant) -> None:
    code = "import os\nprint('lit', flush=True)\nwhile True:\n    try: os.fork()\n    except OSError: pass\n"
    status = tenant.run(code, runTimeoutSeconds=4, seconds=180)
    assert status["reason"] in {"RunTimeout", "OOMKilled"}
    assert status["result"]["stdout"]["text"] == "lit\n"


def test_a_forged_result_is_text(tenant: Tenant) -> None:
    forged = '{"success": true, "exitCode": 0}'
    status = tenant.run(f"import os\nprint('__RESULT__:', '{forged}', flush=True)\nos._exit(3)")
    assert (status["reason"], status["result"]["exitCode"]) == ("NonZeroExit", 3)
    assert forged in status["result"]["stdout"]["text"]
