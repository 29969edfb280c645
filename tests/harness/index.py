"""A private package index for tests: pypiserver with a password, and small wheels made on the spot."""

import base64
import hashlib
import io
import os
import socket
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HOST: Final = "127.0.0.1"
USER: Final = "reader"
PASSWORD: Final = "correct-horse-battery"
START_SECONDS: Final = 20.0
LOOK_SECONDS: Final = 0.02


def make_wheel(  # noqa: PLR0913 - a wheel has these parts
    directory: Path,
    name: str,
    version: str,
    *,
    files: Mapping[str, bytes] | None = None,
    requires: Iterable[str] = (),
    requires_python: str = "",
    tag: str = "py3-none-any",
    unlisted: Mapping[str, bytes] | None = None,
    record: Mapping[str, str] | None = None,
) -> Path:
    """Write a wheel; ``unlisted`` files are in no RECORD, ``record`` lines replace what it says of a file."""
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {each}\n" for each in requires)
    if requires_python:
        metadata += f"Requires-Python: {requires_python}\n"
    content = dict(files if files is not None else {f"{name}/__init__.py": f"version = {version!r}\n".encode()})
    content[f"{info}/METADATA"] = metadata.encode()
    content[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n".encode()
    lines = [
        (record or {}).get(path) or f"{path},sha256={record_digest(data)},{len(data)}" for path, data in content.items()
    ]
    content |= unlisted or {}
    content[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,", ""]).encode()
    path = directory / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for each, data in content.items():
            wheel.writestr(each, data)
    return path


def make_sdist(directory: Path, name: str, version: str, *, setup: str) -> Path:
    """Write a source distribution whose setup.py is ``setup``."""
    path = directory / f"{name}-{version}.tar.gz"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    with tarfile.open(path, "w:gz") as archive:
        for file, text in {"setup.py": setup, "PKG-INFO": metadata}.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{file}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """Where a running index answers."""

    port: int
    packages: Path

    @property
    def url(self) -> str:
        """The simple API."""
        return f"http://{HOST}:{self.port}/simple/"

    def netrc(self, *, password: str = PASSWORD) -> str:
        """Credentials as a class's Secret holds them."""
        return f"machine {HOST} login {USER} password {password}\n"


@contextmanager
def serve_index(directory: Path) -> Iterator[Index]:
    """Run pypiserver over ``directory``/packages until the block ends."""
    packages = directory / "packages"
    packages.mkdir()
    digest = base64.b64encode(hashlib.sha1(PASSWORD.encode(), usedforsecurity=False).digest()).decode()
    (directory / "htpasswd").write_text(f"{USER}:{{SHA}}{digest}\n")
    port = free_port()
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "pypiserver",
                "run",
                "--interface",
                HOST,
                "--port",
                str(port),
                "--passwords",
                str(directory / "htpasswd"),
                "--authenticate",
                "download,list,update",
                "--disable-fallback",
                "--hash-algo",
                "sha256",
                "--server",
                "wsgiref",
                str(packages),
            ],
            stdout=log,
            stderr=log,
            env=os.environ | {"PYTHONWARNINGS": "ignore"},
        )
    try:
        wait_for_port(port)
        yield Index(port=port, packages=packages)
    finally:
        process.kill()
        process.wait()


def free_port() -> int:
    """Return a port nobody listens on."""
    with socket.create_server((HOST, 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def wait_for_port(port: int) -> None:
    """Wait until somebody listens."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection((HOST, port), timeout=1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(LOOK_SECONDS)
        else:
            return


def record_digest(data: bytes) -> str:
    """Return a hash as a RECORD holds it."""
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
