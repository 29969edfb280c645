"""Make the runtime image's mount points, and the path file that child interpreters read.

The volumes of a pod cover the mount points; on a read-only root they must exist before.
"""

import shutil
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
SITE = Path("/usr/local/lib/python3.13/dist-packages")

for place in MOUNT_POINTS:
    Path(place).mkdir(parents=True, exist_ok=True)
SITE.mkdir(parents=True, exist_ok=True)
shutil.copyfile(sys.argv[1], SITE / "sandyard.pth")
