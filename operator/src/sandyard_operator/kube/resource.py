"""Kinds of objects and where the API server keeps them: paths, nothing else."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from sandyard_api.names import GROUP, VERSION


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind, as the API server's paths name it."""

    group: str
    version: str
    plural: str

    @property
    def api_version(self) -> str:
        """Return ``group/version``, or the version alone of the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, *, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of a collection, an object, or a subresource of one."""
        parts = [f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"]
        if namespace:
            parts.append(f"namespaces/{quote(namespace, safe='')}")
        parts.append(self.plural)
        if name:
            parts.append(quote(name, safe=""))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


TASKS: Final = Resource(GROUP, VERSION, "sandboxtasks")
CLASSES: Final = Resource(GROUP, VERSION, "sandboxclasses")
PODS: Final = Resource("", "v1", "pods")
SECRETS: Final = Resource("", "v1", "secrets")
CONFIG_MAPS: Final = Resource("", "v1", "configmaps")
NAMESPACES: Final = Resource("", "v1", "namespaces")
NODES: Final = Resource("", "v1", "nodes")
POLICIES: Final = Resource("networking.k8s.io", "v1", "networkpolicies")
SERVICE_CIDRS: Final = Resource("networking.k8s.io", "v1", "servicecidrs")
EVENTS: Final = Resource("events.k8s.io", "v1", "events")
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases")
