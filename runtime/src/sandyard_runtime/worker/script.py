"""One run: a script as ``__main__``, its exception told as data, its exit code as a process's.

Works in the forked process after lock-down. Ends by returning the exit code up to the interpreter's own end, so
that threads are joined, exit handlers run and files are flushed as in any Python program.
"""

import builtins
import io
import json
import os
import site
import sys
import traceback
import types
from typing import Any, Final

TRACEBACK_CHARACTERS: Final = 4096  # of its tail
MESSAGE_CHARACTERS: Final = 1024
SCRIPT: Final = "/tmp/sandyard/script.py"  # noqa: S108 - a mount of the runner's own
WORKSPACE: Final = "/workspace"
PACKAGES: Final = "/sandyard/packages/site"
IMAGE_SITE: Final = "/opt/sandyard/site"


def prepare(code: bytes, arguments: list[str]) -> types.ModuleType:
    """Make the interpreter look as ``python script.py`` finds it, and return its ``__main__``."""
    os.makedirs(os.path.dirname(SCRIPT), exist_ok=True)  # noqa: PTH103, PTH120 - pathlib is not imported for this
    with open(SCRIPT, "wb") as file:  # noqa: PTH123
        file.write(code)
    sys.argv = [SCRIPT, *arguments]
    standard = [path for path in sys.path if path.startswith(sys.base_prefix + "/lib/")]
    sys.path[:] = [WORKSPACE, *standard, *(path for path in (PACKAGES, IMAGE_SITE) if os.path.isdir(path))]  # noqa: PTH112
    sys.path_importer_cache.clear()
    for name in [name for name in sys.modules if name.startswith("sandyard_runtime")]:
        del sys.modules[name]
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8")
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), "utf-8")
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(2, "w", closefd=False)),
        "utf-8",
        errors="backslashreplace",
        line_buffering=True,
    )
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]
    site.setquit()
    site.sethelper()
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=SCRIPT, __builtins__=builtins, __spec__=None, __cached__=None)
    sys.modules["__main__"] = main
    return main


def run(code: bytes, arguments: list[str], *, report: int) -> int:
    """Run a script and return its exit code; an uncaught exception goes to ``report`` as JSON."""
    main = prepare(code, arguments)
    try:
        exec(compile(code, SCRIPT, "exec", dont_inherit=True), main.__dict__)  # noqa: S102 - this is the product
    except SystemExit as stop:
        return exit_code(stop.code)
    except BaseException as error:  # noqa: BLE001 - whatever a user raises is theirs
        tell(error, report)
        return 1
    return 0


def exit_code(value: Any) -> int:
    """Return what the operating system gets for a SystemExit."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value & 0xFF
    print(value, file=sys.stderr)  # noqa: T201 - as the interpreter does
    return 1


def tell(error: BaseException, report: int) -> None:
    """Print a traceback of the user's frames and report the exception; what lies about itself is survived."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename != SCRIPT:
        frames = frames.tb_next
    try:
        text = "".join(traceback.format_exception(type(error), error, frames))
    except BaseException:  # noqa: BLE001
        text = f"{type(error).__name__}: (its text could not be made)\n"
    try:
        message = str(error)
    except BaseException:  # noqa: BLE001
        message = "(its text could not be made)"
    data = {
        "errorType": type(error).__name__,
        "errorMessage": message[:MESSAGE_CHARACTERS],
        "traceback": text[-TRACEBACK_CHARACTERS:],
    }
    try:
        os.write(report, json.dumps(data).encode("ascii"))
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):
        return
