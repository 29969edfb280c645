"""Resolve each image's packages anew into its lock: exact versions with hashes, of what the tests ran with.

The operator and the agent take the versions of the development lock, which the tests use; the others are resolved
to the newest. No address of an index is written.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from images.programs import fresh_log, run
from images.settings import ROOT, Settings
from images.wheels import PYTHON, lock_file

AS_TESTED: Final = ("-c", "locks/dev.txt")
SOURCES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "operator": ("pyproject.toml", "--extra=operator", *AS_TESTED),
        "agent": ("pyproject.toml", "--extra=agent", *AS_TESTED),
        "runtime": ("images/runtime/packages.in",),
        "index": ("images/index/server.in", "--no-emit-package=pip"),  # only its own updates need pip
        "index-packages": ("images/index/served.in",),
    }
)


def resolve_all(settings: Settings, *, upgrade: bool) -> None:
    """Write every lock; versions that still fit stay unless ``upgrade``."""
    for lock, words in SOURCES.items():
        run([*command(lock_file(lock), upgrade=upgrade), *words], log=fresh_log(settings, f"lock-{lock}"))


def command(lock: Path, *, upgrade: bool) -> list[str]:
    """Return uv's command line without what is to be resolved."""
    return [
        *(str(ROOT / ".venv" / "bin" / "uv"), "pip", "compile", "--quiet", f"--directory={ROOT}"),
        *(f"--python-version={PYTHON}", "--python-platform=linux", "--no-build", "--generate-hashes"),
        *("--no-emit-index-url", "--no-header", "--no-annotate", *(["--upgrade"] if upgrade else [])),
        f"--output-file={lock}",
    ]
