"""What is known of the cluster as a whole: its nodes and its address ranges. Read when needed, kept a minute."""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from sandyard_api.sandbox_class import ClassSpec
from sandyard_operator.kube.client import Client
from sandyard_operator.kube.nodes import Node, lacking_user_namespaces, read_node, user_namespace
from sandyard_operator.kube.pods import Facts
from sandyard_operator.kube.policies import ClusterRanges
from sandyard_operator.kube.resource import NODES, SERVICE_CIDRS
from sandyard_operator.ports import NotFoundError

FRESH_SECONDS: Final = 60.0


class ClusterFacts:
    """Reads nodes and ServiceCIDRs; ``extra_cidrs`` are ranges that no object tells."""

    def __init__(self, client: Client, *, monotonic: Callable[[], float], extra_cidrs: tuple[str, ...] = ()) -> None:
        self._client = client
        self._monotonic = monotonic
        self._extra_cidrs = extra_cidrs
        self._nodes: tuple[Node, ...] = ()
        self._nodes_until = 0.0
        self._ranges = ClusterRanges()
        self._ranges_until = 0.0

    async def of_class(self, spec: ClassSpec) -> Facts:
        """Return what a pod of a class depends on."""
        nodes = await self._read_nodes()
        return Facts(user_namespace=user_namespace(spec, nodes), nodes_without=lacking_user_namespaces(spec, nodes))

    async def ranges(self) -> ClusterRanges:
        """Return the addresses of nodes, pods and Services."""
        if self._monotonic() >= self._ranges_until:
            nodes = await self._read_nodes()
            own = [text for node in nodes for text in (*node.addresses, *node.pod_cidrs)]
            self._ranges = ClusterRanges.of([*own, *await self._service_cidrs(), *self._extra_cidrs])
            self._ranges_until = self._monotonic() + FRESH_SECONDS
        return self._ranges

    async def _read_nodes(self) -> tuple[Node, ...]:
        if self._monotonic() >= self._nodes_until:
            self._nodes = tuple([read_node(raw) async for raw in self._client.items(NODES.path())])
            self._nodes_until = self._monotonic() + FRESH_SECONDS
        return self._nodes

    async def _service_cidrs(self) -> list[str]:
        found: list[str] = []
        with suppress(NotFoundError):  # before Kubernetes 1.33: extra_cidrs tell
            async for raw in self._client.items(SERVICE_CIDRS.path()):
                found.extend(raw["spec"]["cidrs"])
        return found
