"""One run: a script as ``__main__``, its exception told as data, its exit code as a process's.

Works in the forked process after lock-down. Ends by returning the exit code up to the interpreter's own end, so
that threads are joined, exit handlers run and files are flushed as in any Python program.
"""

import builtins
import contextlib
import json
import os
import site
import sys
import traceback
import types
from io import TextIOWrapper
from typing import Final

TRACEBACK_BYTES: Final = 4096  # of its tail
MESSAGE_BYTES: Final = 1024
SCRIPT: Final = "/tmp/sandyard/script.py"  # noqa: S108 - a mount of the runner's own
WORKSPACE: Final = "/workspace"
PACKAGES: Final = "/sandyard/packages/site"
IMAGE_SITE: Final = "/opt/sandyard/site"
UNTOLD: Final = "(its text could not be made)"


def run(code: bytes, arguments: list[str], *, report: int) -> int:
    """Run a script and return its exit code; an uncaught exception goes to ``report`` as JSON."""
    main = prepare(code, arguments)
    try:
        exec(compile(code, SCRIPT, "exec", dont_inherit=True), main.__dict__)  # noqa: S102 - this is the product
    except SystemExit:
        raise  # the interpreter's own end knows what each kind of it means
    except BaseException as error:  # noqa: BLE001 - whatever a user raises is theirs
        tell(error, report)
        return 1
    return 0


def prepare(code: bytes, arguments: list[str]) -> types.ModuleType:
    """Make the interpreter look as ``python script.py`` finds it, and return its ``__main__``."""
    os.makedirs(os.path.dirname(SCRIPT), exist_ok=True)  # noqa: PTH103, PTH120 - pathlib is not imported for this
    with open(SCRIPT, "wb") as file:  # noqa: PTH123
        file.write(code)
    sys.argv = [SCRIPT, *arguments]
    standard = [path for path in sys.path if path.startswith(sys.base_prefix + "/lib/")]
    packages = [path for path in (PACKAGES, IMAGE_SITE) if os.path.isdir(path)]  # noqa: PTH112
    sys.path[:] = [WORKSPACE, *standard, *packages]
    sys.path_importer_cache.clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "sandyard_runtime"]:
        del sys.modules[name]
    sys.stdin = sys.__stdin__ = stream(0, "r", "<stdin>")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = stream(1, "w", "<stdout>")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = stream(2, "w", "<stderr>", errors="backslashreplace")  # type: ignore[misc]
    site.setquit()
    site.sethelper()
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=SCRIPT, __builtins__=builtins, __spec__=None, __cached__=None)
    sys.modules["__main__"] = main
    return main


def stream(descriptor: int, mode: str, name: str, *, errors: str = "strict") -> TextIOWrapper:
    """Return a standard stream as the interpreter makes it, but by lines: a killed run keeps what it printed."""
    raw = open(descriptor, f"{mode}b", closefd=False)  # noqa: SIM115 - lives as long as the run
    raw.raw.name = name  # type: ignore[attr-defined]
    text = TextIOWrapper(raw, "utf-8", errors, newline="\n" if mode == "w" else None, line_buffering=True)
    text.mode = mode  # type: ignore[misc]
    return text


def tell(error: BaseException, report: int) -> None:
    """Show an uncaught exception as the interpreter does, and report it; what lies about itself is survived."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_globals.get("__name__") == __name__:
        frames = frames.tb_next
    with contextlib.suppress(BaseException):
        error.__traceback__ = frames
    with contextlib.suppress(BaseException):
        write_report(error, report)
    with contextlib.suppress(BaseException):
        sys.excepthook(type(error), error, frames)
    with contextlib.suppress(BaseException):
        sys.stderr.flush()


def write_report(error: BaseException, report: int) -> None:
    """Write the exception's name, text and traceback to the supervisor, each within its bound."""
    try:
        lines = "".join(traceback.format_exception(error))
    except BaseException:  # noqa: BLE001
        lines = f"{type(error).__name__}: {UNTOLD}\n"
    try:
        message = str(error)
    except BaseException:  # noqa: BLE001
        message = UNTOLD
    data = {
        "errorType": type(error).__name__,
        "errorMessage": _encoded(message)[:MESSAGE_BYTES].decode(errors="ignore"),
        "traceback": _encoded(lines)[-TRACEBACK_BYTES:].decode(errors="ignore"),
    }
    os.write(report, json.dumps(data).encode())


def _encoded(text: str) -> bytes:
    return text.encode(errors="backslashreplace")
