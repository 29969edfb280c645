"""Finish the root of the base image, from inside it: users, names of Python, compiled standard library, less weight.

Both ways to the base run this file: the Dockerfile and mmdebstrap. Standard library only, as root, once.
"""

import compileall
import os
import py_compile
import shutil
import stat
from pathlib import Path
from typing import Final

# No shell and no home: nobody logs in. The first three are the contract of sandyard_api.names and the chart.
USERS: Final = {"operator": 10000, "agent": 10001, "runner": 10002, "index": 10003}
STANDARD_LIBRARY: Final = Path("/usr/lib/python3.13")
PYTHON: Final = "python3.13"
ALIASES: Final = ("/usr/bin/python3", "/usr/bin/python")  # scripts start them by these names
# Read by people or rebuilt by package tools; licences in /usr/share/doc/*/copyright stay.
WEIGHT: Final = (
    "/usr/share/info",
    "/usr/share/lintian",
    "/usr/share/locale",
    "/usr/share/man",
    "/var/cache",
    "/var/lib/apt/lists",
    "/var/log",
)


def main() -> None:
    """Do all of it."""
    add_users()
    for alias in ALIASES:
        Path(alias).unlink(missing_ok=True)
        Path(alias).symlink_to(PYTHON)
    lose_weight()
    compile_standard_library()
    clear_set_id_bits()


def add_users() -> None:
    """Name the users that containers run as, each with a group of its own number."""
    for name, number in USERS.items():
        append("/etc/passwd", f"{name}:x:{number}:{number}::/nonexistent:/usr/sbin/nologin")
        append("/etc/group", f"{name}:x:{number}:")


def append(path: str, line: str) -> None:
    """Add one line, replacing an entry of the same name that Debian has."""
    name = line.partition(":")[0]
    kept = [entry for entry in Path(path).read_text().splitlines() if entry.partition(":")[0] != name]
    Path(path).write_text("\n".join([*kept, line, ""]))


def lose_weight() -> None:
    """Remove what no program reads."""
    for folder in map(Path, WEIGHT):
        if folder.is_dir():
            for entry in folder.iterdir():
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    for path in Path("/usr/share/doc").rglob("*"):
        if path.name != "copyright" and not path.is_dir():
            path.unlink()


def compile_standard_library() -> None:
    """Compile it so that no image's file times can make Python compile it again at every start."""
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    if not compileall.compile_dir(STANDARD_LIBRARY, quiet=1, force=True, invalidation_mode=mode):
        raise SystemExit("the standard library did not compile")


def clear_set_id_bits() -> None:
    """Leave no program that gains rights by being run."""
    for folder, _, files in os.walk("/"):
        if folder.startswith(("/proc", "/sys", "/dev")):
            continue
        for path in (Path(folder), *(Path(folder, name) for name in files)):
            mode = path.lstat().st_mode
            if not stat.S_ISLNK(mode) and mode & (stat.S_ISUID | stat.S_ISGID):
                path.chmod(stat.S_IMODE(mode) & ~(stat.S_ISUID | stat.S_ISGID))


if __name__ == "__main__":
    main()
