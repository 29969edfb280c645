"""What the environment asks for, and where this cluster keeps its things. Read once, passed on."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sandyard_node.addresses import DEFAULT_RANGE, Addresses
from sandyard_node.errors import NodeError

HERE: Final = Path(__file__).resolve().parents[1]  # dev/node
DEFAULT_NAME: Final = "sandyard"
DEFAULT_MINOR: Final = "1.37"
NAME: Final = re.compile(r"[a-z][a-z0-9]{0,8}")  # an interface's name adds up to 4 characters and must stay under 16
MAX_NODES: Final = 4
MOUNTS: Final = Path("/run/sandyard")


@dataclass(frozen=True, slots=True)
class Node:
    """One node: its number from 1, its name, its network namespace and its folder."""

    number: int
    name: str
    namespace: str
    folder: Path

    @property
    def containerd_socket(self) -> Path:
        """Where its container runtime listens."""
        return self.folder / "containerd.sock"

    @property
    def interface(self) -> str:
        """The host's end of the link to this node."""
        return f"{self.namespace.partition('-')[0]}{self.number}"


@dataclass(frozen=True, slots=True)
class Settings:
    """One cluster's parameters."""

    cache: Path
    name: str
    minor: str
    addresses: Addresses
    node_count: int

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Settings":
        """Read SANDYARD_CACHE, SANDYARD_NODE_NAME, SANDYARD_NODE_RANGE, KUBERNETES and NODES."""
        caches = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        settings = cls(
            cache=Path(environment.get("SANDYARD_CACHE") or Path(caches) / "sandyard").absolute() / "node",
            name=environment.get("SANDYARD_NODE_NAME", DEFAULT_NAME),
            minor=environment.get("KUBERNETES", DEFAULT_MINOR),
            addresses=Addresses.parse(environment.get("SANDYARD_NODE_RANGE", DEFAULT_RANGE)),
            node_count=_node_count(environment.get("NODES", "1")),
        )
        if not NAME.fullmatch(settings.name):
            raise NodeError(
                f"SANDYARD_NODE_NAME: {settings.name!r} cannot be a cluster's name.",
                fix="give up to 9 small letters and digits, a letter first",
            )
        if not settings.kubernetes_module.is_dir():
            known = ", ".join(sorted(path.name.rpartition("-")[2] for path in (HERE / "go").glob("kubernetes-*")))
            raise NodeError(
                f"KUBERNETES: no build is known for {settings.minor!r} (known: {known}).",
                fix="see 'Another Kubernetes' in docs/cluster.md",
            )
        return settings

    @property
    def kubernetes_module(self) -> Path:
        """The Go module that pins this Kubernetes."""
        return HERE / "go" / f"kubernetes-{self.minor}"

    @property
    def state(self) -> Path:
        """This cluster's folder."""
        return self.cache / self.name

    @property
    def mount(self) -> Path:
        """Where that folder is mounted too: user namespaces cannot pass a home folder, and sockets need short paths."""
        return MOUNTS / self.name

    @property
    def bin(self) -> Path:
        """Links to every program, for PATH."""
        return self.cache / "bin"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.state / "admin.conf"

    @property
    def runs_own_node(self) -> bool:
        """Whether a node of our own was started and not stopped since."""
        return (self.state / "boot").exists()

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes asked for; the first also runs the control plane."""
        return tuple(self.node(number) for number in range(1, self.node_count + 1))

    def node(self, number: int) -> Node:
        """Return one node."""
        name = f"node{number}"
        return Node(number, name, f"{self.name}-{name}", self.mount / name)

    @property
    def cgroup(self) -> str:
        """The cgroup, from each hierarchy's root, that holds all processes of this cluster."""
        return f"sandyard-{self.name}"


def _node_count(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= MAX_NODES:
        raise NodeError(f"NODES: {text!r} is no number from 1 to {MAX_NODES}.", fix="set NODES=1, or leave it out")
    return int(text)
