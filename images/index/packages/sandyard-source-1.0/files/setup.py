"""Leave a canary wherever this is run: a build must never happen."""

from pathlib import Path

from setuptools import setup

for folder in ("/tmp", "/workspace", "/sandyard/packages", "/sandyard/state"):  # noqa: S108
    try:
        Path(folder, "sandyard-canary").touch()
    except OSError:
        continue
setup(name="sandyard-source", version="1.0", py_modules=["sandyard_source"])
