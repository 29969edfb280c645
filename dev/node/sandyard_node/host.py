"""What the machine must have before a node can run on it; Debian packages are installed when they are missing."""

import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Final

from sandyard_node.errors import NodeError
from sandyard_node.progress import Progress

# A file or program that shows the package is there, and Debian's name of the package.
NEEDED: Final = {
    "nft": "nftables",
    "iptables": "iptables",
    "ipset": "ipset",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "mount": "mount",
    "gcc": "gcc",
    "pkg-config": "pkg-config",
    "/usr/include/seccomp.h": "libseccomp-dev",
    "/usr/include/stdlib.h": "libc6-dev",
    "/bin/busybox": "busybox-static",
}
SYSTEM_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CAP_SYS_RESOURCE: Final = 24
CAP_SYS_ADMIN: Final = 21
USER_NAMESPACES: Final = Path("/proc/sys/user/max_user_namespaces")


def require(progress: Progress) -> None:
    """Refuse a machine that cannot run a node; install packages that are missing."""
    if platform.system() != "Linux":
        raise NodeError(
            f"a node of our own needs Linux, this is {platform.system()}.",
            fix="install Docker and kind, then run the same command",
        )
    if os.geteuid() != 0 or not has_capability(CAP_SYS_ADMIN):
        raise NodeError(
            "a node of our own needs root with CAP_SYS_ADMIN, for namespaces and mounts.",
            fix="run as root (sudo -E make cluster), or install Docker and kind",
        )
    if not USER_NAMESPACES.exists() or int(USER_NAMESPACES.read_text()) == 0:
        raise NodeError("user namespaces are off on this machine.", fix="sysctl -w user.max_user_namespaces=65536")
    _install(missing_packages(), progress)


def missing_packages() -> list[str]:
    """Return the Debian packages whose programs are not there."""
    return [package for shown_by, package in NEEDED.items() if not _there(shown_by)]


def has_capability(bit: int) -> bool:
    """Tell whether this process holds a capability."""
    status = Path("/proc/self/status").read_text()
    effective = next(line for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(effective.split()[1], 16) >> bit & 1)


def boot_id() -> str:
    """Return what changes at each boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def bind(folder: Path, target: Path) -> None:
    """Mount a folder at a second place, unless it is; mounts made below it stay below that place."""
    target.mkdir(parents=True, exist_ok=True)
    if target.samefile(folder):
        return
    for command in (
        ["--bind", str(folder), str(target)],
        ["--make-private", str(target)],
        ["--make-shared", str(target)],
    ):
        done = subprocess.run(["mount", *command], text=True, capture_output=True, check=False)
        if done.returncode != 0:
            raise NodeError(f"mount {' '.join(command)}: {done.stderr.strip()}", fix="run as root with CAP_SYS_ADMIN")


def unmount(folder: Path) -> None:
    """Take down every mount at and below a folder, the innermost first."""
    for path in reversed(mounts(folder)):
        subprocess.run(["umount", "--lazy", path], capture_output=True, check=False)  # one may take others along
    if left := mounts(folder):
        raise NodeError(f"these mounts do not go: {', '.join(left)}.", fix="umount them; then run again")


def mounts(folder: Path) -> list[str]:
    """Return the mounts at and below a folder, in the order they were made."""
    paths = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [path for path in paths if f"{path}/".startswith(f"{folder}/")]


def _there(shown_by: str) -> bool:
    if shown_by.startswith("/"):
        return Path(shown_by).exists()
    return shutil.which(shown_by, path=f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}") is not None


def _install(packages: list[str], progress: Progress) -> None:
    if not packages:
        return
    names = " ".join(packages)
    if not shutil.which("apt-get"):
        raise NodeError(
            f"programs are missing: {', '.join(s for s in NEEDED if not _there(s))}.",
            fix=f"install them; Debian calls the packages: {names}",
        )
    with progress.step(f"install {names}"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *packages]):
            done = subprocess.run(["apt-get", *command], env=environment, text=True, capture_output=True, check=False)
            if done.returncode != 0:
                raise NodeError(
                    f"apt-get {command[0]} failed: {done.stderr.strip()[-600:]}",
                    fix=f"install by hand: {names}",
                )
