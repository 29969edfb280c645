"""A room like a pod's runner container, on this machine: its own mounts, processes, network, and the runner's user.

Started by ``unshare`` as PID 1 of its namespaces, as root; reads its furniture as JSON from argv, puts it up and
becomes the program given, still PID 1, as the runner's user without any capability. Standard library only: it runs
in whatever Python is there.
"""

import ctypes
import fcntl
import json
import os
import socket
import stat
import struct
import sys
from pathlib import Path
from typing import Any, Final

MS_RDONLY, MS_NOSUID, MS_REMOUNT, MS_BIND, MS_REC = 1, 2, 32, 4096, 16384
CLONE_NEWUSER: Final = 0x10000000
MNT_DETACH: Final = 2
LINKS: Final = ("bin", "sbin", "lib", "lib64")
DEVICES: Final = ("null", "zero", "full", "random", "urandom")
ETC: Final = ("ld.so.cache", "localtime", "passwd", "ssl")
SIOCSIFFLAGS: Final = 0x8914
IFF_UP: Final = 1
PR_SET_NO_NEW_PRIVS: Final = 38
libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: Path, *, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount or raise OSError."""
    arguments = (source.encode(), str(target).encode(), kind.encode() or None, ctypes.c_ulong(flags), options.encode())
    if libc.mount(*arguments) != 0:
        raise OSError(ctypes.get_errno(), f"mount {source} on {target}")


def bind(source: str, target: Path, *, read_only: bool = True) -> None:
    """Show a file or a folder of the machine in the room."""
    if os.path.isdir(source):  # noqa: PTH112 - symmetrical with the strings around it
        target.mkdir(parents=True, exist_ok=True)
    elif not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    mount(source, target, flags=MS_BIND | MS_REC)
    if read_only:
        mount("", target, flags=MS_BIND | MS_REMOUNT | MS_RDONLY)


def memory(target: Path, *, size: str, mode: str = "1777") -> None:
    """Put up a memory file system."""
    target.mkdir(parents=True, exist_ok=True)
    mount("tmpfs", target, kind="tmpfs", flags=MS_NOSUID, options=f"size={size},mode={mode}")


def loopback_up() -> None:
    """Bring the network namespace's loopback up, as it is in a pod."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def furnish(root: Path, plan: dict[str, Any]) -> None:
    """Build the room's tree."""
    memory(root, size="16m", mode="755")
    (root / "usr").mkdir()
    mount("overlay", root / "usr", kind="overlay", flags=MS_RDONLY, options=f"lowerdir={plan['usr']}")
    for name in LINKS:
        (root / name).symlink_to(f"usr/{name}")
    for name in ETC:
        if Path("/etc", name).exists():
            bind(str(Path("/etc", name).resolve()), root / "etc" / name)
    (root / "proc").mkdir()
    mount("proc", root / "proc", kind="proc")
    (root / "sys").mkdir()
    mount("sysfs", root / "sys", kind="sysfs", flags=MS_RDONLY)
    memory(root / "sys/fs/cgroup", size="1m")
    for name in DEVICES:
        bind(f"/dev/{name}", root / "dev" / name, read_only=False)
    (root / "dev/fd").symlink_to("/proc/self/fd")
    for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        (root / "dev" / name).symlink_to(f"/proc/self/fd/{number}")
    (root / "dev/termination-log").touch()
    (root / "dev/termination-log").chmod(0o666)
    for name in ("dev/mqueue", "var/tmp"):
        (root / name).mkdir(parents=True)
        (root / name).chmod(0o1777)
    for source, target in plan["binds"]:
        bind(source, root / target.lstrip("/"))
    for name in ("workspace", "tmp", "dev/shm"):
        memory(root / name, size=plan["volumeSize"])


def enter_user_namespace() -> None:
    """Go into a user namespace whose maps a child that stays outside writes; every id keeps its number."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(reader, 1)
        for name in ("uid_map", "gid_map"):
            Path("/proc/1", name).write_text("0 0 65536")
        os._exit(0)
    if libc.unshare(CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    os.write(writer, b"g")
    if os.waitpid(child, 0)[1] != 0:
        raise OSError("the maps of the user namespace could not be written")
    os.close(reader)
    os.close(writer)


def enter(root: Path, plan: dict[str, Any]) -> None:
    """Make the tree the root, and become the runner's user without any capability."""
    mount(str(root), root, flags=MS_BIND | MS_REC)
    os.chdir(root)
    (root / "old").mkdir()
    if libc.pivot_root(b".", b"old") != 0:
        raise OSError(ctypes.get_errno(), "pivot_root")
    os.chdir("/")
    if libc.umount2(b"old", MNT_DETACH) != 0:
        raise OSError(ctypes.get_errno(), "umount")
    Path("/old").rmdir()
    for descriptor in range(3):
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):  # as runc does
            os.fchown(descriptor, plan["uid"], plan["uid"])
    if plan["userNamespace"]:
        enter_user_namespace()
    os.setgroups([])
    os.setresgid(plan["uid"], plan["uid"], plan["uid"])
    os.setresuid(plan["uid"], plan["uid"], plan["uid"])
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def main() -> None:
    """Furnish, enter, and become the program."""
    plan = json.loads(sys.argv[1])
    root = Path(plan["root"])
    for cgroup in plan["cgroups"]:
        Path(cgroup, "cgroup.procs").write_text("0")
    loopback_up()
    furnish(root, plan)
    enter(root, plan)
    os.execve(plan["command"][0], plan["command"], plan["environment"])  # noqa: S606 - a test's own program


if __name__ == "__main__":
    main()
