"""The nodes' network: a namespace per node, a link to the host, a link between every two nodes, and no way out.

No node has a default route and nothing masquerades, so a packet for any address outside the plan ends in the node
with "unreachable". Every step looks first, so a half-made network is completed rather than made again.
"""

import json
import os
import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from sandyard_node.errors import NodeError
from sandyard_node.settings import Node, Settings

NAMESPACES: Final = Path("/run/netns")
HOST_SIDE: Final = "host0"  # a node's end of its link to the host
NODE_SYSCTLS: Final = ("net.ipv4.ip_forward=1", "net.ipv6.conf.all.disable_ipv6=1")


def up(settings: Settings) -> None:
    """Make what is not there yet."""
    plan = settings.addresses
    for node in settings.nodes:
        _namespace(node)
        address = plan.node(node.number)
        if not _has_link(node.interface):
            _ip("link", "add", node.interface, "type", "veth", "peer", "name", HOST_SIDE, "netns", node.namespace)
        _ip("addr", "replace", f"{plan.host}/32", "dev", node.interface)
        _ip("link", "set", node.interface, "up")
        _in(node, "addr", "replace", f"{address}/32", "dev", HOST_SIDE)
        _in(node, "link", "set", HOST_SIDE, "up")
        _in(node, "link", "set", "lo", "up")
        _in(node, "route", "replace", f"{plan.host}/32", "dev", HOST_SIDE, "src", str(address))
        _in(node, "route", "replace", "unreachable", "default")
        # A route must exist before kube-proxy's rules can turn a node's own packet to a Service around.
        _in(node, "route", "replace", str(plan.services), "via", str(plan.host), "dev", HOST_SIDE, "onlink")
        _ip("route", "replace", f"{address}/32", "dev", node.interface, "src", str(plan.host))
        _ip("route", "replace", str(plan.pods_of(node.number)), "via", str(address), "dev", node.interface, "onlink")
    first = settings.node(1)
    _ip("route", "replace", str(plan.services), "via", str(plan.node(1)), "dev", first.interface, "onlink")
    for one, other in combinations(settings.nodes, 2):
        _connect(settings, one, other)


def down(settings: Settings) -> None:
    """Remove every namespace of this cluster, and with it its links and the host's routes over them."""
    for path in NAMESPACES.glob(f"{settings.name}-node*"):
        _ip("netns", "delete", path.name)


def namespace_id(node: Node) -> str:
    """Return what tells this namespace from an earlier one of the same name."""
    return str((NAMESPACES / node.namespace).stat().st_ino)


def is_up(node: Node) -> bool:
    """Tell whether the node's namespace is there."""
    return os.path.ismount(NAMESPACES / node.namespace)


def enter(node: Node) -> list[str]:
    """Return the command prefix that enters the node's network; `ip netns exec` would hide /sys from the kubelet."""
    return ["nsenter", f"--net={NAMESPACES / node.namespace}", "--"]


def _namespace(node: Node) -> None:
    path = NAMESPACES / node.namespace
    if not is_up(node):
        path.unlink(missing_ok=True)  # the mount point of one that was lost half-made
        _ip("netns", "add", node.namespace)
    for setting in NODE_SYSCTLS:
        _run([*enter(node), "sysctl", "-qw", setting])


def _connect(settings: Settings, one: Node, other: Node) -> None:
    names = {one: f"node{other.number}", other: f"node{one.number}"}
    if not _has_link(names[one], one):
        _in(one, "link", "add", names[one], "type", "veth", "peer", "name", names[other], "netns", other.namespace)
    plan = settings.addresses
    for here, there in ((one, other), (other, one)):
        address = str(plan.node(there.number))
        source = ("src", str(plan.node(here.number)))
        _in(here, "link", "set", names[here], "up")
        _in(here, "route", "replace", f"{address}/32", "dev", names[here], *source)
        route = (str(plan.pods_of(there.number)), "via", address, "dev", names[here], "onlink")
        _in(here, "route", "replace", *route, *source)


def _has_link(name: str, node: Node | None = None) -> bool:
    command = ["ip", *(("-n", node.namespace) if node else ()), "-j", "link", "show"]
    links: list[dict[str, Any]] = json.loads(_run(command) or "[]")
    return any(link["ifname"] == name for link in links)


def _in(node: Node, *args: str) -> None:
    _ip("-n", node.namespace, *args)


def _ip(*args: str) -> None:
    _run(["ip", *args])


def _run(command: list[str]) -> str:
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        raise NodeError(
            f"`{' '.join(command)}` failed: {done.stderr.strip()}",
            fix="make cluster-down, then make cluster; see SANDYARD_NODE_RANGE if the addresses are in use",
        )
    return done.stdout
