"""What one run of a cluster leaves on disk, and how it is removed when nothing of the cluster runs any more.

Certificates, logs and imported images are not among it: the next run uses them.
"""

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from sandyard_node import host
from sandyard_node.settings import MAX_NODES, Settings

OF_THE_CLUSTER: Final = ("etcd", "volumes", "proof", "boot", "image.tar")
OF_A_NODE: Final = (
    "kubelet",
    "containerd-state",
    "containerd.sock",
    "containerd.sock.ttrpc",
    "cni-addresses",
    "runc",
    "pod-logs",
)
SHIM_RECORDS: Final = "containerd-state/io.containerd.runtime.v2.task/*/*/bootstrap.json"


def forget_shims(settings: Settings) -> None:
    """Remove the sockets that shims keep outside the state folder and leave when they are killed."""
    for number in range(1, MAX_NODES + 1):
        for file in settings.node(number).folder.glob(SHIM_RECORDS):
            with suppress(ValueError):  # it was being written
                address = str(json.loads(file.read_text())["address"])
                Path(address.removeprefix("unix://")).unlink(missing_ok=True)


def wipe(settings: Settings) -> None:
    """Take down the mounts, then remove what is worthless without its processes."""
    for place in (settings.mount, settings.state):
        host.unmount(place)
    with suppress(FileNotFoundError):
        settings.mount.rmdir()
    for name in OF_THE_CLUSTER:
        _remove(settings.state / name)
    for number in range(1, MAX_NODES + 1):
        for name in OF_A_NODE:
            _remove(settings.state / f"node{number}" / name)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
