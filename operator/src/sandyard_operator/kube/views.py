"""Raw objects of the API server as the core knows them.

A Pod becomes a ``PodView`` with the operator's signature checked; tasks and classes become their models. Pure but
for the memory of which pods this process deleted.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from pydantic import ValidationError

from sandyard_api import names
from sandyard_operator.decide.pod import ContainerView, PodPhase, PodView
from sandyard_operator.kube.authority import Authority
from sandyard_operator.kube.signature import verify

SHOWN: Final = 5
REMEMBERED: Final = 10_000  # deletions of our own; far more than pods that end at one time
TASK_KIND: Final = "SandboxTask"
LOST_REASONS: Final = ("NodeLost", "DeletionByTaintManager")

Raw = Mapping[str, Any]


def problems(error: ValidationError) -> str:
    """Say what is wrong with an object, without any of its values: they may be a user's secrets."""
    found = error.errors(include_input=False, include_url=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['type']}" for one in found[:SHOWN])


class PodReader:
    """Reads pods with the keys of one authority."""

    def __init__(self, authority: Authority) -> None:
        self._authority = authority
        self._deleted: OrderedDict[str, None] = OrderedDict()

    def deleted(self, uid: str) -> None:
        """Remember that this process asked for the deletion of a pod."""
        self._deleted[uid] = None
        if len(self._deleted) > REMEMBERED:
            self._deleted.popitem(last=False)

    def read(self, raw: Raw) -> PodView:
        """Return the pod."""
        metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status") or {}
        labels = metadata.get("labels") or {}
        (owner_uid, owner_name), attempt = _owner(metadata), _attempt(metadata["name"])
        conditions = {c["type"]: c for c in status.get("conditions") or ()}
        containers = {c["name"]: c for c in status.get("containerStatuses") or ()}
        disruption = conditions.get("DisruptionTarget", {}).get("reason", "")
        return PodView(
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=metadata["uid"],
            resource_version=metadata["resourceVersion"],
            owner_uid=owner_uid,
            owner_name=owner_name,
            attempt=attempt,
            signed=bool(owner_uid)
            and attempt > 0
            and verify(raw, self._authority, owner_uid=owner_uid, attempt=attempt),
            created_at=datetime.fromisoformat(metadata["creationTimestamp"]),
            phase=_phase(status.get("phase")),
            deleting="deletionTimestamp" in metadata,
            deletion_by_operator=metadata["uid"] in self._deleted,
            network=labels.get(names.LABEL_NETWORK, ""),
            labels=dict(labels),
            node_name=spec.get("nodeName", ""),
            ip=status.get("podIP", ""),
            image=_image(spec, containers),
            user_namespace=spec.get("hostUsers") is False,
            runtime_class=spec.get("runtimeClassName") or "",
            scheduled=_is_true(conditions, "PodScheduled"),
            unschedulable_message=_unschedulable(conditions),
            disruption_reason=disruption,
            status_reason=status.get("reason", ""),
            status_message=status.get("message", ""),
            node_ready=_node_ready(conditions, status.get("reason", ""), disruption),
            agent=_container(containers.get(names.CONTAINER_AGENT)),
            runner=_container(containers.get(names.CONTAINER_RUNNER)),
        )


def _owner(metadata: Raw) -> tuple[str, str]:
    """Return uid and name of the SandboxTask that controls an object."""
    references: Iterable[Raw] = metadata.get("ownerReferences") or ()
    for reference in references:
        ours = reference["apiVersion"].partition("/")[0] == names.GROUP and reference["kind"] == TASK_KIND
        if ours and reference.get("controller"):
            return str(reference["uid"]), str(reference["name"])
    return "", ""


def _attempt(name: str) -> int:
    """Read the attempt off a pod's name; 0 where it is not one of ours."""
    last = name.rpartition("-")[2]
    ours = name.startswith(names.POD_NAME_PREFIX) and last.isascii() and last.isdecimal()
    return int(last) if ours else 0


def _phase(text: str | None) -> PodPhase:
    try:
        return PodPhase(text or PodPhase.PENDING)
    except ValueError:
        return PodPhase.UNKNOWN


def _image(spec: Raw, containers: Mapping[str, Raw]) -> str:
    """Return the runner's image by the digest that the node resolved, where it names one."""
    asked = next((str(c["image"]) for c in spec["containers"] if c["name"] == names.CONTAINER_RUNNER), "")
    resolved = str(containers.get(names.CONTAINER_RUNNER, {}).get("imageID") or "")
    return resolved if "@sha256:" in resolved else asked


def _is_true(conditions: Mapping[str, Raw], kind: str) -> bool:
    return bool(conditions.get(kind, {}).get("status") == "True")


def _unschedulable(conditions: Mapping[str, Raw]) -> str:
    scheduled = conditions.get("PodScheduled", {})
    waits = scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable"
    return str(scheduled.get("message", "")) if waits else ""


def _node_ready(conditions: Mapping[str, Raw], reason: str, disruption: str) -> bool:
    """Tell whether the node still speaks for the pod.

    The node controller turns ``Ready`` of a silent node's pods to False and leaves ``ContainersReady`` as the
    kubelet last said it; a kubelet always writes both alike for a pod without readiness gates.
    """
    if reason in LOST_REASONS or disruption in LOST_REASONS:
        return False
    return _is_true(conditions, "Ready") or not _is_true(conditions, "ContainersReady")


def _container(status: Raw | None) -> ContainerView:
    if status is None:
        return ContainerView(started=False)
    state: Raw = status.get("state") or {}
    waiting: Raw = state.get("waiting") or {}
    terminated: Raw | None = state.get("terminated")
    return ContainerView(
        started="running" in state or terminated is not None,
        waiting_reason=waiting.get("reason", ""),
        waiting_message=waiting.get("message", ""),
        exit_code=None if terminated is None else terminated.get("exitCode", 0),
        exit_signal=0 if terminated is None else terminated.get("signal", 0),
        terminated_reason="" if terminated is None else terminated.get("reason", ""),
    )
