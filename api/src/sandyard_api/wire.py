"""What the operator (later also the gateway) and a pod's agent say to each other over HTTPS.

Requests and replies are JSON in camelCase but for two: a bundle (``POST /v1/bundle``) and whole streams or
artifacts, which are bytes. Each request carries a token (see ``tokens``) and a nonce; each reply echoes the
nonce and the pod's UID. All of it is idempotent: the same mutation with the same content answers the same
state, with other content 409. Imports pydantic and the standard library only; never does I/O.
"""

import hashlib
import json
from enum import StrEnum
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

HEADER_NONCE: Final = "x-sandyard-nonce"
HEADER_POD_UID: Final = "x-sandyard-pod-uid"
HEADER_CERTIFICATE: Final = "x-sandyard-certificate"  # the signing key, certified by the root key
HEADER_TIME: Final = "x-sandyard-time"  # the agent's clock (Unix seconds) on each reply, for a skewed node
BUNDLE_MEDIA_TYPE: Final = "application/vnd.sandyard.bundle"
LENGTH_BYTES: Final = 8  # before a bundle's manifest
MAX_WAIT_SECONDS: Final = 25  # longest `?wait=` of a long poll: below common idle time-outs of 30 s
MAX_JSON_BYTES: Final = 1 << 20
TEXT_BYTES: Final = 16 * 1024  # `text` of a stream in a reply, and of an installer's stderr

PATH_HEALTH: Final = "/healthz"  # no token: the loop answers
PATH_STATUS: Final = "/v1/status"  # GET ?wait=: AgentStatus once the supervisor is ready (or lost)
PATH_BUNDLE: Final = "/v1/bundle"  # POST: BundleReply; replaced freely until a run was accepted
PATH_REQUIREMENTS: Final = "/v1/requirements"  # POST RequirementsRequest: RequirementsReply
PATH_INSTALL: Final = "/v1/install"  # POST InstallRequest, GET ?wait=: InstallStatus
PATH_PROBE: Final = "/v1/probe"  # POST ProbeRequest: ProbeReply
PATH_RUNS: Final = "/v1/runs"  # POST /{runID} StartRequest; GET /{runID}?wait=: RunStatus
# POST /{runID}/cancel: RunStatus · /{runID}/revoke: RunStatus · /{runID}/acknowledge: RunStatus
# GET /{runID}/stdout, /{runID}/stderr, /{runID}/artifacts/{index}: bytes


class Wire(BaseModel):
    """A message; camelCase on the wire, refuses what it does not know."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, extra="forbid", frozen=True
    )

    def to_json(self) -> bytes:
        """Serialise with camelCase names, without absent fields."""
        return self.model_dump_json(by_alias=True, exclude_none=True).encode()


class Reply(Wire):
    """A message from an agent; tolerates fields of a newer one."""

    model_config = ConfigDict(extra="ignore")


class ErrorCode(StrEnum):
    """Why an agent refused a request."""

    BAD_REQUEST = "BadRequest"
    UNAUTHENTICATED = "Unauthenticated"  # no, wrong, expired or foreign token
    REPLAYED = "Replayed"  # the token's id was seen before
    STALE_EPOCH = "StaleEpoch"  # a newer leader has spoken
    CONFLICT = "Conflict"  # the same id with other content, or a second owner
    NOT_FOUND = "NotFound"
    NOT_READY = "NotReady"  # the supervisor is not there yet
    REVOKED = "Revoked"  # this run id was promised never to be accepted
    TOO_LARGE = "TooLarge"
    INTERNAL = "Internal"


class ErrorReply(Reply):
    """Body of every reply with a status of 400 and above."""

    code: ErrorCode
    message: str


class Isolation(Reply):
    """What is in force for the user's code, as probed, never as asked for."""

    network: str = "None"  # "None": sockets are denied by seccomp; "Egress": only the network policy limits
    seccomp: bool = False
    landlock_abi: int = Field(default=0, alias="landlockABI")  # 0: the kernel has none
    user_namespace: bool = False
    runtime_class: str = ""


