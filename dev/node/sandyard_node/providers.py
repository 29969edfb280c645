"""Choose who provides the cluster: kind where Docker and kind work, our own node elsewhere, PROVIDER to insist."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from sandyard_node import kind
from sandyard_node.cluster import Cluster
from sandyard_node.errors import NodeError
from sandyard_node.progress import Progress
from sandyard_node.settings import Settings


class Provider(Protocol):
    """A cluster that can be brought up, asked and taken down."""

    def up(self) -> None:
        """Make it run; safe to repeat."""

    def down(self, *, purge: bool = False) -> None:
        """Stop it."""

    def status(self) -> dict[str, Any]:
        """Return what runs; ``ready`` and ``kubeconfig`` are always there."""

    def load_image(self, archive: Path) -> str:
        """Import an OCI or Docker archive into every node."""


class ProviderName(StrEnum):
    """What PROVIDER may say."""

    KIND = "kind"
    NODE = "node"


def choose(settings: Settings, progress: Progress, environment: Mapping[str, str]) -> Provider:
    """Return the provider asked for, or the one that works here; a cluster that is up stays with its own."""
    match _name(settings, environment):
        case ProviderName.KIND:
            return kind.KindCluster(settings, progress)
        case ProviderName.NODE:
            return Cluster.of(settings, progress)


def _name(settings: Settings, environment: Mapping[str, str]) -> ProviderName:
    asked = environment.get("PROVIDER")
    if asked:
        try:
            return ProviderName(asked)
        except ValueError as error:
            raise NodeError(f"PROVIDER: {asked!r} is none of kind, node.", fix="leave PROVIDER out") from error
    if settings.runs_own_node or kind.why_not():
        return ProviderName.NODE
    return ProviderName.KIND
