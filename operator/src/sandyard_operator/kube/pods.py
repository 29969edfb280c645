"""The manifest of a task's pod: two containers, two users, no rights, nothing of the user's text.

Pure: the same task, class and facts give the same manifest, and the operator signs it. No field holds a string
of the task's author, so ``$(VAR)`` in one expands nowhere.
"""

from dataclasses import dataclass
from typing import Any, Final

from sandyard_api import names
from sandyard_api.quantity import whole
from sandyard_api.sandbox_class import ClassSpec, SandboxClass, UserNamespaces
from sandyard_api.schema import SpecModel
from sandyard_api.task import SandboxTask
from sandyard_operator.decide.index import address_of
from sandyard_operator.decide.pod import pod_name
from sandyard_operator.decide.terms import DISK, amounts
from sandyard_operator.kube.authority import Authority
from sandyard_operator.kube.policies import is_address
from sandyard_operator.kube.signature import sign
from sandyard_operator.kube.volumes import RUNNER, SLACK, agent_disk_bytes, mounts, volumes

TOLERATION_SECONDS: Final = 30  # a node that is not ready or not reachable
GRACE_SECONDS: Final = 30  # an evicted pod's agent serves its result for this long
AGENT_REQUESTS: Final = {"cpu": "20m", "memory": "48Mi", DISK: "16Mi"}
AGENT_CPU: Final = "1"  # it starts and installs at full speed and idles otherwise
AGENT_MEMORY: Final = "256Mi"  # uv resolving and unpacking pandas needs about half of it
RUNNER_DISK_REQUEST: Final = "64Mi"  # absent, the limit would be set aside
SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
HOSTNAME: Final = "sandbox"
NO_NAMESERVER: Final = "127.0.0.1"  # nothing listens there: a look-up ends at once
BY_NAME: Final = "metadata.name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the manifest depends on besides task and class."""

    user_namespace: bool
    nodes_without: tuple[str, ...] = ()  # user namespaces, where they are required


def manifest(
    task: SandboxTask, sandbox_class: SandboxClass, *, attempt: int, facts: Facts, authority: Authority
) -> dict[str, Any]:
    """Return the pod to be created, signed."""
    spec, metadata = sandbox_class.spec, task.metadata
    extra = spec.pod_metadata
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(metadata.uid, attempt),
            "namespace": metadata.namespace,
            "labels": {
                **(extra.labels if extra else {}),
                names.LABEL_MANAGED_BY: names.MANAGED_BY,
                names.LABEL_ROLE: names.ROLE_TASK,
                names.LABEL_OWNER_UID: metadata.uid,
                names.LABEL_CLASS: sandbox_class.metadata.name,
                names.LABEL_NETWORK: names.NETWORK_CLOSED,
            },
            "annotations": {**(extra.annotations if extra else {}), SAFE_TO_EVICT: "false"},
            "ownerReferences": [owner_of(task)],
        },
        "spec": _spec(task, sandbox_class, facts=facts, root_keys=authority.root_keys),
    }
    pod["metadata"]["annotations"][names.ANNOTATION_SIGNATURE] = sign(
        pod, authority, owner_uid=metadata.uid, attempt=attempt
    )
    return pod