class Package(Reply):
    """One distribution as resolved."""

    name: str
    version: str
    sha256: str = ""


class RunLimits(Wire):
    """Bounds of one run, in bytes and counts; they come from the class and the task."""

    stdout_bytes: int
    stderr_bytes: int
    artifact_bytes: int
    disk_bytes: int  # workspace, /tmp and /dev/shm together
    open_files: int
    processes: int
    artifact_count: int = 256


class EnvVar(Wire):
    """A variable for the script; a secret one is redacted in what comes back."""

    name: str
    value: str
    secret: bool = False


class PartKind(StrEnum):
    """What a part of a bundle is for."""

    CODE = "code"
    STDIN = "stdin"
    FILE = "file"


class Part(Wire):
    """One blob of a bundle, in the order of the bytes that follow the manifest."""

    kind: PartKind
    path: str = ""  # of a file: relative to /workspace, no `..`
    bytes: int
    sha256: str


class BundleManifest(Wire):
    """Everything a run gets besides its packages. Its digest is the run's inputDigest."""

    salt: str  # random: the digest goes into a status that more people may read than the secrets in here
    args: tuple[str, ...] = ()
    env: tuple[EnvVar, ...] = ()
    limits: RunLimits
    egress: bool = False  # the class allows sockets for this task
    parts: tuple[Part, ...]


class Bundle:
    """A manifest and its blobs as sent: 8 bytes big-endian length, manifest JSON, blobs end to end."""

    __slots__ = ("blobs", "digest", "manifest", "raw_manifest")

    def __init__(
        self, manifest: BundleManifest, blobs: tuple[bytes, ...], *, raw_manifest: bytes | None = None
    ) -> None:
        self.manifest = manifest
        self.blobs = blobs
        self.raw_manifest = manifest.to_json() if raw_manifest is None else raw_manifest
        self.digest = hashlib.sha256(self.raw_manifest).hexdigest()

    def encode(self) -> bytes:
        """Return the bytes of ``POST /v1/bundle``."""
        return b"".join((len(self.raw_manifest).to_bytes(LENGTH_BYTES, "big"), self.raw_manifest, *self.blobs))

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read and verify a bundle; raises ValueError where lengths or digests do not match."""
        offset = LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "big")
        raw = data[LENGTH_BYTES:offset]
        if len(data) < offset:
            raise ValueError("the bundle ends inside its manifest")
        manifest = BundleManifest.model_validate_json(raw)
        blobs = []
        for part in manifest.parts:
            blob = data[offset : offset + part.bytes]
            if part.bytes < 0 or len(blob) != part.bytes or hashlib.sha256(blob).hexdigest() != part.sha256:
                raise ValueError(f"part {part.kind} {part.path!r} is not what the manifest says")
            blobs.append(blob)
            offset += part.bytes
        if offset != len(data):
            raise ValueError("the bundle goes on after its last part")
        return cls(manifest, tuple(blobs), raw_manifest=raw)


def part_of(kind: PartKind, blob: bytes, *, path: str = "") -> Part:
    """Describe a blob."""
    return Part(kind=kind, path=path, bytes=len(blob), sha256=hashlib.sha256(blob).hexdigest())


class BundleReply(Reply):
    """The digest the agent computed: what StartRequest.inputDigest must be."""

    digest: str


class RequirementsRequest(Wire):
    """Ask which of these requirements the image does not already satisfy."""

    requirements: tuple[str, ...]
    requires_python: str = ""


class RequirementsReply(Reply):
    """``missing`` empty: nothing has to be installed and no network is ever opened."""

    satisfied: tuple[Package, ...] = ()
    missing: tuple[str, ...] = ()
    python: str
    python_satisfied: bool = True


class IndexAccess(Wire):
    """The one package index of the class. The netrc lives in the agent's tmpfs for this install only."""

    url: str
    ca_bundle: str = ""
    netrc: str = ""


class InstallRequest(Wire):
    """Resolve and install wheels into the packages volume; once per pod."""

    requirements: tuple[str, ...]  # all of them, also what the image satisfies
    index: IndexAccess
    timeout_seconds: int
    max_bytes: int
    max_files: int = 200_000
    require_hashes: bool = False


