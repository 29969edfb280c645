"""Whether the network policies around a pod are those of its class and task, and no others open it.

Policies add up: one of a tenant's can open what ours close. Ours are known by name and by content; one that
was changed is put back, and the caller looks again.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from sandyard_api import names
from sandyard_api.sandbox_class import SandboxClass
from sandyard_api.task import SandboxTask
from sandyard_operator.decide.pod import PodView
from sandyard_operator.kube.client import Client
from sandyard_operator.kube.facts import ClusterFacts
from sandyard_operator.kube.policies import egress_name, install_name, opens
from sandyard_operator.kube.resource import POLICIES
from sandyard_operator.kube.tenant import Tenants
from sandyard_operator.ports import ConflictError, ForeignPolicy

Policies = dict[str, dict[str, Any]]


class PolicyCheck:
    """Looks at all policies of a pod's namespace."""

    def __init__(
        self,
        client: Client,
        tenants: Tenants,
        facts: ClusterFacts,
        *,
        get_class: Callable[[str], Awaitable[SandboxClass | None]],
        get_task: Callable[[str, str], Awaitable[SandboxTask | None]],
    ) -> None:
        self._client = client
        self._tenants = tenants
        self._facts = facts
        self._get_class = get_class
        self._get_task = get_task

    async def foreign(self, pod: PodView) -> tuple[ForeignPolicy, ...]:
        """Return the policies that open a pod and are not ours; raises ConflictError after a repair."""
        items = self._client.items(POLICIES.path(namespace=pod.namespace))
        policies: Policies = {raw["metadata"]["name"]: raw async for raw in items}
        await self._keep(pod, policies.pop(names.POLICY_ISOLATE, {}), names.POLICY_ISOLATE, self._tenants.isolate())
        await self._take_install(pod, policies)
        await self._take_egress(pod, policies)
        return tuple(ForeignPolicy(name=name) for name, raw in policies.items() if opens(raw, pod.labels))

    async def _take_install(self, pod: PodView, policies: Policies) -> None:
        class_name = pod.labels.get(names.LABEL_CLASS, "")
        name = install_name(class_name)
        if name in policies and opens(policies[name], pod.labels):
            sandbox_class = await self._get_class(class_name)
            spec = None if sandbox_class is None else self._tenants.install(sandbox_class)
            if spec is not None:
                await self._keep(pod, policies.pop(name), name, spec)

    async def _take_egress(self, pod: PodView, policies: Policies) -> None:
        name = egress_name(pod.owner_uid)
        for owner in policies.get(name, {}).get("metadata", {}).get("ownerReferences") or ():
            task = await self._get_task(pod.namespace, owner["name"])
            if task is not None and task.metadata.uid == pod.owner_uid:
                spec = self._tenants.egress(task, await self._facts.ranges())
                if spec is not None:
                    await self._keep(pod, policies.pop(name), name, spec, owner=task)
                return

    async def _keep(
        self,
        pod: PodView,
        found: Mapping[str, Any],
        name: str,
        spec: Mapping[str, Any],
        *,
        owner: SandboxTask | None = None,
    ) -> None:
        if found.get("spec") != spec:
            await self._tenants.put_back(pod.namespace, name, spec, owner=owner)
            raise ConflictError(f"NetworkPolicy {name} was not as it should be; it was put back")
