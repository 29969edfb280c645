"""What PID 1 of the runner container runs: ``/usr/bin/python3.13 -I -S /opt/sandyard/runtime``.

For the image: this file and the package ``sandyard_runtime`` without its agent go to that folder, compiled, since
nothing can be written there later.
"""

import sys

from sandyard_runtime.supervisor.main import main

sys.exit(main())
