"""SandboxTask: run one script once, in a pod that nobody used before."""

import re
from enum import StrEnum
from typing import Annotated, Final, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from sandyard_api.conditions import Metadata
from sandyard_api.fields import BlobRef, ClassName, KeyRef, LocalRef, PositiveSeconds, Seconds
from sandyard_api.inputs import Env, Files, one_of
from sandyard_api.limits import (
    CODE_FIELD_BYTES,
    MAX_ARGUMENT_CHARACTERS,
    MAX_FIELD_COUNT,
    STDIN_FIELD_BYTES,
)
from sandyard_api.network import Network
from sandyard_api.resources import Resources
from sandyard_api.schema import Rule, SpecModel, StatusModel, immutable, rules, unchanged
from sandyard_api.task_status import TaskStatus

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")  # all but tab, LF, FF, CR
_FIXED: Final = (
    "code",
    "codeFrom",
    "stdin",
    "stdinFrom",
    "files",
    "args",
    "env",
    "sandboxClassName",
    "sandboxRef",
    "resources",
    "network",
    "queueTimeoutSeconds",
    "startTimeoutSeconds",
    "installTimeoutSeconds",
    "runTimeoutSeconds",
    "retryPolicy",
)


class RetryPolicy(StrEnum):
    """Whether another pod is tried after a failure of the infrastructure."""

    NEVER = "Never"
    ON_INFRASTRUCTURE_FAILURE = "OnInfrastructureFailure"


class CodeSource(SpecModel):
    """Where the script comes from."""

    config_map_key_ref: KeyRef = Field(description="A key of a ConfigMap in the same namespace.")


