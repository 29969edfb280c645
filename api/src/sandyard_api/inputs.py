"""What a script is given besides its code: standard input, files, environment. Shared by tasks and sessions.

What the API server checks in CEL is checked again here: the operator trusts no stored object.
"""

import re
from typing import Annotated, Final, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from sandyard_api.fields import BlobRef, KeyRef
from sandyard_api.limits import ENV_BYTES, MAX_FIELD_COUNT, NAME_CHARACTERS
from sandyard_api.schema import Rule, SpecModel, keyed_by, rules

PATH_BYTES: Final = 255  # NAME_MAX of Linux: no part of a path can then be too long
REFUSED_NAMES: Final = ("PATH", "HOME")
REFUSED_PREFIXES: Final = ("LD_", "PYTHON", "SANDYARD_")

_REFUSED: Final = f"^({'|'.join([*(f'{name}$' for name in REFUSED_NAMES), *REFUSED_PREFIXES])})"
_REFUSED_NAME: Final = re.compile(_REFUSED)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def one_of(*fields: str) -> Rule:
    """Return the rule that exactly one of some fields is set."""
    cel = " + ".join(f"(has(self.{field}) ? 1 : 0)" for field in fields)
    return Rule(f"{cel} == 1", f"set exactly one of {' and '.join(fields)}")


class EnvSource(SpecModel):
    """Where a variable's value comes from."""

    secret_key_ref: KeyRef = Field(
        description="A key of a Secret in the same namespace; only where the class has allowSecretEnv. "
        "The value is redacted in what the script writes."
    )


class EnvVar(SpecModel):
    """One environment variable of the script."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            one_of("value", "valueFrom"),
            Rule(
                f"!self.name.matches('{_REFUSED}')",
                "LD_*, PYTHON*, SANDYARD_*, PATH and HOME are set by Sandyard itself",
                field="name",
            ),
        )
    )

    name: str = Field(
        min_length=1,
        max_length=NAME_CHARACTERS,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description="Name of the variable. LD_*, PYTHON*, SANDYARD_*, PATH and HOME are refused.",
    )
    value: str | None = Field(
        default=None,
        max_length=ENV_BYTES,
        json_schema_extra=rules(Rule(r"!self.contains('\x00')", "a variable cannot hold a NUL character")),
        description="Its value. Names and values of all variables together are at most 32 KiB.",
    )
    value_from: EnvSource | None = Field(default=None, description="Where its value comes from instead.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.value is None) == (self.value_from is None):
            raise ValueError("set exactly one of value and valueFrom")
        if _REFUSED_NAME.match(self.name):
            raise ValueError("LD_*, PYTHON*, SANDYARD_*, PATH and HOME are set by Sandyard itself")
        if self.value is not None and "\0" in self.value:
            raise ValueError("a variable cannot hold a NUL character")
        return self


class FileSource(SpecModel):
    """A file placed below /workspace before the start."""

    model_config = ConfigDict(json_schema_extra=rules(one_of("configMapKeyRef", "blobRef")))

    path: str = Field(
        min_length=1,
        max_length=PATH_BYTES,
        json_schema_extra=rules(
            Rule(
                r"!self.matches('(^|/)[.]{0,2}(/|$)')",
                "path must stay below /workspace: relative, without empty, . and .. parts",
            ),
            Rule(f"size(bytes(self)) <= {PATH_BYTES}", f"path is at most {PATH_BYTES} bytes of UTF-8"),
            Rule(r"!self.matches('[\\x00-\\x1f\\x7f]')", "path must not hold control characters"),
        ),
        description="Where, relative to /workspace. Folders are made as needed.",
    )
    config_map_key_ref: KeyRef | None = Field(default=None, description="A key of a ConfigMap in the same namespace.")
    blob_ref: BlobRef | None = Field(default=None, description="A blob put through the data API.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.config_map_key_ref is None) == (self.blob_ref is None):
            raise ValueError("set exactly one of configMapKeyRef and blobRef")
        if any(part in ("", ".", "..") for part in self.path.split("/")):
            raise ValueError("path must stay below /workspace: relative, without empty, . and .. parts")
        if len(self.path.encode()) > PATH_BYTES or _CONTROL.search(self.path):
            raise ValueError(f"path is at most {PATH_BYTES} bytes and holds no control characters")
        return self


def _distinct(variables: tuple[EnvVar, ...]) -> tuple[EnvVar, ...]:
    if len({variable.name for variable in variables}) < len(variables):
        raise ValueError("each variable is given once")
    return variables


Env = Annotated[
    tuple[EnvVar, ...],
    Field(max_length=MAX_FIELD_COUNT, json_schema_extra=keyed_by("name")),
    AfterValidator(_distinct),
]


def _apart(files: tuple[FileSource, ...]) -> tuple[FileSource, ...]:
    paths = {file.path for file in files}
    if len(paths) < len(files):
        raise ValueError("each path is given once")
    folders = {path[:end] for path in paths for end, sign in enumerate(path) if sign == "/"}
    if paths & folders:
        raise ValueError("a path cannot be a file and the folder of another file")
    return files


Files = Annotated[
    tuple[FileSource, ...],
    Field(
        max_length=MAX_FIELD_COUNT,
        json_schema_extra=keyed_by("path")
        | rules(
            Rule(
                "self.all(one, !self.exists(other, other.path.startsWith(one.path + '/')))",
                "a path cannot be a file and the folder of another file",
            )
        ),
    ),
    AfterValidator(_apart),
]
