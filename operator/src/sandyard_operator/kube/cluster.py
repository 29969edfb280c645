"""The ``Cluster`` door: each call is one or few requests, each write a compare-and-swap made only while leading.

What was read is turned into the core's own values in ``views``; what an object should look like is built in
``pods``, ``policies`` and ``tenant``. Nothing is decided here.
"""

import asyncio
import logging
from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from sandyard_api import names
from sandyard_api.sandbox_class import SandboxClass
from sandyard_api.task import SandboxTask
from sandyard_operator.decide.pod import PodView, RefusalKind
from sandyard_operator.kube.authority import Authority
from sandyard_operator.kube.client import Client
from sandyard_operator.kube.events import EventRecorder
from sandyard_operator.kube.facts import ClusterFacts
from sandyard_operator.kube.foreign import PolicyCheck
from sandyard_operator.kube.merge import merge_patch
from sandyard_operator.kube.pods import manifest
from sandyard_operator.kube.resource import (
    CLASSES,
    CONFIG_MAPS,
    NAMESPACES,
    PODS,
    SECRETS,
    TASKS,
    Resource,
)
from sandyard_operator.kube.signature import differences
from sandyard_operator.kube.tenant import Tenants
from sandyard_operator.kube.views import PodReader, problems
from sandyard_operator.ports import (
    ConflictError,
    ForeignPolicy,
    NotFoundError,
    RefusedError,
    UnavailableError,
)

DELETE_GRACE_SECONDS: Final = 2  # nothing more is wanted from a pod that the operator deletes
INDEX_SECONDS: Final = 2.0  # for the control connect, well above the agent's own half second
OURS: Final = {"labelSelector": names.LABEL_ROLE}

Model = TypeVar("Model", bound=BaseModel)
logger = logging.getLogger(__name__)


