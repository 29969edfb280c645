"""The operator's signature on its pods, so that one forged or changed by somebody else is never adopted.

Signed are namespace, name, owner, attempt and a projection of the spec: of each field that says what runs, as
whom, with which files and which parts of the node, and nothing that the API server or an admission fills in.
What the projection does not know and could open a pod (other containers, other kinds of volumes) shows in it
by name. Pure.
"""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Iterable, Mapping
from typing import Any, Final

from sandyard_api.names import ANNOTATION_SIGNATURE
from sandyard_api.quantity import whole
from sandyard_api.wire import canonical_sha256
from sandyard_operator.kube.authority import Authority

DOMAIN: Final = b"sandyard.dev pod v1\n"  # a signature on a pod is never one on anything else
POD_FIELDS: Final = (
    "automountServiceAccountToken",
    "dnsConfig",
    "dnsPolicy",
    "enableServiceLinks",
    "ephemeralContainers",
    "hostAliases",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostUsers",
    "hostname",
    "initContainers",
    "restartPolicy",
    "runtimeClassName",
    "shareProcessNamespace",
    "terminationGracePeriodSeconds",
)
SECURITY_FIELDS: Final = (
    "allowPrivilegeEscalation",
    "capabilities",
    "fsGroup",
    "privileged",
    "procMount",
    "readOnlyRootFilesystem",
    "runAsGroup",
    "runAsNonRoot",
    "runAsUser",
    "seccompProfile",
    "supplementalGroups",
    "sysctls",
)
CONTAINER_FIELDS: Final = ("args", "command", "envFrom", "image", "name", "volumeDevices", "workingDir")
MOUNT_FIELDS: Final = ("mountPath", "mountPropagation", "name", "readOnly", "subPath", "subPathExpr")
SOURCE_FIELDS: Final = ("medium", "secretName")


def project(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a pod's spec the signature covers."""
    return {
        **_some(spec, POD_FIELDS),
        "containers": [_container(container) for container in spec.get("containers") or ()],
        "securityContext": _some(spec.get("securityContext") or {}, SECURITY_FIELDS),
        "volumes": [_volume(volume) for volume in spec.get("volumes") or ()],
    }


def sign(manifest: Mapping[str, Any], authority: Authority, *, owner_uid: str, attempt: int) -> str:
    """Return the value of the signature annotation for a pod to be created."""
    message = _message(manifest, owner_uid=owner_uid, attempt=attempt)
    return b64encode(authority.sign(message)).decode()


def verify(pod: Mapping[str, Any], authority: Authority, *, owner_uid: str, attempt: int) -> bool:
    """Tell whether a live pod is as the operator made it."""
    text = (pod["metadata"].get("annotations") or {}).get(ANNOTATION_SIGNATURE, "")
    try:
        signature = b64decode(text, validate=True)
    except (Base64Error, ValueError):
        return False
    return authority.holds(signature, _message(pod, owner_uid=owner_uid, attempt=attempt))


def differences(sent: Mapping[str, Any], live: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the signed parts of a spec that an admission changed."""
    before, after = project(sent["spec"]), project(live["spec"])
    return tuple(sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name)))


def _message(pod: Mapping[str, Any], *, owner_uid: str, attempt: int) -> bytes:
    metadata = pod["metadata"]
    claims = (metadata["namespace"], metadata["name"], owner_uid, str(attempt), canonical_sha256(project(pod["spec"])))
    return DOMAIN + "\n".join(claims).encode()


def _container(container: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **_some(container, CONTAINER_FIELDS),
        "env": [_variable(variable) for variable in container.get("env") or ()],
        "securityContext": _some(container.get("securityContext") or {}, SECURITY_FIELDS),
        "volumeMounts": [_some(mount, MOUNT_FIELDS) for mount in container.get("volumeMounts") or ()],
    }


def _variable(variable: Mapping[str, Any]) -> dict[str, Any]:
    sources = variable.get("valueFrom") or {}
    found = {kind: (source or {}).get("fieldPath", "") for kind, source in sources.items()}
    return {"name": variable["name"], "value": variable.get("value") or "", "from": found}


def _volume(volume: Mapping[str, Any]) -> dict[str, Any]:
    sources = {kind: _source(source or {}) for kind, source in volume.items() if kind != "name"}
    return {"name": volume["name"], "sources": sources}


def _source(source: Mapping[str, Any]) -> dict[str, Any]:
    size = source.get("sizeLimit")  # in bytes: the API server writes quantities in a form of its own
    return {**_some(source, SOURCE_FIELDS), "bytes": whole(size) if size else 0}


def _some(fields: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the named fields, without empty ones: the API server drops those."""
    return {name: fields[name] for name in names if fields.get(name) not in (None, "", [], {})}
