"""Fetch each lock's wheels by their hashes into a folder of the cache, once per content of the lock."""

import hashlib
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from images.errors import ImageError
from images.programs import run
from images.settings import ROOT, WHEEL_MACHINES, Settings

PYTHON: Final = "3.13"
OLDEST_GLIBC, NEWEST_GLIBC = 5, 41  # 2.5 named the first manylinux; the base image's Debian 13 has 2.41
OLD_NAMES: Final = ("manylinux1", "manylinux2010", "manylinux2014")


def folder(lock: str, settings: Settings) -> Path:
    """Return where a lock's wheels are once they are fetched."""
    content = lock_file(lock).read_bytes() + settings.architecture.encode()
    return settings.folder / "wheels" / f"{lock}-{hashlib.sha256(content).hexdigest()[:12]}"


def lock_file(lock: str) -> Path:
    """Return a lock's file in the checkout."""
    return ROOT / "locks" / f"{lock}.txt"


def fetch(lock: str, settings: Settings, *, log: Path) -> None:
    """Fetch a lock's wheels into their folder, all or nothing, and remove those of the lock's past."""
    target = folder(lock, settings)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=target.parent) as name:
        fresh = Path(name) / "wheels"
        command = download(lock_file(lock), fresh, settings)
        run(command, log=log, fix="see the lines above; the package index must be reachable")
        fresh.rename(target)
    for old in target.parent.glob(f"{lock}-*"):
        if old != target:
            shutil.rmtree(old)


def download(lock: Path, target: Path, settings: Settings) -> list[str | Path]:
    """Return pip's command line: exactly the lock, as wheels, for the images' Python and machine."""
    machine = WHEEL_MACHINES[settings.architecture]
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in range(NEWEST_GLIBC, OLDEST_GLIBC - 1, -1)]
    platforms += [f"{name}_{machine}" for name in OLD_NAMES]
    return [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
        *("--no-deps", "--require-hashes", "--only-binary=:all:", f"--dest={target}"),
        *("--implementation=cp", f"--python-version={PYTHON}", "--abi=cp313", "--abi=abi3", "--abi=none"),
        *(f"--platform={platform}" for platform in platforms),
        f"--requirement={lock}",
    ]


def unpack_uv(wheelhouse: Path, settings: Settings) -> Path:
    """Take the uv program, which installs wheels during the build, out of its wheel."""
    wheels = list(wheelhouse.glob("uv-*.whl"))
    if not wheels:
        raise ImageError("the agent's lock holds no uv.", fix="run: make image-locks")
    target = settings.folder / "uv" / wheels[0].stem / "uv"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(wheels[0]) as wheel:
            member = next(name for name in wheel.namelist() if name.endswith(".data/scripts/uv"))
            fresh = target.with_suffix(".new")
            fresh.write_bytes(wheel.read(member))
        fresh.chmod(0o755)
        fresh.rename(target)
    return target