class InstallPhase(StrEnum):
    """How far an install is."""

    NONE = "none"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class InstallStatus(Reply):
    """State of the pod's one install. ``reason`` is one of the install reasons of the API."""

    phase: InstallPhase
    reason: str = ""
    message: str = ""
    stderr: str = ""  # the installer's last 16 KiB, redacted
    packages: tuple[Package, ...] = ()
    lock_sha256: str = Field(default="", alias="lockSHA256")
    milliseconds: int = 0
    installer_gone: bool = True  # the installer's processes, and with them its sockets, are reaped


class ProbeRequest(Wire):
    """A fresh TCP connect from the agent."""

    host: str
    port: int
    timeout_milliseconds: int = 500


class ProbeReply(Reply):
    """``connected`` false with the error's name: ``ECONNREFUSED``, ``ETIMEDOUT`` and so on."""

    connected: bool
    error: str = ""
    installer_gone: bool = True


class StartRequest(Wire):
    """Start the run that W1 names, at most once in this pod's life."""

    epoch: int  # the leader's; lower than one seen before is refused
    input_digest: str
    run_timeout_seconds: float


class RunPhase(StrEnum):
    """Where a run is. ``accepted`` is already past the point of no return."""

    UNKNOWN = "unknown"
    REVOKED = "revoked"
    ACCEPTED = "accepted"
    RUNNING = "running"
    FINISHED = "finished"


class Outcome(StrEnum):
    """How a run ended, told by the supervisor's waitid and counters, never by text."""

    EXITED = "exited"
    SIGNALED = "signaled"
    TIMEOUT = "timeout"
    OOM = "oom"
    DISK = "disk"
    CANCELLED = "cancelled"
    ISOLATION_UNAVAILABLE = "isolationUnavailable"  # lock-down failed: no user byte ran
    SUPERVISOR_LOST = "supervisorLost"  # it may have run
    START_FAILED = "startFailed"  # the fork or the inputs failed: no user byte ran


class Stream(Reply):
    """``text``: up to 16 KiB whole, longer ones head and tail. ``bytes``: all that was written."""

    text: str = ""
    bytes: int = 0
    truncated: bool = False
    sha256: str = ""  # of the bytes kept


class Artifact(Reply):
    """A regular file left in the output directory."""

    path: str
    bytes: int
    sha256: str
    media_type: str


class RunResult(Reply):
    """The end of a run. errorType, errorMessage, traceback are the script's own words."""

    outcome: Outcome
    exit_code: int | None = None
    signal: str = ""
    error_type: str = ""
    error_message: str = ""
    traceback: str = ""
    stdout: Stream = Stream()
    stderr: Stream = Stream()
    artifacts: tuple[Artifact, ...] = ()
    warnings: tuple[str, ...] = ()
    run_milliseconds: int = 0
    message: str = ""  # ours: what a reason's message should add


class RunStatus(Reply):
    """State of one run id, as the agent has recorded it."""

    run_id: str = Field(alias="runID")
    phase: RunPhase
    input_digest: str = ""
    started_at: str = ""  # RFC 3339, the node's clock
    elapsed_milliseconds: int = 0  # monotonic
    acknowledged: bool = False
    isolation: Isolation = Isolation()
    result: RunResult | None = None


class SupervisorPhase(StrEnum):
    """Whether the runner container's PID 1 is there."""

    STARTING = "starting"
    READY = "ready"
    LOST = "lost"


class AgentStatus(Reply):
    """Everything a new leader needs to go on."""

    pod_uid: str = Field(alias="podUID")
    version: str
    python: str = ""  # of the runner, e.g. "3.13.5"
    supervisor: SupervisorPhase
    isolation: Isolation = Isolation()
    bundle_digest: str = ""
    install: InstallStatus = InstallStatus(phase=InstallPhase.NONE)
    run: RunStatus | None = None
    packages: tuple[Package, ...] = ()  # of the image


def canonical_sha256(value: Any) -> str:
    """Digest of JSON data: sorted keys, no blanks, UTF-8."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
