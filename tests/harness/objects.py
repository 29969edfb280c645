"""Objects of the four kinds: the smallest, the fullest, and wrong ones with what the refusal must name."""

from dataclasses import dataclass
from typing import Any, Final

PLURALS: Final = {
    "SandboxTask": "sandboxtasks",
    "Sandbox": "sandboxes",
    "SandboxPool": "sandboxpools",
    "SandboxClass": "sandboxclasses",
}
DIGEST: Final = "registry.invalid/runtime@sha256:" + "0" * 64
SHA256: Final = "ab" * 32
KEY_REF: Final = {"name": "inputs", "key": "data.csv"}
NETWORK: Final = {
    "egress": [
        {
            "cidr": "203.0.113.0/24",
            "except": ["203.0.113.128/25"],
            "ports": [{"protocol": "UDP", "port": 53, "endPort": 54}, {"port": 443}],
        },
        {"cidr": "2001:db8::/32"},
    ],
    "dns": True,
}
RESOURCES: Final = {
    "requests": {"cpu": "250m", "memory": "64Mi", "ephemeral-storage": "100M"},
    "limits": {"cpu": 1, "memory": "0.5Gi", "ephemeral-storage": "1e9"},
}
SECRET: Final = {"secretKeyRef": {"name": "s", "key": "k"}}
ENV: Final = [
    {"name": "PLAIN", "value": "a\nb"},
    {"name": "TOKEN", "valueFrom": SECRET},
]
FILES: Final = [
    {"path": "data/in.csv", "configMapKeyRef": KEY_REF},
    {"path": "…/ü.bin", "blobRef": {"sha256": SHA256}},
]
SELECTOR: Final = {
    "matchLabels": {"team": "data"},
    "matchExpressions": [{"key": "tier", "operator": "In", "values": ["dev"]}],
}
NODE_TERM: Final = {
    "matchExpressions": [{"key": "gpu", "operator": "DoesNotExist"}],
    "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["node9"]}],
}
POD_TERM: Final = {
    "labelSelector": SELECTOR,
    "namespaces": ["a"],
    "namespaceSelector": SELECTOR,
    "topologyKey": "kubernetes.io/hostname",
    "matchLabelKeys": ["x"],
    "mismatchLabelKeys": ["y"],
}
POD_AFFINITY: Final = {
    "requiredDuringSchedulingIgnoredDuringExecution": [POD_TERM],
    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": POD_TERM}],
}

SMALLEST: Final[dict[str, dict[str, Any]]] = {
    "SandboxTask": {"code": "print(1)"},
    "Sandbox": {},
    "SandboxPool": {},
    "SandboxClass": {"image": DIGEST},
}

