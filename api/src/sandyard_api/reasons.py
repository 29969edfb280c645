"""Why a task ended, and the words of conditions and phases: the closed vocabulary of every status.

A ``Reason`` carries its own documentation, what happened and what the user does, so a reason without it
cannot be written; the reference is generated from here. Imports the standard library only.
"""

from enum import StrEnum, unique
from typing import Self


@unique
class TaskPhase(StrEnum):
    """Where a task is, for people and columns; derived from conditions and never decided upon."""

    QUEUED = "Queued"
    STARTING = "Starting"
    INSTALLING = "Installing"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"


@unique
class SandboxPhase(StrEnum):
    """Where a session is, for people and columns."""

    PENDING = "Pending"
    READY = "Ready"
    SUSPENDING = "Suspending"
    SUSPENDED = "Suspended"
    RESUMING = "Resuming"
    FAILED = "Failed"
    TERMINATING = "Terminating"


@unique
class TaskCondition(StrEnum):
    """Types of a task's conditions, in the order they become true."""

    ACCEPTED = "Accepted"  # the spec holds and the class allows it
    SCHEDULED = "Scheduled"  # it left the queue and has a pod
    INSTALLED = "Installed"  # its packages are in place and the network is cut
    FINISHED = "Finished"  # the end: its reason is a Reason, and it never changes
    SUCCEEDED = "Succeeded"  # the script ended with exit status 0


@unique
class SandboxCondition(StrEnum):
    """Types of a session's conditions."""

    READY = "Ready"  # a call has been answered by the interpreter
    SUSPENDED = "Suspended"
    STATE_SAVED = "StateSaved"
    STATE_RESTORED = "StateRestored"


@unique
class PoolCondition(StrEnum):
    """Types of a pool's conditions."""

    READY = "Ready"  # as many warm pods as replicas


@unique
class ClassCondition(StrEnum):
    """Types of a class's conditions."""

    READY = "Ready"  # a pod of the class has answered, so its image is known


