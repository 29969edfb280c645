"""A pod's volumes, who mounts which, and how large each may grow.

The supervisor and the agent end what passes its own limit; the kubelet's limits here sit above theirs, since its
eviction takes the agent and the result along. Pure.
"""

from dataclasses import dataclass
from typing import Any, Final

from sandyard_api import names
from sandyard_api.class_limits import ByteLimits
from sandyard_api.limits import CODE_BYTES, CONFIG_MAP_BYTES, MAX_FIELD_COUNT, MIB

MEMORY_BYTES: Final = MIB  # one socket, or one netrc
SLACK: Final = 2  # the kubelet's limit over ours
INSTALL_SLACK: Final = 3  # wheels, what is unpacked of them, and what was there before
STATE_BYTES: Final = 16 * MIB  # records and logs of the agent beside what is counted
AGENT_TMP_BYTES: Final = 64 * MIB
SHM_SHARE: Final = 2  # half of the memory, as Linux gives by default

AGENT: Final = names.CONTAINER_AGENT
RUNNER: Final = names.CONTAINER_RUNNER


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """One volume; ``mounts`` are container, path and whether it is read-only there."""

    name: str
    source: dict[str, Any]
    mounts: tuple[tuple[str, str, bool], ...]

    def render(self) -> dict[str, Any]:
        """Return it as a pod has it."""
        return {"name": self.name, **self.source}


def state_bytes(limits: ByteLimits) -> int:
    """Return how much the agent keeps: inputs, both streams, artifacts."""
    inputs = limits.stdin_bytes + CODE_BYTES + MAX_FIELD_COUNT * CONFIG_MAP_BYTES
    return inputs + limits.stdout_bytes + limits.stderr_bytes + limits.artifact_bytes + STATE_BYTES


def agent_disk_bytes(limits: ByteLimits, disk: int) -> int:
    """Return the agent container's limit of ephemeral storage."""
    return SLACK * state_bytes(limits) + INSTALL_SLACK * disk + SLACK * AGENT_TMP_BYTES


def volumes(*, limits: ByteLimits, disk: int, memory: int) -> tuple[Volume, ...]:
    """Return the volumes of a pod whose runner may fill ``disk`` and ``memory`` bytes."""
    return (
        Volume(
            name="control",
            source=_memory(MEMORY_BYTES),
            mounts=((AGENT, names.CONTROL_DIR, False), (RUNNER, names.CONTROL_DIR, True)),
        ),
        Volume(
            name="packages",
            source=_disk(INSTALL_SLACK * disk),
            mounts=((AGENT, names.PACKAGES_DIR, False), (RUNNER, names.PACKAGES_DIR, True)),
        ),
        Volume(
            name="agent-state",
            source=_disk(SLACK * state_bytes(limits)),
            mounts=((AGENT, names.AGENT_STATE_DIR, False),),
        ),
        Volume(
            name="agent-secret",
            source=_memory(MEMORY_BYTES),
            mounts=((AGENT, names.AGENT_SECRET_DIR, False),),
        ),
        Volume(
            name="agent-tls",
            source={"secret": {"secretName": names.SECRET_AGENT_TLS}},
            mounts=((AGENT, names.AGENT_TLS_DIR, True),),
        ),
        Volume(
            name="agent-tmp",
            source=_disk(SLACK * AGENT_TMP_BYTES),
            mounts=((AGENT, names.TMP_DIR, False),),
        ),
        Volume(name="workspace", source=_disk(SLACK * disk), mounts=((RUNNER, names.WORKSPACE_DIR, False),)),
        Volume(name="tmp", source=_disk(SLACK * disk), mounts=((RUNNER, names.TMP_DIR, False),)),
        Volume(name="shm", source=_memory(memory // SHM_SHARE), mounts=((RUNNER, names.SHM_DIR, False),)),
    )


def mounts(every: tuple[Volume, ...], container: str) -> list[dict[str, Any]]:
    """Return the mounts of one container."""
    return [
        {"name": volume.name, "mountPath": path, **({"readOnly": True} if read_only else {})}
        for volume in every
        for owner, path, read_only in volume.mounts
        if owner == container
    ]


def _disk(size: int) -> dict[str, Any]:
    return {"emptyDir": {"sizeLimit": str(size)}}


def _memory(size: int) -> dict[str, Any]:
    return {"emptyDir": {"medium": "Memory", "sizeLimit": str(size)}}
