"""The packages the image ships, and which requirements they satisfy together with all they depend on.

Reads distribution metadata from the image's site directory, never code. For the resolver each package is also
written as a wheel of metadata alone, so that the image's versions are candidates like any of the index.
"""

import hashlib
import json
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Final

from packaging.markers import default_environment
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from sandyard_api.wire import Package

STUB_TIME: Final = (1980, 1, 1, 0, 0, 0)  # the earliest a zip can say: stubs are the same bytes each time


STUB_WHEEL: Final = "Wheel-Version: 1.0\nGenerator: sandyard\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """One package of the image."""

    name: str
    version: Version
    requires: tuple[Requirement, ...]
    metadata: str  # the METADATA file


class Image:
    """The image's packages by canonical name."""

    def __init__(self, distributions: Iterable[Distribution], *, python: str) -> None:
        self.python = python
        self._known = {canonicalize_name(found.name): found for found in distributions}
        short = ".".join(python.split(".")[:2])
        self._environment: dict[str, str] = {
            **{name: str(value) for name, value in default_environment().items()},
            "python_version": short,
            "python_full_version": python,
        }

    @property
    def packages(self) -> tuple[Package, ...]:
        """All of them, sorted by name."""
        return tuple(Package(name=name, version=str(found.version)) for name, found in sorted(self._known.items()))

    def has(self, name: str, version: str) -> bool:
        """Tell whether the image ships exactly this."""
        found = self._known.get(canonicalize_name(name))
        return found is not None and found.version == Version(version)

    def accepts_python(self, requires_python: str) -> bool:
        """Tell whether the runner's Python is within the specifier; raises ValueError."""
        return SpecifierSet(requires_python).contains(self.python, prereleases=True)

    def split(self, requirements: Iterable[str]) -> tuple[tuple[Package, ...], tuple[str, ...]]:
        """Return the packages that satisfy requirements, and the requirements that none satisfies."""
        satisfied: dict[str, Package] = {}
        missing = []
        for text in requirements:
            closure = self._closure(Requirement(text))
            if closure is None:
                missing.append(text)
            else:
                satisfied |= closure
        return tuple(satisfied[name] for name in sorted(satisfied)), tuple(missing)

    def write_stubs(self, directory: Path) -> None:
        """Write each package as a wheel that holds its metadata and nothing else."""
        for found in self._known.values():
            _write_stub(directory, found)

    def _closure(self, requirement: Requirement) -> Mapping[str, Package] | None:
        """Return everything a requirement needs, or None when the image lacks any of it."""
        closure: dict[str, Package] = {}
        seen: set[tuple[str, str]] = set()
        waiting = [requirement]
        while waiting:
            wanted = waiting.pop()
            name = canonicalize_name(wanted.name)
            found = self._known.get(name)
            if found is None or not wanted.specifier.contains(found.version, prereleases=True):
                return None
            closure[name] = Package(name=name, version=str(found.version))
            for extra in ("", *wanted.extras):
                if (name, extra) in seen:
                    continue
                seen.add((name, extra))
                waiting += (need for need in found.requires if self._applies(need, extra))
        return closure

    def _applies(self, requirement: Requirement, extra: str) -> bool:
        if requirement.marker is None:
            return extra == ""
        return requirement.marker.evaluate({**self._environment, "extra": extra})


def read_image(site: Path, packages_file: Path, *, python: str) -> Image:
    """Read the image's packages: those its list names, as their metadata describes them."""
    try:
        listed = {canonicalize_name(item["name"]) for item in json.loads(packages_file.read_bytes())}
    except FileNotFoundError:
        listed = set()
    found = []
    for each in distributions(path=[str(site)]):
        metadata = each.read_text("METADATA") or ""
        name = each.metadata["Name"]
        if canonicalize_name(name) not in listed:
            continue
        requires = tuple(map(Requirement, each.requires or ()))
        found.append(Distribution(name=name, version=Version(each.version), requires=requires, metadata=metadata))
    return Image(found, python=python)


def check_requirements(requirements: Iterable[str]) -> None:
    """Raise ValueError for what is not a plain requirement; the operator has said so before."""
    for text in requirements:
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            raise ValueError(f"{text!r} is not a requirement") from error
        if requirement.url is not None or not text.isprintable() or text != text.strip():
            raise ValueError(f"{text!r} is not a plain requirement")


def _write_stub(directory: Path, found: Distribution) -> None:
    name = canonicalize_name(found.name).replace("-", "_")
    info = f"{name}-{found.version}.dist-info"
    files = {
        f"{info}/METADATA": found.metadata,
        f"{info}/WHEEL": STUB_WHEEL,
    }
    record = []
    with zipfile.ZipFile(directory / f"{name}-{found.version}-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            data = text.encode(errors="replace")
            digest = urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}\n")
            wheel.writestr(zipfile.ZipInfo(path, STUB_TIME), data)
        record.append(f"{info}/RECORD,,\n")
        wheel.writestr(zipfile.ZipInfo(f"{info}/RECORD", STUB_TIME), "".join(record))
