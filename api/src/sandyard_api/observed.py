"""What was in force and what was installed, as tasks and sessions both report it."""

from typing import Annotated

from pydantic import Field

from sandyard_api.fields import Digest, Text
from sandyard_api.limits import PACKAGES
from sandyard_api.schema import StatusModel


class Package(StatusModel):
    """One distribution."""

    name: Text = Field(description="Normalised name.")
    version: Text = Field(description="Version.")
    sha256: Digest | None = Field(
        default=None, description="SHA-256 of the wheel it was installed from; absent for one of the image."
    )


Packages = Annotated[tuple[Package, ...], Field(max_length=PACKAGES)]


class Isolation(StatusModel):
    """What stood between the script and the node when it started, as probed."""

    network: Text = Field(
        default="",
        description="None: sockets are denied. Egress: the network policy alone bounds what can be reached.",
    )
    seccomp: bool = Field(default=False, description="Whether Sandyard's own system call filter was loaded.")
    landlock_abi: int = Field(
        default=0, ge=0, alias="landlockABI", description="Version of Landlock in force; 0: none."
    )
    user_namespace: bool = Field(
        default=False, description="Whether the pod's users are mapped to unprivileged users of the node."
    )
    runtime_class: Text = Field(default="", description="The pod's RuntimeClass; empty: the node's default.")