class StdinSource(SpecModel):
    """Where standard input comes from."""

    model_config = ConfigDict(json_schema_extra=rules(one_of("configMapKeyRef", "blobRef")))

    config_map_key_ref: KeyRef | None = Field(default=None, description="A key of a ConfigMap in the same namespace.")
    blob_ref: BlobRef | None = Field(default=None, description="A blob put through the data API.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.config_map_key_ref is None) == (self.blob_ref is None):
            raise ValueError("set exactly one of configMapKeyRef and blobRef")
        return self


class TaskSpec(SpecModel):
    """What to run. It does not change after creation, but for cancel and ttlSecondsAfterFinished."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            one_of("code", "codeFrom"),
            Rule(
                "!has(self.stdin) || !has(self.stdinFrom)",
                "set at most one of stdin and stdinFrom",
                "stdinFrom",
            ),
            *immutable(_FIXED),
            Rule("!oldSelf.cancel || self.cancel", "cancel cannot be taken back", "cancel"),
        )
    )

    code: str | None = Field(
        default=None,
        min_length=1,
        max_length=CODE_FIELD_BYTES,
        json_schema_extra=rules(
            Rule(
                f"size(bytes(self)) <= {CODE_FIELD_BYTES}",
                f"code is at most {CODE_FIELD_BYTES} bytes of UTF-8",
            ),
            Rule(
                r"!self.matches('[\\x00-\\x08\\x0b\\x0e-\\x1f\\x7f]')",
                "code must not hold control characters but tab, line feed, form feed and carriage return",
            ),
        ),
        description="The script, up to 256 KiB of UTF-8. It may carry one PEP 723 `script` block with its "
        "dependencies.",
    )
    code_from: CodeSource | None = Field(default=None, description="Where the script comes from instead.")
    stdin: str | None = Field(
        default=None,
        max_length=STDIN_FIELD_BYTES,
        json_schema_extra=rules(
            Rule(
                f"size(bytes(self)) <= {STDIN_FIELD_BYTES}",
                f"stdin is at most {STDIN_FIELD_BYTES} bytes of UTF-8",
            )
        ),
        description="Standard input, up to 128 KiB; empty by default.",
    )
    stdin_from: StdinSource | None = Field(
        default=None, description="Where standard input comes from instead, up to the class's stdinBytes."
    )
    files: Files = Field(default=(), description="Files placed below /workspace before the start.")
    args: Annotated[
        tuple[Annotated[str, Field(max_length=MAX_ARGUMENT_CHARACTERS)], ...],
        Field(max_length=MAX_FIELD_COUNT),
    ] = Field(default=(), description="Arguments of the script: sys.argv[1:].")
    env: Env = Field(default=(), description="Environment variables of the script.")
    sandbox_class_name: ClassName = Field(
        default="default", description="The SandboxClass that sets image, index and limits."
    )
    sandbox_ref: LocalRef | None = Field(
        default=None,
        description="Run inside this session's interpreter instead of a fresh pod; the script then has no "
        "PEP 723 block.",
    )
    resources: Resources | None = Field(
        default=None, description="Resources of the script; the class's where absent, within its maximum."
    )
    network: Network | None = Field(
        default=None, description="What the script may reach; nothing by default. Only what the class allows."
    )
    queue_timeout_seconds: Seconds = Field(
        default=0, description="How long to wait for a turn before QueueTimeout; 0 waits for ever."
    )
    start_timeout_seconds: PositiveSeconds = Field(
        default=300, description="How long a pod may take from its creation until its agent is ready."
    )
    install_timeout_seconds: PositiveSeconds | None = Field(
        default=None, description="How long the install may take; the class's (180) where absent."
    )
    run_timeout_seconds: PositiveSeconds | None = Field(
        default=None, description="How long the script may run; the class's (60) where absent."
    )
    retry_policy: RetryPolicy = Field(
        default=RetryPolicy.NEVER,
        description="Whether another pod is tried after a failure of the infrastructure. A script that may "
        "have started is never started again.",
    )
    ttl_seconds_after_finished: Seconds | None = Field(
        default=None,
        description="When the finished task goes away by itself; the class's (86400) where absent.",
    )
    cancel: bool = Field(default=False, description="Stop the script and keep the record. Cannot be taken back.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.code is None) == (self.code_from is None):
            raise ValueError("set exactly one of code and codeFrom")
        if self.stdin is not None and self.stdin_from is not None:
            raise ValueError("set at most one of stdin and stdinFrom")
        if self.code is not None and len(self.code.encode()) > CODE_FIELD_BYTES:
            raise ValueError(f"code is at most {CODE_FIELD_BYTES} bytes of UTF-8")
        if self.code is not None and _CONTROL.search(self.code):
            raise ValueError("code must not hold control characters")
        if self.stdin is not None and len(self.stdin.encode()) > STDIN_FIELD_BYTES:
            raise ValueError(f"stdin is at most {STDIN_FIELD_BYTES} bytes of UTF-8")
        return self


_FINISHED: Final = (
    "has(oldSelf.status) && has(oldSelf.status.conditions) && "
    "oldSelf.status.conditions.exists(c, c.type == 'Finished' && c.status == 'True')"
)


def _final(field: str) -> Rule:
    """Return the rule that a field of the status is frozen with the end."""
    same = unchanged(field).replace("self.", "self.status.").replace("oldSelf.", "oldSelf.status.")
    return Rule(f"!({_FINISHED}) || (has(self.status) && {same})", f"a finished task keeps its {field}", "status")


class SandboxTask(StatusModel):
    """One script, run once in a pod that nobody used before."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "!has(oldSelf.status) || !has(oldSelf.status.run) || "
                "(has(self.status) && has(self.status.run) && self.status.run == oldSelf.status.run)",
                "status.run never changes once set",
                "status",
            ),
            Rule(
                f"!({_FINISHED}) || (has(self.status) && has(self.status.conditions) && self.status"
                ".conditions.exists(c, c.type == 'Finished' && oldSelf.status.conditions.exists(o, o == c)))",
                "a true Finished condition never changes",
                "status",
            ),
            *(_final(field) for field in ("phase", "reason", "message", "completionTime", "result")),
        )
    )

    api_version: Literal["sandyard.dev/v1alpha1"] = "sandyard.dev/v1alpha1"
    kind: Literal["SandboxTask"] = "SandboxTask"
    metadata: Metadata
    spec: TaskSpec = Field(description="What to run.")
    status: TaskStatus | None = Field(default=None, description="What became of it.")