class Reason(StrEnum):
    """Reason of ``Finished=True``; ``happened`` and ``action`` are sentences for the user."""

    happened: str
    action: str

    def __new__(cls, value: str, happened: str = "", action: str = "") -> Self:
        """Tie a reason to its documentation."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.happened = happened
        member.action = action
        return member

    @property
    def phase(self) -> TaskPhase:
        """Return the phase of a task that ended for this reason."""
        if self is Reason.SUCCEEDED:
            return TaskPhase.SUCCEEDED
        return TaskPhase.CANCELLED if self is Reason.CANCELLED else TaskPhase.FAILED

    SUCCEEDED = (
        "Succeeded",
        "The script ended with exit status 0.",
        "Read status.result.",
    )
    NON_ZERO_EXIT = (
        "NonZeroExit",
        "The script ended with another exit status: an uncaught exception, sys.exit, or os._exit.",
        "Read errorType, errorMessage, traceback and stderr in status.result, and correct the script.",
    )
    KILLED_BY_SIGNAL = (
        "KilledBySignal",
        "A signal that was neither a limit nor a cancel ended the script, such as a crash in compiled code.",
        "Look at status.result.signal: SIGSEGV and SIGABRT point at a package, SIGSYS at a denied call.",
    )
    OOM_KILLED = (
        "OOMKilled",
        "The script needed more memory than its limit and was killed.",
        "Raise spec.resources.limits.memory within the class's maximum, or hold less data at once.",
    )
    RUN_TIMEOUT = (
        "RunTimeout",
        "The script ran longer than runTimeoutSeconds and was stopped; its output until then is kept.",
        "Raise spec.runTimeoutSeconds within the class's maximum, or do less in one task.",
    )
    DISK_LIMIT_EXCEEDED = (
        "DiskLimitExceeded",
        "The script wrote more than its ephemeral-storage limit and was killed.",
        "Raise spec.resources.limits.ephemeral-storage within the class's maximum, or write less.",
    )
    KERNEL_DIED = (
        "KernelDied",
        "The interpreter of the session named by sandboxRef died while the script ran in it.",
        "Its variables are gone but for saved state: start again from there. Nothing was run twice.",
    )
    INVALID_SCRIPT = (
        "InvalidScript",
        "The script or its PEP 723 block cannot be read: wrong encoding, unclosed, doubled, bad TOML.",
        "Correct the line that the message names.",
    )
    INVALID_DEPENDENCY = (
        "InvalidDependency",
        "A dependency is no PEP 508 requirement, or is a URL, a path, a marker, or a name the class denies.",
        "Write the item that the message names as name[extras] and version bounds.",
    )
    PYTHON_VERSION_UNSATISFIED = (
        "PythonVersionUnsatisfied",
        "The class's image has a Python that requires-python excludes.",
        "Widen requires-python, or name a class with another Python in spec.sandboxClassName.",
    )
    LIMIT_EXCEEDED = (
        "LimitExceeded",
        "A size or count is above the class's limit: code, standard input, metadata, dependencies or env.",
        "Make it smaller, or ask the administrator for a class with a higher limit.",
    )
    CLASS_NOT_FOUND = (
        "ClassNotFound",
        "There is no SandboxClass of that name.",
        "Name one that `kubectl get sandboxclasses.sandyard.dev` lists.",
    )
    NOT_ALLOWED = (
        "NotAllowed",
        "Not allowed: this namespace, resource, timeout, egress, secret, or a block beside sandboxRef.",
        "Change the field that the message names, or use a class that allows it.",
    )
    INPUT_NOT_FOUND = (
        "InputNotFound",
        "A ConfigMap, key, Secret or blob that the task names is not there.",
        "Create it, then create the task again.",
    )
    QUEUE_FULL = (
        "QueueFull",
        "As many tasks of this namespace and class as the class allows are already waiting.",
        "Create the task again when others have ended.",
    )
    QUEUE_TIMEOUT = (
        "QueueTimeout",
        "The task waited longer than queueTimeoutSeconds for its turn.",
        "Raise or clear spec.queueTimeoutSeconds, or create it again later.",
    )
    QUOTA_EXCEEDED = (
        "QuotaExceeded",
        "The pod alone exceeds the namespace's ResourceQuota; quota taken by others is waited for.",
        "Lower spec.resources, or have the quota raised.",
    )
    POD_REJECTED = (
        "PodRejected",
        "The API server or the node refused the pod: admission, LimitRange, Pod Security.",
        "Show the message to the cluster's administrator; the task itself may be right.",
    )
    UNSCHEDULABLE = (
        "Unschedulable",
        "No node took the pod within startTimeoutSeconds.",
        "Lower spec.resources, raise spec.startTimeoutSeconds, or have nodes added.",
    )
    IMAGE_PULL_FAILED = (
        "ImagePullFailed",
        "The class's image could not be pulled within startTimeoutSeconds.",
        "Have the administrator check the class's image and imagePullSecrets.",
    )
    START_FAILED = (
        "StartFailed",
        "The pod got a node but was not ready within startTimeoutSeconds, or the run could not start.",
        "Create the task again; if it stays, show the message to the administrator.",
    )
    ISOLATION_UNAVAILABLE = (
        "IsolationUnavailable",
        "The node lacks an isolation that the class requires, or a NetworkPolicy opens the pod; nothing ran.",
        "Remove the policy that the message names, or have the class run on nodes that can.",
    )
    INDEX_UNAVAILABLE = (
        "IndexUnavailable",
        "The package index did not answer, or the class has none.",
        "Create the task again later; if it stays, have the administrator check the class's index.",
    )
    INDEX_AUTH_FAILED = (
        "IndexAuthFailed",
        "The package index refused the class's credentials.",
        "Have the administrator renew the Secret that the class's index names.",
    )
    DEPENDENCY_NOT_FOUND = (
        "DependencyNotFound",
        "The index has no package of that name, or no such version.",
        "Check the name and version in the block; the message names them.",
    )
    NO_WHEEL_AVAILABLE = (
        "NoWheelAvailable",
        "The index has the package but no wheel for this platform and Python; nothing is ever built here.",
        "Take a version that has one, or have a wheel put into the index.",
    )
    DEPENDENCY_CONFLICT = (
        "DependencyConflict",
        "The dependencies contradict one another.",
        "Loosen the version bounds that the message names.",
    )
    HASH_MISMATCH = (
        "HashMismatch",
        "A downloaded file is not what the index says it is.",
        "Tell the administrator: the index or the way to it is damaged.",
    )
    INSTALL_TIMEOUT = (
        "InstallTimeout",
        "Resolving and installing took longer than installTimeoutSeconds.",
        "Raise spec.installTimeoutSeconds within the class's maximum, or pin versions.",
    )
    INSTALL_FAILED = (
        "InstallFailed",
        "The installation failed in another way: a damaged wheel, or more than the disk holds.",
        "Read status.result.stderr, which holds the installer's last words.",
    )
    POD_EVICTED = (
        "PodEvicted",
        "The cluster took the pod away: pressure on the node, preemption, a drain.",
        "The message says whether the script may have run; if that is harmless, create the task again.",
    )
    POD_DELETED = (
        "PodDeleted",
        "Somebody deleted the pod.",
        "The message says whether the script may have run; if that is harmless, create the task again.",
    )
    NODE_LOST = (
        "NodeLost",
        "The pod's node went away.",
        "The message says whether the script may have run; if that is harmless, create the task again.",
    )
    AGENT_LOST = (
        "AgentLost",
        "The pod's agent or supervisor ended or stopped answering.",
        "The message says whether the script may have run; if that is harmless, create the task again.",
    )
    SANDBOX_NOT_FOUND = (
        "SandboxNotFound",
        "There is no Sandbox of the name in sandboxRef in this namespace.",
        "Create it first, or correct spec.sandboxRef.name.",
    )
    SANDBOX_NOT_READY = (
        "SandboxNotReady",
        "The Sandbox named by sandboxRef did not become ready in time.",
        "Look at its status; resume it or create it again.",
    )
    CANCELLED = (
        "Cancelled",
        "spec.cancel was set; what the script wrote until then is kept.",
        "Nothing.",
    )
    INTERNAL_ERROR = (
        "InternalError",
        "Sandyard itself failed in a way it has no word for; the task will not be tried again.",
        "Report it with the message and the operator's log.",
    )
