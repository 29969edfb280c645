"""Field types that several kinds share: names, keys, requirement lists, and references to other objects.

Each is a bounded string or a tiny model with the same rules wherever it stands.
"""

from typing import Annotated, Final

from pydantic import ConfigDict, Field

from sandyard_api.limits import (
    DEPENDENCY_CHARACTERS,
    LABEL_CHARACTERS,
    MAX_DEPENDENCIES,
    MAX_SECONDS,
    NAME_CHARACTERS,
)
from sandyard_api.schema import ONE_VALUE, SpecModel

SUBDOMAIN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"  # RFC 1123
SHA256: Final = r"^[0-9a-f]{64}$"

ObjectName = Annotated[str, Field(min_length=1, max_length=NAME_CHARACTERS, pattern=SUBDOMAIN)]
ClassName = Annotated[str, Field(min_length=1, max_length=LABEL_CHARACTERS, pattern=SUBDOMAIN)]
DataKey = Annotated[str, Field(min_length=1, max_length=NAME_CHARACTERS, pattern=r"^[-._a-zA-Z0-9]+$")]
Sha256 = Annotated[str, Field(max_length=64, pattern=SHA256)]
Digest = Annotated[str, Field(max_length=64, pattern=r"^([0-9a-f]{64})?$")]  # in a status: may be unknown
Seconds = Annotated[int, Field(ge=0, le=MAX_SECONDS)]
PositiveSeconds = Annotated[int, Field(ge=1, le=MAX_SECONDS)]
Dependency = Annotated[str, Field(min_length=1, max_length=DEPENDENCY_CHARACTERS)]
Dependencies = Annotated[tuple[Dependency, ...], Field(max_length=MAX_DEPENDENCIES)]
Text = Annotated[str, Field(max_length=NAME_CHARACTERS)]  # a short word in a status


class KeyRef(SpecModel):
    """One key of a ConfigMap or Secret."""

    model_config = ConfigDict(json_schema_extra=ONE_VALUE)

    name: ObjectName = Field(description="Name of the object.")
    key: DataKey = Field(description="Key in its data or binaryData.")


class BlobRef(SpecModel):
    """A blob that was put through the data API, in the same namespace."""

    model_config = ConfigDict(json_schema_extra=ONE_VALUE)

    sha256: Sha256 = Field(description="SHA-256 of the blob's bytes, in lower-case hexadecimal.")


class LocalRef(SpecModel):
    """Another object of the same namespace."""

    model_config = ConfigDict(json_schema_extra=ONE_VALUE)

    name: ObjectName = Field(description="Name of the object.")
