"""What the nodes of a class can do, and which addresses belong to the cluster itself.

Facts read off Node and ServiceCIDR objects. Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sandyard_api.sandbox_class import ClassSpec, UserNamespaces
from sandyard_api.scheduling import TaintEffect, Toleration, TolerationOperator

KEEPS_OUT: Final = (TaintEffect.NO_SCHEDULE, TaintEffect.NO_EXECUTE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node."""

    name: str
    labels: Mapping[str, str]
    unschedulable: bool
    taints: tuple[tuple[str, str, str], ...]  # key, value, effect
    user_namespaces: frozenset[str]  # names of the runtime handlers that can
    addresses: tuple[str, ...]
    pod_cidrs: tuple[str, ...]


def read_node(raw: Mapping[str, Any]) -> Node:
    """Read a Node."""
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    return Node(
        name=metadata["name"],
        labels=metadata.get("labels") or {},
        unschedulable=bool(spec.get("unschedulable")),
        taints=tuple((taint["key"], taint.get("value", ""), taint["effect"]) for taint in spec.get("taints") or ()),
        user_namespaces=frozenset(
            handler.get("name", "")
            for handler in status.get("runtimeHandlers") or ()
            if (handler.get("features") or {}).get("userNamespaces")
        ),
        addresses=tuple(
            address["address"]
            for address in status.get("addresses") or ()
            if address["type"] in ("InternalIP", "ExternalIP")
        ),
        pod_cidrs=tuple(spec.get("podCIDRs") or ()),
    )


def nodes_of(spec: ClassSpec, nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Return the nodes that pods of a class may be placed on, as far as selector and taints tell."""
    return tuple(
        node
        for node in nodes
        if not node.unschedulable
        and all(node.labels.get(key) == value for key, value in spec.node_selector.items())
        and all(
            effect not in KEEPS_OUT or any(_tolerates(t, key, value, effect) for t in spec.tolerations)
            for key, value, effect in node.taints
        )
    )


def lacking_user_namespaces(spec: ClassSpec, nodes: Iterable[Node]) -> tuple[str, ...]:
    """Name the nodes of a class whose runtime cannot give a pod a user namespace."""
    handler = spec.runtime_class_name or ""  # by custom a RuntimeClass is called as its handler is
    return tuple(node.name for node in nodes_of(spec, nodes) if handler not in node.user_namespaces)


def user_namespace(spec: ClassSpec, nodes: Iterable[Node]) -> bool:
    """Decide whether pods of a class ask for a user namespace."""
    match spec.user_namespaces:
        case UserNamespaces.REQUIRED:
            return True
        case UserNamespaces.OFF:
            return False
        case UserNamespaces.PREFERRED:
            every = tuple(nodes)
            return bool(nodes_of(spec, every)) and not lacking_user_namespaces(spec, every)


def _tolerates(toleration: Toleration, key: str, value: str, effect: str) -> bool:
    if toleration.effect is not None and toleration.effect != effect:
        return False
    if not toleration.key:
        return toleration.operator is TolerationOperator.EXISTS
    return toleration.key == key and (toleration.operator is TolerationOperator.EXISTS or toleration.value == value)
