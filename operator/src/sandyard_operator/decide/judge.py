"""Whether a task may run at all, before anything is made for it.

In this order: the class and its namespaces, what the class allows, sizes, the inputs named elsewhere, the
script's own block, the image's Python. Pure and linear in the size of the script.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sandyard_api.limits import ENV_BYTES
from sandyard_api.pep723 import (
    ScriptError,
    ScriptMetadata,
    decode,
    python_satisfies,
    read_script,
    script_block,
)
from sandyard_api.quantity import parse
from sandyard_api.reasons import Reason
from sandyard_api.requirements import check_allowed
from sandyard_api.sandbox_class import SandboxClass
from sandyard_api.task import SandboxTask, TaskSpec
from sandyard_operator.decide import terms
from sandyard_operator.decide.bundle import script, standard_input
from sandyard_operator.decide.egress import refused_egress
from sandyard_operator.decide.ends import DID_NOT_RUN, End, python_unsatisfied
from sandyard_operator.decide.inputs import Inputs, blob_fields, references, secret
from sandyard_operator.decide.learn import known_python
from sandyard_operator.decide.select import selects


@dataclass(frozen=True, slots=True)
class NeedsNamespace:
    """The class selects namespaces and their labels are not known yet."""


@dataclass(frozen=True, slots=True)
class NeedsInputs:
    """All is well so far; what the task names elsewhere has to be read."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """The task ends here."""

    end: End


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The task may run; what its run needs to know."""

    requirements: tuple[str, ...]
    requires_python: str
    warnings: tuple[str, ...]
    code_sha256: str
    class_generation: int
    image: str
    install_timeout_seconds: int


Verdict: TypeAlias = NeedsNamespace | NeedsInputs | Rejected | Accepted


def judge(
    task: SandboxTask,
    sandbox_class: SandboxClass | None,
    *,
    labels: Mapping[str, str] | None,
    inputs: Inputs | None,
) -> Verdict:
    """Judge a task; ``labels`` are its namespace's, ``inputs`` the values read for it, None if not yet."""
    if sandbox_class is None:
        return _reject(Reason.CLASS_NOT_FOUND, f"There is no SandboxClass {task.spec.sandbox_class_name!r}.")
    selector = sandbox_class.spec.allowed_namespaces
    if selector is not None:
        if labels is None:
            return NeedsNamespace()
        if not selects(selector, labels):
            return _not_allowed(f"class {sandbox_class.metadata.name} is not for namespace {task.metadata.namespace}")
    refusal = (
        _refused_by_class(task.spec, sandbox_class) or _too_large(task.spec, sandbox_class, {}) or _blobs(task.spec)
    )
    if refusal is not None:
        return refusal
    needed = references(task.spec)
    if needed and inputs is None:
        return NeedsInputs()
    return _judge_contents(task, sandbox_class, inputs or {})


def _judge_contents(task: SandboxTask, sandbox_class: SandboxClass, inputs: Inputs) -> Verdict:
    refusal = _missing(task.spec, inputs) or _too_large(task.spec, sandbox_class, inputs)
    if refusal is not None:
        return refusal
    code = script(task.spec, inputs)
    try:
        declared = _declared(code, sandbox_class)
    except ScriptError as error:
        return _reject(error.reason, f"{error}.")
    if task.spec.sandbox_ref is not None:
        return _sandbox(task.spec.sandbox_ref.name, code)
    python = known_python(sandbox_class)
    if python and not python_satisfies(declared.requires_python, python):
        return Rejected(python_unsatisfied(declared.requires_python or "", python))
    return Accepted(
        requirements=declared.dependencies,
        requires_python=declared.requires_python or "",
        warnings=declared.warnings,
        code_sha256=hashlib.sha256(code).hexdigest(),
        class_generation=sandbox_class.metadata.generation,
        image=sandbox_class.spec.image,
        install_timeout_seconds=terms.install_seconds(task.spec, sandbox_class),
    )


def _declared(code: bytes, sandbox_class: SandboxClass) -> ScriptMetadata:
    """Read the script's block and hold it against the class's rules."""
    spec = sandbox_class.spec
    declared = read_script(
        code, max_metadata_bytes=spec.limits.metadata_bytes, max_dependencies=spec.dependencies.max_items
    )
    check_allowed(
        declared.dependencies,
        allow=spec.dependencies.allow,
        deny=spec.dependencies.deny,
        require_hashes=spec.dependencies.require_hashes,
    )
    return declared


