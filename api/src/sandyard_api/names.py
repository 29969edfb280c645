"""Names that more than one room must agree on: labels, paths in a pod, ports, UIDs, Secrets.

Everything here is a constant with its meaning; nothing is computed. A change here is a change of the
contract between the operator, the images, the runtime and the chart.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

GROUP: Final = "sandyard.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
RELEASE: Final = "0.1.0"  # of the one distribution; images carry packages without its metadata

# Labels and annotations on pods and policies the operator owns. Only the operator may set this prefix.
LABEL_PREFIX: Final = "sandyard.dev/"
LABEL_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MANAGED_BY: Final = "sandyard"
LABEL_ROLE: Final = "sandyard.dev/role"  # what the pod is for
ROLE_TASK: Final = "task"
LABEL_OWNER_UID: Final = "sandyard.dev/owner-uid"  # the SandboxTask's uid
LABEL_CLASS: Final = "sandyard.dev/class"  # name of the SandboxClass
LABEL_NETWORK: Final = "sandyard.dev/network"  # which network phase the pod is in
NETWORK_CLOSED: Final = "closed"
NETWORK_INSTALLING: Final = "installing"
ANNOTATION_SIGNATURE: Final = "sandyard.dev/signature"
POD_NAME_PREFIX: Final = "sandyard-"  # pods of ours start with it; tenants may not create such pods

# A pod's two containers and the users they run as.
CONTAINER_AGENT: Final = "agent"
CONTAINER_RUNNER: Final = "runner"
AGENT_UID: Final = 10001
RUNNER_UID: Final = 10002

# Mount points. The same path means the same volume in both containers.
CONTROL_DIR: Final = "/sandyard/control"  # memory; agent read-write, runner read-only: the Unix socket
CONTROL_SOCKET: Final = "/sandyard/control/supervisor.sock"
PACKAGES_DIR: Final = "/sandyard/packages"  # disk; agent read-write, runner read-only: installed wheels
PACKAGES_SITE: Final = "/sandyard/packages/site"  # published here by one rename; absent until then
AGENT_STATE_DIR: Final = "/sandyard/state"  # disk; agent only: results, accepted-run record
AGENT_SECRET_DIR: Final = "/sandyard/secret"  # noqa: S105 - memory; agent only: index credentials during one install
AGENT_TLS_DIR: Final = "/sandyard/tls"  # Secret; agent only: tls.crt, tls.key
WORKSPACE_DIR: Final = "/workspace"  # disk; runner only
OUTPUT_DIR: Final = "/workspace/output"
TMP_DIR: Final = "/tmp"  # noqa: S108 - disk; a mount of each container's own
SHM_DIR: Final = "/dev/shm"  # noqa: S108 - memory; the runner's own mount

# The agent's HTTPS port.
AGENT_PORT: Final = 9443

# Programs in the runtime image.
AGENT_COMMAND: Final = ("/opt/sandyard/agent/bin/python", "-I", "-m", "sandyard_runtime.agent")
SUPERVISOR_COMMAND: Final = ("/usr/bin/python3.13", "-I", "-S", "/opt/sandyard/runtime")
RUNTIME_SOURCE_DIR: Final = "/opt/sandyard/runtime"  # __main__.py and sandyard_runtime without its agent
IMAGE_SITE: Final = "/opt/sandyard/site"  # numpy, pandas and the like, read-only in the image
UV_BINARY: Final = "/opt/sandyard/agent/bin/uv"
IMAGE_PACKAGES_FILE: Final = "/opt/sandyard/packages.json"  # [{"name","version"}] of IMAGE_SITE

# What a pod's environment carries. Nothing of it is secret.
ENV_POD_UID: Final = "SANDYARD_POD_UID"
ENV_ROOT_KEYS: Final = "SANDYARD_ROOT_KEYS"  # comma-separated base64 raw Ed25519 public keys
ENV_USER_NAMESPACE: Final = "SANDYARD_USER_NAMESPACE"  # "true" when the pod asked for hostUsers: false

# Objects of ours in a tenant's namespace.
SECRET_AGENT_TLS: Final = "sandyard-agent-tls"  # noqa: S105 - a name
POLICY_ISOLATE: Final = "sandyard-isolate"
POLICY_INSTALL_PREFIX: Final = "sandyard-install-"  # + class name
POLICY_EGRESS_PREFIX: Final = "sandyard-egress-"  # + task uid

# Objects of ours in the operator's namespace.
SECRET_AUTHORITY: Final = "sandyard-authority"  # noqa: S105 - a name: CA and signing root
LEASE_NAME: Final = "sandyard-operator"
OPERATOR_NAME: Final = "sandyard-operator"  # its Deployment and service account, as the chart names them
OPERATOR_LABELS: Final[Mapping[str, str]] = MappingProxyType(  # of the operator's own pods
    {"app.kubernetes.io/name": "sandyard", "app.kubernetes.io/component": "operator"}
)