# Every field of every spec, at least once.
FULLEST: Final[dict[str, tuple[dict[str, Any], ...]]] = {
    "SandboxTask": (
        {
            "code": "\t\r\n\f# é\U0001f600",
            "stdin": "in\x00",
            "files": FILES,
            "args": ["--x", ""],
            "env": ENV,
            "sandboxClassName": "other.class",
            "sandboxRef": {"name": "session"},
            "resources": RESOURCES,
            "network": NETWORK,
            "queueTimeoutSeconds": 1,
            "startTimeoutSeconds": 1,
            "installTimeoutSeconds": 1,
            "runTimeoutSeconds": 1,
            "retryPolicy": "OnInfrastructureFailure",
            "ttlSecondsAfterFinished": 0,
            "cancel": True,
        },
        {
            "codeFrom": {"configMapKeyRef": KEY_REF},
            "stdinFrom": {"blobRef": {"sha256": SHA256}},
        },
        {
            "codeFrom": {"configMapKeyRef": KEY_REF},
            "stdinFrom": {"configMapKeyRef": KEY_REF},
        },
    ),
    "Sandbox": (
        {
            "sandboxClassName": "other",
            "sandboxPoolName": "pool",
            "dependencies": ["six==1.17.0"],
            "resources": RESOURCES,
            "network": NETWORK,
            "env": ENV,
            "files": FILES,
            "operatingMode": "Suspended",
            "idleTimeoutSeconds": 0,
            "onIdle": "Suspend",
            "maxLifetimeSeconds": 1,
            "onExpiry": "Delete",
            "persistence": {"enabled": True, "retain": "Retain", "restoreFrom": {"stateName": "saved"}},
        },
        {"persistence": {"restoreFrom": {"sandboxName": "other"}}, "resources": {"limits": {"cpu": "1"}}},
    ),
    "SandboxPool": (
        {
            "sandboxClassName": "other",
            "replicas": 0,
            "dependencies": ["pandas"],
            "preload": ["pandas", "matplotlib.pyplot"],
            "resources": RESOURCES,
            "maxUnavailable": 2,
        },
        {"maxUnavailable": "100%"},
    ),
    "SandboxClass": (
        {
            "image": "localhost/runtime:1",
            "imagePolicy": "AllowTag",
            "imagePullPolicy": "Never",
            "imagePullSecrets": [{"name": "pull"}],
            "allowedNamespaces": SELECTOR,
            "nodeSelector": {"pool": "sandboxes"},
            "tolerations": [
                {
                    "key": "k",
                    "operator": "Equal",
                    "value": "v",
                    "effect": "NoExecute",
                    "tolerationSeconds": 5,
                }
            ],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [NODE_TERM]},
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": NODE_TERM}],
                },
                "podAffinity": POD_AFFINITY,
                "podAntiAffinity": POD_AFFINITY,
            },
            "priorityClassName": "low",
            "podMetadata": {"labels": {"team": "data"}, "annotations": {"example.invalid/note": "text"}},
            "runtimeClassName": "gvisor",
            "index": {
                "url": "https://index.invalid/simple/",
                "caBundle": "-----BEGIN CERTIFICATE-----\n",
                "credentialsSecretRef": {"name": "index", "key": "netrc"},
                "egress": {
                    "cidrs": ["198.51.100.0/24"],
                    "podSelector": SELECTOR,
                    "namespaceSelector": SELECTOR,
                    "ports": [{"port": 443}],
                },
            },
            "dependencies": {
                "maxItems": 0,
                "allow": ["pandas", "my-*"],
                "deny": ["*-evil"],
                "requireHashes": True,
            },
            "limits": {
                "codeBytes": 1048576,
                "stdinBytes": 0,
                "stdoutBytes": 1,
                "stderrBytes": 1,
                "metadataBytes": 1,
                "artifactBytes": 1,
                "stateBytes": 1024,
                "openFiles": 64,
                "processes": 4,
            },
            "resources": {
                "default": RESOURCES,
                "max": {"cpu": "8", "memory": "1Ti", "ephemeral-storage": "1Pi"},
            },
            "timeouts": {
                "installSeconds": 1,
                "maxInstallSeconds": 1,
                "runSeconds": 1,
                "maxRunSeconds": 1,
                "defaultTTLSecondsAfterFinished": 0,
            },
            "queue": {"maxRunning": 1, "maxQueued": 0},
            "network": {"allowedEgress": NETWORK["egress"]},
            "allowSecretEnv": True,
            "userNamespaces": "Off",
            "isolation": {"require": ["seccomp", "networkPolicy", "landlock"]},
        },
    ),
}


@dataclass(frozen=True, slots=True)
class Wrong:
    """A spec that is refused, and the field that the refusal names."""

    kind: str
    spec: dict[str, Any]
    field: str
    word: str = ""
    model_refuses: bool = True  # the model too; else it trusts the API server with it

    def __str__(self) -> str:
        """Return the id of a test."""
        return f"{self.kind} {self.field} {str(self.spec)[:60]}"


def _task(field: str, word: str = "", *, model_refuses: bool = True, **spec: Any) -> Wrong:
    return Wrong("SandboxTask", {"code": "1"} | spec, field, word, model_refuses)


