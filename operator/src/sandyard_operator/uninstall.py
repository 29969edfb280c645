"""``python -m sandyard_operator.uninstall``: take away what the operator made, before its release is removed.

Stops the operator first, so that nothing is made anew; then deletes its pods, policies and keys in all
namespaces, which Helm does not know. Tasks, sessions and classes are their users' and stay as they are. Each
step may be repeated: the chart's hook runs this as a Job, which is tried again when it fails.
"""

import asyncio
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic
from typing import Any, Final

from sandyard_api import names
from sandyard_operator.kube.access import find_access
from sandyard_operator.kube.client import Client
from sandyard_operator.kube.resource import LEASES, NAMESPACES, PODS, POLICIES, SECRETS, Resource
from sandyard_operator.ports import NotFoundError, PortError, UnavailableError, UnsureError

DEPLOYMENTS: Final = Resource("apps", "v1", "deployments")
SECONDS: Final = 180.0  # below the Job's own deadline, so that the message is this program's
POLL_SECONDS: Final = 0.5
GRACE_SECONDS: Final = 1  # an agent waits longer only for an operator that is gone


class LeftoverError(Exception):
    """Something is still there at the deadline."""


class Uninstall:
    """One removal."""

    def __init__(self, client: Client, *, namespace: str, deadline: float) -> None:
        self._client = client
        self._namespace = namespace
        self._deadline = deadline

    async def run(self) -> str:
        """Do it all; return what was done in a sentence."""
        await self._stop_operator()
        pods = await self._delete_pods()
        policies = await self._delete_policies()
        keys = await self._delete_keys()
        await self._delete(LEASES.path(namespace=self._namespace, name=names.LEASE_NAME))
        await self._delete(SECRETS.path(namespace=self._namespace, name=names.SECRET_AUTHORITY))
        return f"deleted {pods} sandbox pods, {policies} network policies and {keys} agent keys"

    async def _stop_operator(self) -> None:
        scale = DEPLOYMENTS.path(namespace=self._namespace, name=names.OPERATOR_NAME, subresource="scale")
        with suppress(NotFoundError):
            await self._client.merge(scale, {"spec": {"replicas": 0}})
        await self._until_gone(PODS.path(namespace=self._namespace), selector(names.OPERATOR_LABELS))

    async def _delete_pods(self) -> int:
        pods = await self._listed(PODS.path(), names.LABEL_ROLE)
        for pod in pods:
            await self._delete(_path(PODS, pod), {"gracePeriodSeconds": GRACE_SECONDS})
        await self._until_gone(PODS.path(), names.LABEL_ROLE)
        return len(pods)

    async def _delete_policies(self) -> int:
        ours = selector({names.LABEL_MANAGED_BY: names.MANAGED_BY})
        policies = await self._listed(POLICIES.path(), ours)
        for policy in policies:
            await self._delete(_path(POLICIES, policy))
        return len(policies)

    async def _delete_keys(self) -> int:
        """Ask each namespace by name: nobody here may list Secrets."""
        namespaces = [item["metadata"]["name"] for item in await self._listed(NAMESPACES.path())]
        paths = [SECRETS.path(namespace=name, name=names.SECRET_AGENT_TLS) for name in namespaces]
        return sum([await self._delete(path) for path in paths])

    async def _delete(self, path: str, options: Mapping[str, Any] | None = None) -> bool:
        try:
            await self._client.delete(path, options or {})
        except NotFoundError:
            return False
        return True

    async def _listed(self, path: str, labels: str = "") -> list[dict[str, Any]]:
        return [item async for item in self._client.items(path, query={"labelSelector": labels})]

    async def _until_gone(self, path: str, labels: str) -> None:
        while left := await self._listed(path, labels):
            if monotonic() > self._deadline:
                where = ", ".join(
                    f"{pod['metadata']['namespace']}/{pod['metadata']['name']} on node "
                    f"{pod['spec'].get('nodeName', '(none)')}"
                    for pod in left
                )
                raise LeftoverError(
                    f"still there: {where}. If a node is lost, delete its pods with "
                    "`kubectl delete pod --force` and uninstall again"
                )
            await asyncio.sleep(POLL_SECONDS)


def selector(labels: Mapping[str, str]) -> str:
    """Return a label selector as the API server's query has it."""
    return ",".join(f"{key}={value}" for key, value in labels.items())


def _path(resource: Resource, item: Mapping[str, Any]) -> str:
    metadata = item["metadata"]
    return resource.path(namespace=metadata["namespace"], name=metadata["name"])


async def uninstall(namespace: str, *, seconds: float = SECONDS) -> str:
    """Remove everything, again and again while the API server does not answer; raises when time is over."""
    deadline = monotonic() + seconds
    async with Client(await find_access()) as client:
        while True:
            try:
                return await Uninstall(client, namespace=namespace, deadline=deadline).run()
            except (UnavailableError, UnsureError):  # rights given a moment ago are among the reasons
                if monotonic() > deadline:
                    raise
            await asyncio.sleep(POLL_SECONDS)


def main() -> int:
    """Run it in the namespace that ``SANDYARD_NAMESPACE`` names; return the exit status."""
    try:
        done = asyncio.run(uninstall(os.environ["SANDYARD_NAMESPACE"]))
    except (PortError, LeftoverError) as error:
        sys.stderr.write(f"sandyard: not uninstalled: {error}\n")
        return 1
    sys.stdout.write(f"sandyard: {done}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
