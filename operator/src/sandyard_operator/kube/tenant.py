"""What stands in a tenant's namespace before a pod of ours does: the agents' TLS key and the network policies.

Read before it is written, and remembered for a minute: a namespace in use costs no write and three reads a
minute, and what somebody removed is put back within that time.
"""

import asyncio
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Final

from sandyard_api import names
from sandyard_api.sandbox_class import SandboxClass
from sandyard_api.task import SandboxTask
from sandyard_operator.kube import policies
from sandyard_operator.kube.authority import Authority, KeyPair, agent_name
from sandyard_operator.kube.client import Client
from sandyard_operator.kube.merge import merge_patch
from sandyard_operator.kube.pods import owner_of
from sandyard_operator.kube.policies import KIND, ClusterRanges, Neighbours
from sandyard_operator.kube.resource import POLICIES, SECRETS
from sandyard_operator.ports import NotFoundError

SEEN_SECONDS: Final = 60.0
TLS_CERTIFICATE: Final = "tls.crt"
TLS_KEY: Final = "tls.key"

Spot = tuple[str, str]  # namespace, name


class Tenants:
    """Keeps the objects of ours in the namespaces of tasks."""

    def __init__(
        self,
        client: Client,
        authority: Authority,
        neighbours: Neighbours,
        *,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self._client = client
        self._authority = authority
        self._neighbours = neighbours
        self._now = now
        self._monotonic = monotonic
        self._policies: dict[Spot, tuple[Mapping[str, Any], float]] = {}  # spec, seen until
        self._secrets: dict[str, float] = {}  # by namespace: seen until

    async def prepare(self, namespace: str, sandbox_class: SandboxClass) -> None:
        """Have everything in place that a pod of this class needs."""
        wanted: list[Awaitable[None]] = [
            self._ensure_secret(namespace),
            self.ensure_policy(namespace, names.POLICY_ISOLATE, self.isolate()),
        ]
        expected = self.install(sandbox_class)
        if expected is not None:
            name = policies.install_name(sandbox_class.metadata.name)
            wanted.append(self.ensure_policy(namespace, name, expected))
        await asyncio.gather(*wanted)

    async def open_egress(self, task: SandboxTask, ranges: ClusterRanges) -> None:
        """Have the policy in place that opens what a task may reach."""
        spec = self.egress(task, ranges)
        if spec is not None:
            namespace, name = task.metadata.namespace, policies.egress_name(task.metadata.uid)
            await self.ensure_policy(namespace, name, spec, owner=task)

    def isolate(self) -> dict[str, Any]:
        """Return the spec of the policy that closes every pod."""
        return policies.isolate(self._neighbours)

    def install(self, sandbox_class: SandboxClass) -> dict[str, Any] | None:
        """Return the spec of a class's install policy."""
        index = sandbox_class.spec.index
        return None if index is None else policies.install(sandbox_class.metadata.name, index, self._neighbours)

    def egress(self, task: SandboxTask, ranges: ClusterRanges) -> dict[str, Any] | None:
        """Return the spec of a task's egress policy."""
        network = task.spec.network
        if network is None or not (network.egress or network.dns):
            return None
        return policies.egress(task.metadata.uid, network, neighbours=self._neighbours, ranges=ranges)

    async def put_back(
        self, namespace: str, name: str, spec: Mapping[str, Any], *, owner: SandboxTask | None = None
    ) -> None:
        """Have one policy as it should be, whatever is remembered of it."""
        self._policies.pop((namespace, name), None)
        await self.ensure_policy(namespace, name, spec, owner=owner)

    async def ensure_policy(
        self, namespace: str, name: str, spec: Mapping[str, Any], *, owner: SandboxTask | None = None
    ) -> None:
        """Have one policy as it should be."""
        self._forget_old()
        known = self._policies.get((namespace, name))
        if known is not None and known[0] == spec:
            return
        path = POLICIES.path(namespace=namespace, name=name)
        try:
            there = await self._client.get(path)
        except NotFoundError:
            await self._client.apply(path, _policy(namespace, name, spec, owner=owner))
        else:
            if there["spec"] != spec:  # applying would leave in place what somebody else added
                await self._client.merge(path, {"spec": merge_patch(there["spec"], spec)})
        self._policies[(namespace, name)] = (spec, self._monotonic() + SEEN_SECONDS)

    async def _ensure_secret(self, namespace: str) -> None:
        self._forget_old()
        if namespace in self._secrets:
            return
        path = SECRETS.path(namespace=namespace, name=names.SECRET_AGENT_TLS)
        try:
            pair = _read_pair((await self._client.get(path)).get("data") or {})
        except NotFoundError:
            pair = None
        if pair is None or not pair.lasts(self._now(), self._authority.ca):
            pair = self._authority.issue(agent_name(namespace), now=self._now())
            await self._client.apply(path, _secret(namespace, pair))
        self._secrets[namespace] = self._monotonic() + SEEN_SECONDS

    def _forget_old(self) -> None:
        now = self._monotonic()
        for spot in [spot for spot, (_, until) in self._policies.items() if until <= now]:
            del self._policies[spot]
        for namespace in [name for name, until in self._secrets.items() if until <= now]:
            del self._secrets[namespace]


def _policy(namespace: str, name: str, spec: Mapping[str, Any], *, owner: SandboxTask | None) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "namespace": namespace,
        "name": name,
        "labels": {names.LABEL_MANAGED_BY: names.MANAGED_BY},
    }
    if owner is not None:
        metadata["ownerReferences"] = [owner_of(owner)]
    return {"apiVersion": POLICIES.api_version, "kind": KIND, "metadata": metadata, "spec": spec}


def _secret(namespace: str, pair: KeyPair) -> dict[str, Any]:
    data = {TLS_CERTIFICATE: pair.certificate, TLS_KEY: pair.key}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {
            "namespace": namespace,
            "name": names.SECRET_AGENT_TLS,
            "labels": {names.LABEL_MANAGED_BY: names.MANAGED_BY},
        },
        "data": {name: b64encode(value).decode() for name, value in data.items()},
    }


def _read_pair(data: Mapping[str, str]) -> KeyPair | None:
    try:
        return KeyPair(*(b64decode(data[name], validate=True) for name in (TLS_CERTIFICATE, TLS_KEY)))
    except (KeyError, Base64Error):
        return None
