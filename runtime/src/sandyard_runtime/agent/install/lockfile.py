"""uv's resolution: what is taken from the image, what is installed by hash, and which wheel it was.

Pure but for the metadata of an installed wheel, which is handed in. Reads and writes PEP 751 lock files as
uv does.
"""

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from packaging.tags import Tag, parse_tag
from packaging.utils import canonicalize_name, parse_wheel_filename

from sandyard_api.wire import Package, canonical_sha256

HEADER: Final = 'lock-version = "1.0"\ncreated-by = "sandyard"\n'


class LockError(Exception):
    """The lock is not what uv writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Locked:
    """One resolved distribution with the wheels that fit, by their tags."""

    name: str
    version: str
    wheels: tuple[tuple[frozenset[Tag], str], ...]  # tags, sha256

    @property
    def pin(self) -> str:
        """The line that installs it and nothing else."""
        hashes = " ".join(f"--hash=sha256:{sha256}" for _, sha256 in self.wheels)
        return f"{self.name}=={self.version} {hashes}"

    def installed(self, wheel: str) -> Package:
        """Describe it, given the WHEEL file of what was installed."""
        tags = {
            tag
            for line in wheel.splitlines()
            if line.startswith("Tag:")
            for tag in parse_tag(line.removeprefix("Tag:").strip())
        }
        fitting = [sha256 for ours, sha256 in self.wheels if ours == tags]
        sha256 = fitting[0] if len(fitting) == 1 else ""
        return Package(name=self.name, version=self.version, sha256=sha256)


def preferences(packages: Iterable[Package]) -> str:
    """Write a lock that makes the resolver prefer these versions."""
    rows = (
        f"{{ name = {json.dumps(package.name)}, version = {json.dumps(package.version)} }},\n" for package in packages
    )
    return f"{HEADER}packages = [\n{''.join(rows)}]\n"


def read_lock(text: str) -> tuple[Locked, ...]:
    """Read what uv resolved."""
    try:
        return tuple(_locked(package) for package in tomllib.loads(text).get("packages", []))
    except (KeyError, TypeError, ValueError) as error:
        raise LockError("the lock cannot be read") from error


def lock_sha256(packages: Iterable[Package]) -> str:
    """Digest of a resolution: names, versions and hashes, in order of name."""
    ordered = sorted(packages, key=lambda package: package.name)
    return canonical_sha256([package.model_dump(mode="json") for package in ordered])


def _locked(package: Mapping[str, Any]) -> Locked:
    wheels = []
    for wheel in package["wheels"]:
        filename = unquote(urlsplit(wheel["url"]).path).rpartition("/")[2]
        wheels.append((parse_wheel_filename(filename)[3], str(wheel["hashes"]["sha256"])))
    return Locked(name=canonicalize_name(package["name"]), version=str(package["version"]), wheels=tuple(wheels))
