"""Make the index's own test packages from their sources: good ones, and ones broken in one way each.

A package is a folder with a package.toml and, in ``files``, what goes into its archive. The same sources make the
same bytes each time. Standard library only; README.md describes each package.
"""

import base64
import gzip
import hashlib
import io
import stat
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

TIME: Final = (1980, 1, 1, 0, 0, 0)  # the earliest a zip can say
FILE: Final = stat.S_IFREG | 0o644
LINK: Final = stat.S_IFLNK | 0o777
ANY: Final = "py3-none-any"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A package as its folder describes it."""

    name: str
    version: str
    tag: str = ANY
    requires: tuple[str, ...] = ()
    requires_python: str = ""
    sdist: bool = False
    fault: str = ""  # a key of FAULTS
    files: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def stem(self) -> str:
        """The start of its archive's name."""
        return f"{self.name.replace('-', '_')}-{self.version}"

    @property
    def metadata(self) -> bytes:
        """Its METADATA or PKG-INFO."""
        lines = ["Metadata-Version: 2.1", f"Name: {self.name}", f"Version: {self.version}"]
        lines += [f"Requires-Python: {self.requires_python}"] if self.requires_python else []
        lines += [f"Requires-Dist: {each}" for each in self.requires]
        return "\n".join([*lines, ""]).encode()


@dataclass(slots=True)
class Wheel:
    """The entries of a wheel to be written: content, mode, and whether RECORD tells the truth."""

    source: Source
    entries: dict[str, tuple[bytes, int]]
    lies: frozenset[str] = frozenset()

    @property
    def info(self) -> str:
        """Its metadata folder."""
        return f"{self.source.stem}.dist-info"

    def packed(self) -> bytes:
        """Return the archive."""
        output = io.BytesIO()
        with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, (content, mode) in [*self.entries.items(), (f"{self.info}/RECORD", (self._record(), FILE))]:
                entry = zipfile.ZipInfo(path, TIME)
                entry.external_attr = mode << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, content)
        return output.getvalue()

    def _record(self) -> bytes:
        lines = []
        for path, (content, _) in self.entries.items():
            hashed = b"something else" if path in self.lies else content
            digest = base64.urlsafe_b64encode(hashlib.sha256(hashed).digest()).rstrip(b"=").decode()
            lines.append(f"{path},sha256={digest},{len(hashed)}\n")
        return "".join([*lines, f"{self.info}/RECORD,,\n"]).encode()


def main(sources: Path, target: Path) -> None:
    """Make every package."""
    target.mkdir(parents=True, exist_ok=True)
    for folder in sorted(sources.iterdir()):
        name, content = make(read(folder))
        (target / name).write_bytes(content)
        (target / name).chmod(0o644)


def read(folder: Path) -> Source:
    """Read one package's folder."""
    described: dict[str, Any] = tomllib.loads((folder / "package.toml").read_text())
    root = folder / "files"
    paths = sorted(path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    files = {str(path.relative_to(root)): path.read_bytes() for path in paths}
    described["requires"] = tuple(described.get("requires", ()))
    return Source(**described, files=files)


def make(source: Source) -> tuple[str, bytes]:
    """Return an archive's name and bytes."""
    if source.sdist:
        return f"{source.stem}.tar.gz", sdist(source)
    wheel = Wheel(source, {path: (content, FILE) for path, content in source.files.items()})
    header = f"Wheel-Version: 1.0\nGenerator: sandyard\nRoot-Is-Purelib: true\nTag: {source.tag}\n".encode()
    wheel.entries |= {f"{wheel.info}/METADATA": (source.metadata, FILE), f"{wheel.info}/WHEEL": (header, FILE)}
    before, after = FAULTS[source.fault]
    before(wheel)
    return f"{source.stem}-{source.tag}.whl", after(wheel.packed())


def sdist(source: Source) -> bytes:
    """Return a source distribution."""
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w") as archive:
        for path, content in {**source.files, "PKG-INFO": source.metadata}.items():
            entry = tarfile.TarInfo(f"{source.stem}/{path}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(output.getvalue(), mtime=0)


def nothing(_: Wheel) -> None:
    """Leave a wheel as it is."""


def whole(content: bytes) -> bytes:
    """Leave an archive as it is."""
    return content


def half(content: bytes) -> bytes:
    """Cut an archive in the middle, where its directory is lost."""
    return content[: len(content) // 2]


def lie_in_record(wheel: Wheel) -> None:
    """Let RECORD name another content for each file."""
    wheel.lies = frozenset(wheel.source.files)


def climb(wheel: Wheel) -> None:
    """Add an entry that would land outside the target."""
    wheel.entries["../../../../tmp/sandyard-climbed.py"] = (b"climbed = True\n", FILE)


def link(wheel: Wheel) -> None:
    """Add a symbolic link to a file of the system."""
    wheel.entries["sandyard_linking/users.txt"] = (b"/etc/passwd", LINK)


def swell(wheel: Wheel) -> None:
    """Add files that are small in the archive and 640 MiB outside: too many for a task that may hold 500."""
    for number in range(10):
        wheel.entries[f"sandyard_bomb/{number}.bin"] = (bytes(64 * 1024 * 1024), FILE)


FAULTS: Final[dict[str, tuple[Callable[[Wheel], None], Callable[[bytes], bytes]]]] = {
    "": (nothing, whole),
    "truncated": (nothing, half),
    "record": (lie_in_record, whole),
    "climbs": (climb, whole),
    "links": (link, whole),
    "swells": (swell, whole),
}


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
