"""Install one lock's wheels inside an image build: offline, each by its hash, compiled, without what never runs.

Runs as root in the image's own Python, with the build context mounted. The target is either a folder
(``--target``, no scripts) or a new virtual environment (``--venv``). Standard library and the mounted uv only.
"""

import argparse
import compileall
import csv
import json
import os
import py_compile
import shutil
import subprocess
import venv
from importlib.metadata import distributions
from pathlib import Path
from typing import Final

PYTHON: Final = "/usr/bin/python3.13"
TEST_FOLDERS: Final = ("tests", "test")
UNUSED_FOLDERS: Final = ("pyarrow/include", "pyarrow/src", "matplotlib/mpl-data/sample_data")
# What compilers and type checkers read.
UNUSED_SUFFIXES: Final = frozenset({".a", ".c", ".cc", ".cpp", ".h", ".hpp", ".pxd", ".pxi", ".pyi", ".pyx"})
PROGRAMS: Final = frozenset({"uv"})  # of a virtual environment's scripts


def main() -> None:
    """Install, prune, compile, and list what is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lock", type=Path, required=True)
    parser.add_argument("--wheels", type=Path, required=True)
    parser.add_argument("--uv", type=Path, required=True)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--target", type=Path)
    where.add_argument("--venv", type=Path)
    parser.add_argument("--packages", type=Path, help="write the list of packages to this file")
    options = parser.parse_args()
    if options.target:
        site, place = options.target, [f"--python={PYTHON}", f"--target={options.target}"]
    else:
        site, place = make_environment(options.venv)
    install(options.uv, options.lock, options.wheels, place)
    if options.target:
        shutil.rmtree(site / "bin", ignore_errors=True)
    else:
        remove_scripts(options.venv / "bin")
    (options.target or options.venv).joinpath(".lock").unlink(missing_ok=True)  # uv's, writable for all
    prune(site)
    compile_all(site)
    if options.packages:
        listed = sorted((each.metadata["Name"], each.version) for each in distributions(path=[str(site)]))
        lines = [json.dumps({"name": name, "version": version}) for name, version in listed]
        options.packages.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def make_environment(folder: Path) -> tuple[Path, list[str]]:
    """Make a virtual environment without pip; return its site-packages and where uv finds it."""
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    python = folder / "bin" / "python"
    return folder / "lib" / "python3.13" / "site-packages", [f"--python={python}"]


def install(uv: Path, lock: Path, wheels: Path, place: list[str]) -> None:
    """Install exactly the lock, from the mounted wheels alone."""
    subprocess.run(  # noqa: S603 - our own arguments
        [
            uv,
            "pip",
            "install",
            "--quiet",
            "--no-config",
            "--offline",
            "--no-cache",
            "--no-index",
            f"--find-links={wheels}",
            "--only-binary=:all:",
            "--no-deps",
            "--require-hashes",
            "--link-mode=copy",
            *place,
            f"--requirements={lock}",
        ],
        check=True,
    )


def remove_scripts(folder: Path) -> None:
    """Keep the interpreter and the programs that are called by path."""
    for path in folder.iterdir():
        if not path.name.startswith("python") and path.name not in PROGRAMS:
            path.unlink()


def prune(site: Path) -> None:
    """Remove tests and what only compilers read, and say so in each RECORD."""
    for folder in (site / name for name in UNUSED_FOLDERS):
        shutil.rmtree(folder, ignore_errors=True)
    for parent, folders, files in os.walk(site):
        for name in [name for name in folders if name in TEST_FOLDERS]:
            folders.remove(name)
            shutil.rmtree(Path(parent, name))
        for path in (Path(parent, name) for name in files):
            if path.suffix in UNUSED_SUFFIXES:
                path.unlink()
    for note in site.glob("*.dist-info/uv_cache.json"):  # when each wheel was written here
        note.unlink()
    for record in site.glob("*.dist-info/RECORD"):
        with record.open(newline="") as file:
            rows = [row for row in csv.reader(file) if row and (site / row[0]).exists()]
        with record.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


def compile_all(folder: Path) -> None:
    """Compile for good: the files never change, so Python need not compare them with their sources."""
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    compileall.compile_dir(folder, quiet=2, force=True, invalidation_mode=mode, workers=os.cpu_count() or 1)


if __name__ == "__main__":
    main()
