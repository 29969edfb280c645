"""Run the programs a build needs, keep what they said, and install those that a Debian machine lacks."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from images.errors import ImageError
from images.settings import Settings

TAIL_LINES: Final = 25


def fresh_log(settings: Settings, job: str) -> Path:
    """Return an emptied log for one job."""
    path = settings.folder / "logs" / f"{job}.log"
    path.unlink(missing_ok=True)
    return path


def run(command: Sequence[str | Path], *, log: Path, env: Mapping[str, str] | None = None, fix: str = "") -> None:
    """Run a program with its output in ``log``; raise ImageError with the end of it when it fails."""
    log.parent.mkdir(parents=True, exist_ok=True)
    words = [str(part) for part in command]
    with log.open("ab") as output:
        output.write(f"$ {' '.join(words)}\n".encode())
        output.flush()
        try:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=env, check=False)
        except FileNotFoundError as error:
            raise ImageError(f"{words[0]} is not installed.", fix=fix) from error
    if done.returncode != 0:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-TAIL_LINES:])
        raise ImageError(f"{tail}\n{words[0]} ended with {done.returncode}.", fix=fix or f"read {log}")


def answers(command: Sequence[str]) -> bool:
    """Tell whether a program is there and succeeds."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=20)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def require(program: str, *, log: Path) -> None:
    """Install a program with Debian's own tool when it is missing and that is possible."""
    if shutil.which(program):
        return
    fix = f"install {program} (Debian: apt-get install {program})"
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise ImageError(f"{program} is not installed.", fix=fix)
    install = ["apt-get", "install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300", program]
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        run(install, log=log, env=env)
    except ImageError:
        with suppress(ImageError):  # a list of some other vendor's may fail to load
            run(["apt-get", "update"], log=log, env=env)
        run(install, log=log, env=env, fix=fix)
