"""What a dependency and a requires-python may be: PEP 508 and PEP 440, and our policy on them.

A requirement that pip or uv would read as something other than a name on the class's index (a URL, a path, an
archive, an option) never gets past here. Pure; raises ScriptError and nothing else.
"""

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from sandyard_api.limits import DEPENDENCIES, DEPENDENCY_CHARACTERS
from sandyard_api.reasons import Reason
from sandyard_api.script_error import ScriptError, quote

# What pip takes for a file rather than a name (pip, _internal/utils/filetypes.py).
_ARCHIVE: Final = re.compile(r"\.(whl|egg|zip|tar|tgz|tbz|txz|tlz|tar\.[a-z0-9]+)$", re.IGNORECASE)
_FORM: Final = "write a name with optional [extras] and version bounds, such as pandas[excel]>=2,<3"
_ANY_VERSION: Final = Version("0")


def read_dependencies(items: Sequence[str], *, max_items: int = DEPENDENCIES) -> tuple[str, ...]:
    """Return requirements in their normal form, in order, two spellings of one name both kept."""
    if len(items) > max_items:
        raise ScriptError(
            Reason.LIMIT_EXCEEDED, f"{len(items)} dependencies are declared, at most {max_items} are allowed"
        )
    return tuple(read_dependency(item) for item in items)


def read_dependency(text: str) -> str:
    """Return one requirement in its normal form."""
    if len(text) > DEPENDENCY_CHARACTERS:
        raise _refused(text, f"is longer than {DEPENDENCY_CHARACTERS} characters")
    try:
        requirement = Requirement(text)
    except ValueError as error:
        raise _refused(text, "is not a requirement (PEP 508)") from error
    if requirement.url is not None:
        raise _refused(text, "names a URL; packages come from the class's index only")
    if requirement.marker is not None:
        raise _refused(text, "has an environment marker; the environment is always the class's image")
    if _ARCHIVE.search(requirement.name):
        raise _refused(text, "looks like a file; packages come from the class's index only")
    if any(specifier.operator == "===" for specifier in requirement.specifier):
        raise _refused(text, "uses ===; use == instead")
    return str(requirement)


def check_allowed(
    dependencies: Iterable[str], *, allow: Sequence[str], deny: Sequence[str], require_hashes: bool
) -> None:
    """Hold requirements in normal form against a class's rules; ``*`` in a name stands for anything."""
    for text in dependencies:
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        if any(fnmatchcase(name, pattern) for pattern in deny):
            raise _refused(text, "is denied by the class", hint="leave it out, or use another class")
        if allow and not any(fnmatchcase(name, pattern) for pattern in allow):
            raise _refused(text, "is not among those the class allows", hint="leave it out, or use another class")
        if require_hashes and not _is_pinned(requirement):
            raise _refused(text, "does not pin one version, which the class requires", hint=f"write {name}==<version>")


def read_requires_python(text: str) -> str:
    """Return a requires-python that ``python_satisfies`` can judge; empty and ``,`` mean any version."""
    try:
        specifiers = SpecifierSet(text)
        specifiers.contains(_ANY_VERSION)  # a number beyond Python's own digit limit is met only here
    except ValueError as error:
        raise ScriptError(
            Reason.INVALID_SCRIPT,
            f"requires-python {quote(text)} is not a version specifier (PEP 440)",
            hint='write it as ">=3.11"',
        ) from error
    return str(specifiers)


def python_satisfies(requires_python: str | None, version: str) -> bool:
    """Tell whether a Python version is within a requires-python that was read; None means any."""
    return requires_python is None or SpecifierSet(requires_python).contains(version, prereleases=True)


def _is_pinned(requirement: Requirement) -> bool:
    return any(
        specifier.operator == "==" and not specifier.version.endswith(".*") for specifier in requirement.specifier
    )


def _refused(text: str, why: str, *, hint: str = _FORM) -> ScriptError:
    return ScriptError(Reason.INVALID_DEPENDENCY, f"dependency {quote(text)} {why}", hint=hint)
