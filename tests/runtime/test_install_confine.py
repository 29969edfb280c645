"""The installer's cage, each wall beside the same act outside of it."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sandyard_runtime.agent.install.confine import SCOPE_ABI, landlock_abi
from sandyard_runtime.agent.install.process import Installer, Plan

PYTHON = Path(sys.executable).resolve()
ACTS = {
    "read what it was not given": "open({secret!r}).read()",
    "write outside": "open({outside!r}, 'w').close()",
    "link a secret in": "import os; os.link({secret!r}, {inside!r})",
    "trace": "import ctypes, os; c = ctypes.CDLL(None, use_errno=True); "
    "c.ptrace(0, 0, 0, 0) and (_ for _ in ()).throw(PermissionError(1, 'no'))",
    "leave the group": "import os; os.setpgid(0, 0)",
    "a file above the cap": "open({inside!r}, 'wb').write(b'x' * 70000)",
}
if landlock_abi() >= SCOPE_ABI:
    ACTS["signal the agent"] = "import os; os.kill({agent}, 0)"


def command(code: str) -> tuple[str, ...]:
    return (str(PYTHON), "-I", "-S", "-c", code)


async def run_confined(tmp_path: Path, *codes: str) -> tuple[list[int], str]:
    inside = tmp_path / "inside"
    inside.mkdir()
    plan = Plan(
        commands=tuple(map(command, codes)),
        readable=("/usr", "/lib", "/lib64", "/dev", str(PYTHON.parents[1])),
        writable=(str(inside),),
        max_file_bytes=65536,
        environment={},
        directory=inside,
    )
    installer = await Installer.launch(plan)
    try:
        results = [await installer.step() for _ in codes]
    finally:
        await installer.end()
    return results, installer.stderr


@pytest.mark.parametrize("act", ACTS)
def test_a_wall_holds(tmp_path: Path, act: str) -> None:
    secret, outside = tmp_path / "secret", tmp_path / "outside"
    secret.write_text("key")
    code = ACTS[act].format(
        secret=str(secret), outside=str(outside), inside=str(tmp_path / "inside" / "file"), agent=os.getpid()
    )
    (tmp_path / "control").mkdir()
    free = code.replace(str(tmp_path / "inside"), str(tmp_path / "control"))
    assert subprocess.run(command(free), check=False).returncode == 0, "the control failed"
    results, stderr = asyncio.run(run_confined(tmp_path, code))
    assert results != [0]
    assert "Error" in stderr or results[0] < 0


async def test_it_may_work_inside(tmp_path: Path) -> None:
    results, stderr = await run_confined(tmp_path, "open('file', 'w').write('x')", "import sys; sys.exit(3)")
    assert results == [0, 3], stderr
    assert (tmp_path / "inside" / "file").read_text() == "x"


async def test_nothing_outlives_the_end(tmp_path: Path) -> None:
    code = (
        "import os, signal, time; os.fork(); signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "open('up', 'w'); time.sleep(600)"
    )
    inside = tmp_path / "inside"
    inside.mkdir()
    plan = Plan(
        commands=(command(code),),
        readable=("/usr", "/lib", "/lib64", str(PYTHON.parents[1])),
        writable=(str(inside),),
        max_file_bytes=65536,
        environment={},
        directory=inside,
    )
    installer = await Installer.launch(plan)
    step = asyncio.create_task(installer.step())
    async with asyncio.timeout(10):
        while not (inside / "up").exists():  # noqa: ASYNC110 - a file tells nobody
            await asyncio.sleep(0.01)
    await installer.end()
    assert await step == -1
    assert await asyncio.to_thread(Path(f"/proc/self/task/{os.getpid()}/children").read_text) == ""