def _refused_by_class(spec: TaskSpec, sandbox_class: SandboxClass) -> Rejected | None:
    """Resources, timeouts, egress and secrets: NotAllowed."""
    over = _resources_over(spec, sandbox_class) or _timeouts_over(spec, sandbox_class)
    if over:
        return _not_allowed(over)
    if spec.network is not None:
        egress = refused_egress(spec.network, sandbox_class.spec.network.allowed_egress)
        if egress:
            return _not_allowed(f"spec.{egress}")
    if not sandbox_class.spec.allow_secret_env:
        for index, variable in enumerate(spec.env):
            if variable.value_from is not None:
                return _not_allowed(f"spec.env[{index}]: the class does not allow values from Secrets (allowSecretEnv)")
    return None


def _resources_over(spec: TaskSpec, sandbox_class: SandboxClass) -> str:
    given = sandbox_class.spec.resources
    effective = terms.amounts(spec, sandbox_class)
    for name, limit in effective.limits.items():
        most = given.max.get(name) or given.default.limits.get(name) or limit
        request = effective.requests.get(name, "0")
        if parse(limit) > parse(most):
            return f"spec.resources.limits.{name}: {limit} is above the class's maximum of {most}"
        if parse(request) > parse(limit):
            return f"spec.resources.requests.{name}: {request} is above the limit of {limit}"
    return ""


def _timeouts_over(spec: TaskSpec, sandbox_class: SandboxClass) -> str:
    given = sandbox_class.spec.timeouts
    if (spec.run_timeout_seconds or 0) > given.max_run_seconds:
        return f"spec.runTimeoutSeconds: at most {given.max_run_seconds} in this class"
    if (spec.install_timeout_seconds or 0) > given.max_install_seconds:
        return f"spec.installTimeoutSeconds: at most {given.max_install_seconds} in this class"
    return ""


def _too_large(spec: TaskSpec, sandbox_class: SandboxClass, inputs: Inputs) -> Rejected | None:
    """Check sizes in bytes; what was not read yet counts as empty."""
    limits = sandbox_class.spec.limits
    code, stdin = len(script(spec, inputs)), len(standard_input(spec, inputs))
    env = sum(len(v.name.encode()) + len((v.value or "").encode()) for v in spec.env) + sum(
        len(inputs.get(secret(v.value_from.secret_key_ref)) or b"") for v in spec.env if v.value_from is not None
    )
    for what, size, most in (
        ("The script", code, limits.code_bytes),
        ("Standard input", stdin, limits.stdin_bytes),
        ("spec.env, names and values together,", env, ENV_BYTES),
    ):
        if size > most:
            return _reject(Reason.LIMIT_EXCEEDED, f"{what} is {size} bytes; at most {most} are allowed.")
    return None


def _blobs(spec: TaskSpec) -> Rejected | None:
    for field in blob_fields(spec):
        return _reject(Reason.INPUT_NOT_FOUND, f"{field}: no such blob; put it through the data API first.")
    return None


def _missing(spec: TaskSpec, inputs: Inputs) -> Rejected | None:
    for field, reference in references(spec).items():
        if inputs.get(reference) is None:
            return _reject(Reason.INPUT_NOT_FOUND, f"{field}: {reference} is not there, or may not be read.")
    for index, variable in enumerate(spec.env):
        if variable.value_from is not None:
            value = inputs.get(secret(variable.value_from.secret_key_ref)) or b""
            if b"\0" in value or not _is_utf8(value):
                return _reject(
                    Reason.NOT_ALLOWED,
                    f"spec.env[{index}]: the Secret's value is not UTF-8 text, or holds a NUL.",
                )
    return None


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _sandbox(name: str, code: bytes) -> Rejected:
    if script_block(decode(code)) is not None:
        return _not_allowed("a PEP 723 block beside spec.sandboxRef: install into the Sandbox instead")
    return _reject(Reason.SANDBOX_NOT_FOUND, f"There is no Sandbox {name!r} in this namespace.")


def _not_allowed(what: str) -> Rejected:
    return _reject(Reason.NOT_ALLOWED, f"Not allowed: {what}.")


def _reject(reason: Reason, message: str) -> Rejected:
    return Rejected(End(reason, f"{message} {DID_NOT_RUN}"))