class KubeCluster:
    """The API server as the core's ``Cluster``."""

    def __init__(  # noqa: PLR0913 - its collaborators
        self,
        client: Client,
        *,
        authority: Authority,
        tenants: Tenants,
        facts: ClusterFacts,
        events: EventRecorder,
        reader: PodReader,
        may_write: Callable[[], bool],
    ) -> None:
        self._client = client
        self._authority = authority
        self._tenants = tenants
        self._check = PolicyCheck(client, tenants, facts, get_class=self.get_class, get_task=self.get_task)
        self._facts = facts
        self._events = events
        self._reader = reader
        self._may_write = may_write

    async def get_task(self, namespace: str, name: str) -> SandboxTask | None:
        """Read a task."""
        raw = await self._find(TASKS, name, namespace=namespace)
        return None if raw is None else _parsed(SandboxTask, raw)

    async def list_tasks(self) -> tuple[SandboxTask, ...]:
        """Read all tasks; one that cannot be read is logged and left out."""
        return await self._list(TASKS, SandboxTask)

    async def get_pod(self, namespace: str, name: str) -> PodView | None:
        """Read a pod."""
        raw = await self._find(PODS, name, namespace=namespace)
        return None if raw is None else self._reader.read(raw)

    async def list_pods(self) -> tuple[PodView, ...]:
        """Read all pods that carry our labels."""
        return tuple([self._reader.read(raw) async for raw in self._client.items(PODS.path(), query=OURS)])

    async def get_class(self, name: str) -> SandboxClass | None:
        """Read a class."""
        raw = await self._find(CLASSES, name)
        return None if raw is None else _parsed(SandboxClass, raw)

    async def list_classes(self) -> tuple[SandboxClass, ...]:
        """Read all classes; one that cannot be read is logged and left out."""
        return await self._list(CLASSES, SandboxClass)

    async def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Read a namespace's labels."""
        raw = await self._client.get(NAMESPACES.path(name=namespace))
        return dict(raw["metadata"].get("labels") or {})

    async def config_map_value(self, namespace: str, name: str, key: str) -> bytes | None:
        """Value of ``data`` (as UTF-8) or ``binaryData``; None where the object or the key is not there."""
        raw = await self._find(CONFIG_MAPS, name, namespace=namespace) or {}
        text = (raw.get("data") or {}).get(key)
        if text is not None:
            return str(text).encode()
        encoded = (raw.get("binaryData") or {}).get(key)
        return None if encoded is None else b64decode(encoded)

    async def secret_value(self, namespace: str, name: str, key: str) -> bytes | None:
        """Read a Secret's value; None where it or the key is not there."""
        raw = await self._find(SECRETS, name, namespace=namespace) or {}
        encoded = (raw.get("data") or {}).get(key)
        return None if encoded is None else b64decode(encoded)

    async def write_task_status(self, task: SandboxTask, status: Mapping[str, Any]) -> SandboxTask:
        """Compare-and-swap the whole status on its resourceVersion; returns what was stored."""
        return _parsed(SandboxTask, await self._write_status(TASKS, task, status))

    async def write_class_status(self, sandbox_class: SandboxClass, status: Mapping[str, Any]) -> None:
        """Compare-and-swap a class's whole status."""
        await self._write_status(CLASSES, sandbox_class, status)

    async def delete_task(self, task: SandboxTask) -> None:
        """Delete with uid and resourceVersion preconditions; absent is success."""
        metadata = task.metadata
        preconditions = {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
        self._lead()
        try:
            await self._client.delete(
                TASKS.path(namespace=metadata.namespace, name=metadata.name),
                {"preconditions": preconditions, "propagationPolicy": "Background"},
            )
        except NotFoundError:
            return

    async def prepare_namespace(self, namespace: str, sandbox_class: SandboxClass) -> None:
        """Have in place what a pod of this class needs there."""
        self._lead()
        await self._tenants.prepare(namespace, sandbox_class)

    async def create_pod(self, task: SandboxTask, sandbox_class: SandboxClass, *, attempt: int) -> PodView:
        """Create the task's pod of that attempt, signed; its egress policy before it."""
        facts = await self._facts.of_class(sandbox_class.spec)
        if task.spec.network is not None:
            self._lead()
            await self._tenants.open_egress(task, await self._facts.ranges())
        wanted = manifest(task, sandbox_class, attempt=attempt, facts=facts, authority=self._authority)
        self._lead()
        made = await self._client.create(PODS.path(namespace=task.metadata.namespace), wanted)
        pod = self._reader.read(made)
        if not pod.signed:
            await self.delete_pod(pod)
            changed = ", ".join(differences(wanted, made)) or "its metadata"
            raise RefusedError(
                RefusalKind.ADMISSION,
                f"an admission webhook changed what the operator signed of the pod ({changed}); "
                "exempt pods with the label sandyard.dev/role from it",
            )
        return pod

    async def set_network(self, pod: PodView, network: str) -> PodView:
        """Flip the network label, compared on resourceVersion."""
        metadata = {"resourceVersion": pod.resource_version, "labels": {names.LABEL_NETWORK: network}}
        self._lead()
        path = PODS.path(namespace=pod.namespace, name=pod.name)
        return self._reader.read(await self._client.merge(path, {"metadata": metadata}))

    async def foreign_policies(self, pod: PodView) -> tuple[ForeignPolicy, ...]:
        """Return the policies of others that open a pod; puts our own back where it was changed."""
        self._lead()
        return await self._check.foreign(pod)

    async def delete_pod(self, pod: PodView) -> None:
        """Delete with a uid precondition; absent is success."""
        self._lead()
        self._reader.deleted(pod.uid)
        options = {
            "preconditions": {"uid": pod.uid},
            "gracePeriodSeconds": DELETE_GRACE_SECONDS,
            "propagationPolicy": "Background",
        }
        try:
            await self._client.delete(PODS.path(namespace=pod.namespace, name=pod.name), options)
        except (NotFoundError, ConflictError):
            return  # gone, or another pod has the name now

    async def emit(self, task: SandboxTask, *, reason: str, message: str, warning: bool) -> None:
        """Record an Event: deduplicated, rate-limited, never raises."""
        self._events.record(task, reason=reason, message=message, warning=warning)

    async def index_reachable(self, host: str, port: int) -> str:
        """Connect from the operator itself; the IP address that answered, empty if none did."""
        try:
            async with asyncio.timeout(INDEX_SECONDS):
                _, writer = await asyncio.open_connection(host, port)
        except OSError:
            return ""
        address = str(writer.get_extra_info("peername")[0])
        writer.transport.abort()
        return address

    def _lead(self) -> None:
        """Raise unless this process may act at this very moment."""
        if not self._may_write():
            raise UnavailableError("the lease is over")

    async def _find(self, resource: Resource, name: str, *, namespace: str = "") -> dict[str, Any] | None:
        try:
            return await self._client.get(resource.path(namespace=namespace, name=name))
        except NotFoundError:
            return None

    async def _list(self, resource: Resource, model: type[Model]) -> tuple[Model, ...]:
        found = []
        async for raw in self._client.items(resource.path()):
            try:
                found.append(_parsed(model, raw))
            except RefusedError as error:
                logger.error("%s", error)  # noqa: TRY400 - the message says it all
        return tuple(found)

    async def _write_status(
        self, resource: Resource, stored: SandboxTask | SandboxClass, status: Mapping[str, Any]
    ) -> dict[str, Any]:
        metadata = stored.metadata
        before: dict[str, Any] = {}
        if stored.status is not None:
            before = stored.status.model_dump(mode="json", by_alias=True, exclude_none=True)
        path = resource.path(namespace=metadata.namespace, name=metadata.name, subresource="status")
        body = {
            # No two objects share a resourceVersion, so it stands for the uid as well.
            "metadata": {"resourceVersion": metadata.resource_version},
            "status": merge_patch(before, status),
        }
        self._lead()
        return await self._client.merge(path, body)


def _parsed(model: type[Model], raw: Mapping[str, Any]) -> Model:
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        metadata = raw["metadata"]
        where = f"{model.__name__} {metadata.get('namespace', '')}/{metadata['name']}"
        raise RefusedError(
            RefusalKind.INVALID, f"{where} is not as this version of the operator knows it: {problems(error)}"
        ) from None
