"""uv's command lines and environment: one index, wheels only, nothing from configuration, nothing compiled.

Pure. The index's address goes by environment, its credentials by a netrc file, neither by an argument.
"""

from pathlib import Path
from typing import Final

HTTP_SECONDS: Final = "30"  # without a byte
CONNECT_SECONDS: Final = "10"
RETRIES: Final = "2"  # uv waits between them; the install's own time ends them all
DOWNLOADS: Final = "8"

_ALWAYS: Final = (
    "--no-config",
    "--only-binary=:all:",
    "--no-python-downloads",
    "--no-progress",
    "--color=never",
    "--preview-features=pylock",
)


def compile_command(uv: str, python: str, *, requirements: Path, lock: Path, stubs: Path) -> tuple[str, ...]:
    """Resolve ``requirements``; an existing ``lock`` holds the versions to prefer."""
    return (
        uv,
        "pip",
        "compile",
        *_ALWAYS,
        "--quiet",
        f"--python={python}",
        f"--find-links={stubs}",
        "--format=pylock.toml",
        "--no-header",
        f"--output-file={lock}",
        str(requirements),
    )


def install_command(uv: str, python: str, *, pins: Path, site: Path) -> tuple[str, ...]:
    """Install exactly ``pins``, each by its hash."""
    return (
        uv,
        "pip",
        "install",
        *_ALWAYS,
        "--quiet",
        f"--python={python}",
        "--no-deps",
        "--require-hashes",
        "--no-compile-bytecode",
        "--link-mode=hardlink",
        f"--target={site}",
        f"--requirements={pins}",
    )


def environment(*, index: str, directory: Path, netrc: Path | None, authority: Path | None) -> dict[str, str]:
    """Return all that uv finds in its environment."""
    found = {
        "HOME": str(directory),
        "TMPDIR": str(directory),
        "LANG": "C.UTF-8",
        "UV_CACHE_DIR": str(directory / "cache"),
        "UV_DEFAULT_INDEX": index,
        "UV_INDEX_STRATEGY": "first-index",
        "UV_KEYRING_PROVIDER": "disabled",
        "UV_HTTP_TIMEOUT": HTTP_SECONDS,
        "UV_HTTP_CONNECT_TIMEOUT": CONNECT_SECONDS,
        "UV_HTTP_RETRIES": RETRIES,
        "UV_CONCURRENT_DOWNLOADS": DOWNLOADS,
        "NETRC": str(netrc or directory / "no-netrc"),
    }
    if authority is not None:
        found["SSL_CERT_FILE"] = str(authority)
    return found
