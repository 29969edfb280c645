"""The installer's cage, each wall beside the same act outside of it.

Runs in a process of its own: the end of an install kills every child its process has.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from sandyard_runtime.worker import landlock

PYTHON: Final = Path(sys.executable).resolve()
READABLE: Final = ("/usr", "/lib", "/lib64", str(PYTHON.parents[1]))
DRIVER: Final = """
import asyncio, json, sys
from pathlib import Path
from sandyard_runtime.agent.install.process import CHILDREN, Installer, Plan

async def main(commands, readable, inside, patience):
    plan = Plan(commands=commands, readable=readable, writable=[inside], max_file_bytes=65536, environment={},
                directory=Path(inside))
    installer = await Installer.launch(plan)
    try:
        async with asyncio.timeout(patience):
            results = [await installer.step() for _ in commands]
    except TimeoutError:
        results = None
    await installer.end()
    return {"results": results, "stderr": installer.stderr, "children": CHILDREN.read_text()}

print(json.dumps(asyncio.run(main(*json.loads(sys.argv[1])))))
"""
ACTS: Final = {
    "read what it was not given": "open({secret!r}).read()",
    "write outside": "open({outside!r}, 'w').close()",
    "link a secret in": "import os; os.link({secret!r}, {inside!r})",
    "trace": "import ctypes, os; c = ctypes.CDLL(None, use_errno=True); "
    "c.ptrace(0, 0, 0, 0) and (_ for _ in ()).throw(PermissionError(1, 'no'))",
    "a file above the cap": "open({inside!r}, 'wb').write(b'x' * 70000)",
    "a Unix socket": "import socket; socket.socket(socket.AF_UNIX)",
}
if landlock.abi() >= landlock.SCOPE_ABI:
    ACTS["signal the agent"] = "import os; os.kill({agent}, 0)"


def command(code: str) -> list[str]:
    return [str(PYTHON), "-I", "-S", "-c", code]


def run_confined(tmp_path: Path, *codes: str, patience: float = 20) -> dict[str, Any]:
    inside = tmp_path / "inside"
    inside.mkdir()
    told = json.dumps([[command(code) for code in codes], READABLE, str(inside), patience])
    done = subprocess.run([sys.executable, "-c", DRIVER, told], check=True, stdout=subprocess.PIPE)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("act", ACTS)
def test_a_wall_holds(tmp_path: Path, act: str) -> None:
    secret, outside = tmp_path / "secret", tmp_path / "outside"
    secret.write_text("key")
    inside = tmp_path / "inside"
    places = {"secret": str(secret), "outside": str(outside), "agent": os.getpid()}
    (tmp_path / "control").mkdir()
    free = ACTS[act].format(**places, inside=str(tmp_path / "control" / "file"))
    assert subprocess.run(command(free), check=False).returncode == 0, "the control failed"
    found = run_confined(tmp_path, ACTS[act].format(**places, inside=str(inside / "file")))
    assert found["results"] != [0]
    assert "Error" in found["stderr"] or found["results"][0] < 0


def test_it_may_work_inside(tmp_path: Path) -> None:
    found = run_confined(tmp_path, "open('file', 'w').write('x')", "import sys; sys.exit(3)")
    assert found["results"] == [0, 3], found
    assert (tmp_path / "inside" / "file").read_text() == "x"


def test_nothing_outlives_the_end(tmp_path: Path) -> None:
    code = (
        "import os, signal, time; os.fork() or os.setsid(); signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "open(str(os.getpid()), 'w'); time.sleep(600)"
    )
    found = run_confined(tmp_path, code, patience=2)
    assert found["results"] is None
    assert found["children"] == ""
    pids = [entry.name for entry in (tmp_path / "inside").iterdir()]
    assert len(pids) == 2
    assert not any(Path("/proc", pid).exists() for pid in pids)
