"""Make the runtime image's mount points, the path file for child interpreters, and matplotlib's list of fonts.

The volumes of a pod cover the mount points; on a read-only root they must exist before.
"""

import json
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
for path in FONT_LIST.iterdir():
    if path.suffix == ".json":  # in the folders' order otherwise, which is another each time
        fonts = json.loads(path.read_text())
        for kind in ("afmlist", "ttflist"):
            fonts[kind].sort(key=lambda font: font["fname"])
        path.write_text(json.dumps(fonts, indent=2))
    else:
        path.unlink()
