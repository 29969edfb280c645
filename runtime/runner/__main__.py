"""What ``/usr/bin/python3.13 -I -S /opt/sandyard/runtime`` runs: the images install this file beside the package."""

import sys

from sandyard_runtime.supervisor.main import main

sys.exit(main())