def owner_of(task: SandboxTask) -> dict[str, Any]:
    """Return the reference that makes an object go when its task goes."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": task.kind,
        "name": task.metadata.name,
        "uid": task.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _spec(
    task: SandboxTask, sandbox_class: SandboxClass, *, facts: Facts, root_keys: tuple[str, ...]
) -> dict[str, Any]:
    spec = sandbox_class.spec
    given = amounts(task.spec, sandbox_class)
    limits, requests = dict(given.limits), dict(given.requests)
    disk, memory = whole(limits[DISK]), whole(limits["memory"])
    limits[DISK] = str(SLACK * disk)
    requests.setdefault(DISK, min(RUNNER_DISK_REQUEST, limits[DISK], key=whole))
    agent_limits = {
        "cpu": AGENT_CPU,
        "memory": AGENT_MEMORY,
        DISK: str(agent_disk_bytes(spec.limits, disk)),
    }
    every = volumes(limits=spec.limits, disk=disk, memory=memory)
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "hostname": HOSTNAME,
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            _container(
                names.CONTAINER_AGENT,
                spec,
                command=names.AGENT_COMMAND,
                user=names.AGENT_UID,
                resources={"requests": AGENT_REQUESTS, "limits": agent_limits},
                env=[
                    {
                        "name": names.ENV_POD_UID,
                        "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.uid"}},
                    },
                    {"name": names.ENV_ROOT_KEYS, "value": ",".join(root_keys)},
                    _namespace_variable(facts),
                ],
                mounted=mounts(every, names.CONTAINER_AGENT),
            ),
            _container(
                names.CONTAINER_RUNNER,
                spec,
                command=names.SUPERVISOR_COMMAND,
                user=names.RUNNER_UID,
                resources={"requests": requests, "limits": limits},
                env=[_namespace_variable(facts)],
                mounted=mounts(every, RUNNER),
            ),
        ],
        "volumes": [volume.render() for volume in every],
        "tolerations": _tolerations(spec),
        **_dns(task, spec),
    }
    if facts.user_namespace:
        pod["hostUsers"] = False
    return pod | _placement(spec, facts)


def _container(  # noqa: PLR0913 - the six things in which the two differ
    name: str,
    spec: ClassSpec,
    *,
    command: tuple[str, ...],
    user: int,
    resources: dict[str, Any],
    env: list[dict[str, Any]],
    mounted: list[dict[str, Any]],
) -> dict[str, Any]:
    return {
        "name": name,
        "image": spec.image,
        "imagePullPolicy": str(spec.image_pull_policy),
        "command": list(command),
        "env": env,
        "resources": resources,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": user,
            "runAsGroup": user,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": mounted,
    }


def _namespace_variable(facts: Facts) -> dict[str, Any]:
    return {"name": names.ENV_USER_NAMESPACE, "value": "true" if facts.user_namespace else "false"}


def _tolerations(spec: ClassSpec) -> list[dict[str, Any]]:
    return [
        *(
            {
                "key": f"node.kubernetes.io/{taint}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": TOLERATION_SECONDS,
            }
            for taint in ("not-ready", "unreachable")
        ),
        *(_plain(toleration) for toleration in spec.tolerations),
    ]


def _dns(task: SandboxTask, spec: ClassSpec) -> dict[str, Any]:
    """Ask the cluster's DNS only where the script may, or where the index has a name."""
    by_name = spec.index is not None and not is_address(address_of(spec.index.url)[0])
    if by_name or (task.spec.network is not None and task.spec.network.dns):
        return {"dnsPolicy": "ClusterFirst"}
    return {"dnsPolicy": "None", "dnsConfig": {"nameservers": [NO_NAMESERVER]}}


def _placement(spec: ClassSpec, facts: Facts) -> dict[str, Any]:
    affinity = {} if spec.affinity is None else _plain(spec.affinity)
    if spec.user_namespaces is UserNamespaces.REQUIRED and facts.nodes_without:
        affinity = _away_from(affinity, facts.nodes_without)
    found = {
        "nodeSelector": dict(spec.node_selector),
        "affinity": affinity,
        "runtimeClassName": spec.runtime_class_name,
        "priorityClassName": spec.priority_class_name,
        "imagePullSecrets": [{"name": secret.name} for secret in spec.image_pull_secrets],
    }
    return {name: value for name, value in found.items() if value}


def _away_from(affinity: dict[str, Any], nodes: tuple[str, ...]) -> dict[str, Any]:
    """Add to each required term that the pod keeps away from some nodes."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    closed = [{"key": BY_NAME, "operator": "NotIn", "values": [node]} for node in nodes]
    node_affinity = dict(affinity.get("nodeAffinity") or {})
    terms = (node_affinity.get(required) or {}).get("nodeSelectorTerms") or [{}]
    node_affinity[required] = {
        "nodeSelectorTerms": [{**term, "matchFields": [*(term.get("matchFields") or ()), *closed]} for term in terms]
    }
    return {**affinity, "nodeAffinity": node_affinity}


def _plain(model: SpecModel) -> dict[str, Any]:
    found: dict[str, Any] = model.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
    return found
