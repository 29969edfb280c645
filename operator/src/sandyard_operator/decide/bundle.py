"""What a run gets: code, standard input, files, arguments and variables, put together into a bundle."""

from sandyard_api.sandbox_class import SandboxClass
from sandyard_api.task import SandboxTask, TaskSpec
from sandyard_api.wire import Bundle, BundleManifest, EnvVar, PartKind, RunLimits, part_of
from sandyard_operator.decide.inputs import Inputs, config_map, secret
from sandyard_operator.decide.terms import disk_bytes, wants_egress


def assemble(task: SandboxTask, sandbox_class: SandboxClass, inputs: Inputs, *, salt: str) -> Bundle:
    """Make the bundle of an accepted task, of which every input was read."""
    spec = task.spec
    blobs = [script(spec, inputs), standard_input(spec, inputs)]
    parts = [part_of(PartKind.CODE, blobs[0]), part_of(PartKind.STDIN, blobs[1])]
    for file in spec.files:
        if file.config_map_key_ref is not None:
            blob = inputs.get(config_map(file.config_map_key_ref)) or b""
            blobs.append(blob)
            parts.append(part_of(PartKind.FILE, blob, path=file.path))
    manifest = BundleManifest(
        salt=salt,
        args=spec.args,
        env=environment(spec, inputs),
        limits=_limits(spec, sandbox_class),
        egress=wants_egress(spec),
        parts=tuple(parts),
    )
    return Bundle(manifest, tuple(blobs))


def script(spec: TaskSpec, inputs: Inputs) -> bytes:
    """Return the script's bytes."""
    if spec.code_from is not None:
        return inputs.get(config_map(spec.code_from.config_map_key_ref)) or b""
    return (spec.code or "").encode()


def standard_input(spec: TaskSpec, inputs: Inputs) -> bytes:
    """Return the bytes of standard input."""
    if spec.stdin_from is not None and spec.stdin_from.config_map_key_ref is not None:
        return inputs.get(config_map(spec.stdin_from.config_map_key_ref)) or b""
    return (spec.stdin or "").encode()


def environment(spec: TaskSpec, inputs: Inputs) -> tuple[EnvVar, ...]:
    """Return the variables; those from Secrets are marked for redaction."""
    variables = []
    for variable in spec.env:
        if variable.value_from is None:
            variables.append(EnvVar(name=variable.name, value=variable.value or ""))
        else:
            value = inputs.get(secret(variable.value_from.secret_key_ref)) or b""
            variables.append(EnvVar(name=variable.name, value=value.decode(), secret=True))
    return tuple(variables)


def _limits(spec: TaskSpec, sandbox_class: SandboxClass) -> RunLimits:
    limits = sandbox_class.spec.limits
    return RunLimits(
        stdout_bytes=limits.stdout_bytes,
        stderr_bytes=limits.stderr_bytes,
        artifact_bytes=limits.artifact_bytes,
        disk_bytes=disk_bytes(spec, sandbox_class),
        open_files=limits.open_files,
        processes=limits.processes,
    )
