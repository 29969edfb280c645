"""Make the runtime image's mount points, the path file for child interpreters, and matplotlib's list of fonts.

The volumes of a pod cover the mount points; on a read-only root they must exist before.
"""

import shutil
import subprocess
import sys
from pathlib import Path

MOUNT_POINTS = (
    "/sandyard/control",
    "/sandyard/packages",
    "/sandyard/state",
    "/sandyard/secret",
    "/sandyard/tls",
    "/workspace",
)
PATH_FILE = Path("/usr/local/lib/python3.13/dist-packages/sandyard.pth")
FONT_LIST = Path("/opt/sandyard/site/.matplotlib")  # what MPLCONFIGDIR holds after a first import

for place in MOUNT_POINTS:
    Path(place).mkdir(parents=True, exist_ok=True)
PATH_FILE.parent.mkdir(parents=True, exist_ok=True)
shutil.copyfile(sys.argv[1], PATH_FILE)

FONT_LIST.mkdir()
command = [sys.executable, "-c", "import matplotlib.font_manager"]
subprocess.run(command, env={"MPLCONFIGDIR": str(FONT_LIST)}, check=True)  # noqa: S603 - our own arguments
for leftover in FONT_LIST.glob("*.lock"):
    leftover.unlink()