def _file(path: str) -> dict[str, Any]:
    return {"path": path, "configMapKeyRef": KEY_REF}


def _class(field: str, word: str = "", *, model_refuses: bool = True, **spec: Any) -> Wrong:
    return Wrong("SandboxClass", {"image": DIGEST} | spec, field, word, model_refuses)


WRONG: Final = (
    Wrong("SandboxTask", {}, "code", "set exactly one of code and codeFrom"),
    Wrong("SandboxTask", {"code": ""}, "spec.code"),
    Wrong("SandboxTask", {"code": 1}, "spec.code"),
    Wrong("SandboxTask", {"code": "é" * 131073}, "spec.code", "262144 bytes"),
    _task("codeFrom", "exactly one", codeFrom={"configMapKeyRef": KEY_REF}),
    *(
        Wrong("SandboxTask", {"code": f"a{chr(code)}b"}, "spec.code", "control characters")
        for code in (*range(9), 11, *range(14, 32), 127)
    ),
    Wrong("SandboxTask", {"codeFrom": {}}, "spec.codeFrom.configMapKeyRef", "Required"),
    Wrong("SandboxTask", {"codeFrom": {"configMapKeyRef": {"name": "a"}}}, "configMapKeyRef.key", "Required"),
    Wrong("SandboxTask", {"codeFrom": {"configMapKeyRef": {"name": "A", "key": "k"}}}, "configMapKeyRef.name"),
    Wrong("SandboxTask", {"codeFrom": {"configMapKeyRef": {"name": "a", "key": "/"}}}, "configMapKeyRef.key"),
    _task("stdinFrom", "at most one", stdin="x", stdinFrom={"configMapKeyRef": KEY_REF}),
    _task("stdinFrom", "exactly one", stdinFrom={}),
    _task("stdinFrom", "exactly one", stdinFrom={"configMapKeyRef": KEY_REF, "blobRef": {"sha256": SHA256}}),
    _task("blobRef.sha256", stdinFrom={"blobRef": {"sha256": "ab"}}),
    _task("spec.stdin", "131072", stdin="x" * 131073),
    _task("spec.stdin", "131072 bytes", stdin="é" * 65537),
    *(
        _task("spec.files[0].path", "below /workspace", files=[_file(path)])
        for path in ("..", ".", "/", "/etc/x", "../up", "a/../b", "a/..", "a//b", "a/", "./a", "a/.")
    ),
    _task("spec.files[0].path", files=[_file("")]),
    _task("spec.files[0].path", "control", files=[_file("a\nb")]),
    _task("spec.files[0].path", "control", files=[_file("a\x00b")]),
    _task("spec.files[0].path", "255", files=[_file("a" * 256)]),
    _task("spec.files[0].path", "255 bytes", files=[_file("é" * 128)]),
    _task("spec.files[0]", "exactly one", files=[{"path": "a"}]),
    _task("spec.files", "Duplicate", files=[_file("a"), _file("a")]),
    _task("spec.files", "folder of another", files=[_file("a/b"), _file("a")]),
    _task("spec.files", "64", files=[_file(f"f{n}") for n in range(65)]),
    _task("spec.args", "64", args=["x"] * 65),
    _task("spec.args[0]", "4096", args=["x" * 4097]),
    *(
        _task("spec.env[0].name", "set by Sandyard", env=[{"name": name, "value": "x"}])
        for name in ("LD_PRELOAD", "LD_", "PYTHONPATH", "PYTHON", "SANDYARD_X", "PATH", "HOME")
    ),
    *(
        _task("spec.env[0].name", env=[{"name": name, "value": "x"}])
        for name in ("", "1A", "A-B", "A B", "A=B", "Ä", "A\n")
    ),
    _task("spec.env[0]", "exactly one", env=[{"name": "A"}]),
    _task("spec.env[0]", "exactly one", env=[{"name": "A", "value": "x", "valueFrom": SECRET}]),
    _task("spec.env[0].value", "NUL", env=[{"name": "A", "value": "\x00"}]),
    _task("spec.env[0].value", "32768", env=[{"name": "A", "value": "x" * 32769}]),
    _task("spec.env", "Duplicate", env=[{"name": "A", "value": "x"}, {"name": "A", "value": "y"}]),
    _task("spec.env", "64", env=[{"name": f"A{n}", "value": "x"} for n in range(65)]),
    _task("spec.sandboxClassName", sandboxClassName="Not_A_Name"),
    _task("spec.sandboxClassName", sandboxClassName="a" * 64),
    _task("spec.sandboxRef.name", sandboxRef={"name": ""}),
    _task("spec.resources.limits.memory", resources={"limits": {"memory": "much"}}),
    _task("spec.resources.limits.memory", resources={"limits": {"memory": "-1Mi"}}),
    _task("spec.resources.limits.memory", resources={"limits": {"memory": "1 Gi"}}),
    _task(
        "spec.resources.requests",
        "request of cpu must not exceed",
        resources={"requests": {"cpu": 2}, "limits": {"cpu": "1999m"}},
    ),
    _task(
        "spec.resources.requests",
        "request of ephemeral-storage must not exceed",
        resources={"requests": {"ephemeral-storage": "2Gi"}, "limits": {"ephemeral-storage": "2G"}},
    ),
    *(
        _task("spec.network.egress[0].cidr", network={"egress": [{"cidr": cidr}]})
        for cidr in ("", "203.0.113.0", "203.0.113.1/24", "203.0.113.0/33", "everything", "::1/64")
    ),
    _task(
        "except",
        "within cidr",
        network={"egress": [{"cidr": "203.0.113.0/25", "except": ["203.0.113.128/25"]}]},
    ),
    _task("ports[0].port", network={"egress": [{"cidr": "203.0.113.0/24", "ports": [{"port": 0}]}]}),
    _task("ports[0].port", network={"egress": [{"cidr": "203.0.113.0/24", "ports": [{"port": 65536}]}]}),
    _task(
        "ports[0].endPort",
        "below port",
        network={"egress": [{"cidr": "203.0.113.0/24", "ports": [{"port": 2, "endPort": 1}]}]},
    ),
    _task(
        "ports[0].protocol",
        network={"egress": [{"cidr": "203.0.113.0/24", "ports": [{"port": 2, "protocol": "ICMP"}]}]},
    ),
    _task("spec.network.egress", network={"egress": [{"cidr": "203.0.113.0/24"}] * 33}),
    _task("spec.queueTimeoutSeconds", queueTimeoutSeconds=-1),
    _task("spec.startTimeoutSeconds", startTimeoutSeconds=0),
    _task("spec.installTimeoutSeconds", installTimeoutSeconds=0),
    _task("spec.runTimeoutSeconds", runTimeoutSeconds=0),
    _task("spec.runTimeoutSeconds", runTimeoutSeconds=2**31),
    _task("spec.runTimeoutSeconds", model_refuses=False, runTimeoutSeconds="60"),
    _task("spec.runTimeoutSeconds", runTimeoutSeconds=1.5),
    _task("spec.retryPolicy", retryPolicy="Always"),
    _task("spec.ttlSecondsAfterFinished", ttlSecondsAfterFinished=-1),
    _task("spec.cancel", model_refuses=False, cancel="yes"),
    Wrong("Sandbox", {"operatingMode": "Paused"}, "spec.operatingMode"),
    Wrong("Sandbox", {"onIdle": "Stop"}, "spec.onIdle"),
    Wrong("Sandbox", {"onExpiry": "Stop"}, "spec.onExpiry"),
    Wrong("Sandbox", {"idleTimeoutSeconds": -1}, "spec.idleTimeoutSeconds"),
    Wrong("Sandbox", {"dependencies": ["x" * 301]}, "spec.dependencies[0]"),
    Wrong("Sandbox", {"dependencies": [""]}, "spec.dependencies[0]"),
    Wrong("Sandbox", {"persistence": {"retain": "Maybe"}}, "spec.persistence.retain"),
    Wrong("Sandbox", {"persistence": {"restoreFrom": {}}}, "spec.persistence.restoreFrom", "exactly one"),
    Wrong("SandboxPool", {"replicas": -1}, "spec.replicas"),
    Wrong("SandboxPool", {"replicas": 10001}, "spec.replicas"),
    Wrong("SandboxPool", {"preload": ["os; import sys"]}, "spec.preload[0]"),
    Wrong("SandboxPool", {"preload": ["a", "a"]}, "spec.preload[1]", "Duplicate", model_refuses=False),
    Wrong("SandboxPool", {"maxUnavailable": "101%"}, "spec.maxUnavailable"),
    Wrong("SandboxPool", {"maxUnavailable": -1}, "spec.maxUnavailable"),
    Wrong("SandboxClass", {}, "spec.image", "Required"),
    _class("spec.image", image=""),
    _class("spec.image", "imagePolicy", model_refuses=False, image="localhost/runtime:1"),
    _class("spec.image", "imagePolicy", model_refuses=False, image="localhost/runtime@sha256:00"),
    _class("spec.imagePullPolicy", imagePullPolicy="Sometimes"),
    _class("operator", allowedNamespaces={"matchExpressions": [{"key": "a", "operator": "Is"}]}),
    _class(
        "spec.podMetadata.labels",
        "set by the operator",
        model_refuses=False,
        podMetadata={"labels": {"sandyard.dev/role": "x"}},
    ),
    _class(
        "spec.podMetadata.annotations",
        "set by the operator",
        model_refuses=False,
        podMetadata={"annotations": {"sandyard.dev/signature": "x"}},
    ),
    _class(
        "spec.podMetadata.labels",
        "set by the operator",
        model_refuses=False,
        podMetadata={"labels": {"app.kubernetes.io/managed-by": "x"}},
    ),
    *(
        _class("spec.index.url", model_refuses=False, index={"url": url})
        for url in (
            "",
            "index",
            "file:///srv/index",
            "https://user:pass@index.invalid/simple",
            "ftp://index.invalid",
        )
    ),
    _class("spec.dependencies.maxItems", dependencies={"maxItems": 257}),
    _class("spec.dependencies.deny[0]", dependencies={"deny": ["Not_Normal"]}),
    _class("spec.limits.metadataBytes", limits={"metadataBytes": 8193}),
    _class("spec.limits.codeBytes", limits={"codeBytes": 0}),
    _class("spec.limits.stateBytes", limits={"stateBytes": "huge"}),
    _class("spec.resources.max.cpu", resources={"max": {"cpu": "fast"}}),
    _class(
        "spec.resources.default.requests",
        "request of memory must not exceed",
        resources={"default": {"limits": {"memory": "64Mi"}}},
    ),
    _class("spec.timeouts.runSeconds", "must not exceed maxRunSeconds", timeouts={"runSeconds": 3601}),
    _class(
        "spec.timeouts.installSeconds",
        "must not exceed maxInstallSeconds",
        timeouts={"maxInstallSeconds": 100},
    ),
    _class("spec.queue.maxRunning", queue={"maxRunning": 0}),
    _class("spec.queue.maxQueued", queue={"maxQueued": -1}),
    _class("spec.userNamespaces", userNamespaces="Maybe"),
    _class("spec.isolation.require[0]", isolation={"require": ["gvisor"]}),
)


def manifest(kind: str, spec: dict[str, Any], *, name: str = "one") -> dict[str, Any]:
    """Return an object as a user writes it."""
    return {"apiVersion": "sandyard.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def collection(kind: str, namespace: str = "default") -> str:
    """Return the path of a kind's objects."""
    scope = "" if kind == "SandboxClass" else f"/namespaces/{namespace}"
    return f"/apis/sandyard.dev/v1alpha1{scope}/{PLURALS[kind]}"
