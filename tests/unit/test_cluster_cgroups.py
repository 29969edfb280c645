"""Every process of a cluster is found by its cgroup, with either version of cgroups."""

from pathlib import Path

import pytest

from sandyard_node.cgroups import Cgroup
from sandyard_node.errors import NodeError

V2 = "29 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
HYBRID = (
    "30 22 0:27 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"
    "31 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "32 30 0:29 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
    "33 30 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)


def test_version_2_has_one_hierarchy() -> None:
    assert Cgroup.find("c", V2).roots == (Path("/sys/fs/cgroup"),)


def test_processes_of_version_1_are_counted_by_the_pids_controller() -> None:
    found = Cgroup.find("c", HYBRID)
    assert found.folder == Path("/sys/fs/cgroup/pids/c")
    assert set(found.roots) == {Path(f"/sys/fs/cgroup/{name}") for name in ("pids", "cpu,cpuacct", "unified")}


def test_a_machine_without_cgroups_is_refused() -> None:
    with pytest.raises(NodeError, match="no cgroup hierarchy"):
        Cgroup.find("c", "30 22 0:27 / / rw - ext4 /dev/vda rw\n")


def test_a_cpuset_starts_with_what_its_parent_has(tmp_path: Path) -> None:
    for name in ("cpuset.cpus", "cpuset.mems"):
        (tmp_path / name).write_text("0-1")
        (tmp_path / "a").mkdir(exist_ok=True)
        (tmp_path / "a" / name).write_text("\n")  # as the kernel makes it
    Cgroup("a", (tmp_path,)).make()
    assert (tmp_path / "a" / "cpuset.cpus").read_text() == "0-1"
    assert (tmp_path / "a" / "cpuset.mems").read_text() == "0-1"


def test_processes_below_count_and_a_missing_cgroup_has_none(tmp_path: Path) -> None:
    group = Cgroup("a", (tmp_path,))
    assert group.all_pids() == []
    group.child("b/c").make()
    (tmp_path / "a" / "cgroup.procs").write_text("1\n")
    (tmp_path / "a" / "b" / "c" / "cgroup.procs").write_text("2\n3\n")
    assert group.pids() == [1]
    assert group.all_pids() == [1, 2, 3]
