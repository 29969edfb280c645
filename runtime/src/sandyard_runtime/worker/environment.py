"""The environment of a run: an allowed few variables and the task's own, nothing of the pod's."""

import math
import os
from typing import Final

OUTPUT: Final = "/workspace/output"
FONT_LIST: Final = "/opt/sandyard/site/.matplotlib"
MATPLOTLIB: Final = "/tmp/.matplotlib"  # noqa: S108 - a mount of the runner's own
QUOTA_V2: Final = "/sys/fs/cgroup/cpu.max"
QUOTA_V1: Final = ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us")


def replace(own: dict[str, str]) -> None:
    """Replace this process's environment; the task's variables go last."""
    threads = str(processors())
    os.environ.clear()
    os.environ.update(
        {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": "/workspace",
            "LANG": "C.UTF-8",
            "TMPDIR": "/tmp",  # noqa: S108 - a mount of the runner's own
            "TZ": "UTC",
            "MPLBACKEND": "Agg",
            "MPLCONFIGDIR": MATPLOTLIB,
            # Libraries count the node's processors and would start a thread on each.
            "OMP_NUM_THREADS": threads,
            "OPENBLAS_NUM_THREADS": threads,
            "SANDYARD_OUTPUT_DIR": OUTPUT,
            **own,
        }
    )


def lend_fonts() -> None:
    """Show matplotlib the image's list of fonts, which it would otherwise make again in every run."""
    try:
        names = os.listdir(FONT_LIST)  # noqa: PTH208 - no pathlib before a run
    except OSError:
        return
    os.makedirs(MATPLOTLIB, exist_ok=True)  # noqa: PTH103
    for name in names:
        os.symlink(f"{FONT_LIST}/{name}", f"{MATPLOTLIB}/{name}")  # noqa: PTH211


def processors() -> int:
    """Return how many processors the container may use at once, at least one."""
    words = _words(QUOTA_V2) or [word for path in QUOTA_V1 for word in _words(path)]
    if len(words) == 2 and words[0].isdigit() and int(words[1]) > 0:  # noqa: PLR2004 - quota and period
        return max(1, math.ceil(int(words[0]) / int(words[1])))
    return len(os.sched_getaffinity(0))


def _words(path: str) -> list[str]:
    try:
        with open(path) as file:  # noqa: PTH123 - no pathlib before a run
            return file.read().split()
    except OSError:
        return []
