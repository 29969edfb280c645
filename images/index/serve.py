"""Serve /srv/packages as a private package index: pypiserver behind a password, listing and download alike.

INDEX_USERNAME and INDEX_PASSWORD come from the environment. Nothing is written, nothing is looked up elsewhere.
One package is linked under a wrong hash on purpose.
"""

import hmac
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pypiserver
import waitress
from pypiserver.backend import BackendProxy, SimpleFileBackend
from pypiserver.core import PkgFile

PACKAGES = Path("/srv/packages")
PORT = 8080
THREADS = 8  # uv downloads that many at once
MISLINKED = "sandyard-mislinked"
WRONG_DIGEST = "sha256=" + 64 * "0"


class FixedPackages(SimpleFileBackend):
    """Packages that never change while they are served."""

    @cache  # noqa: B019 - one backend lives as long as the process
    def get_all_packages(self) -> Iterable[PkgFile]:
        """List them once."""
        return tuple(super().get_all_packages())

    @cache  # noqa: B019
    def digest(self, package: PkgFile) -> str | None:
        """Return a file's hash as its link carries it."""
        if package.pkgname_norm == MISLINKED:
            return WRONG_DIGEST
        digest: str | None = super().digest(package)
        return digest


def main() -> None:
    """Serve until stopped."""
    expected = f"{os.environ['INDEX_USERNAME']}\0{os.environ['INDEX_PASSWORD']}".encode()
    config = pypiserver.Config.default_with_overrides(
        roots=[PACKAGES],
        authenticate=["download", "list", "update"],
        auther=lambda user, password: hmac.compare_digest(f"{user}\0{password}".encode(), expected),
        disable_fallback=True,
        hash_algo="sha256",
    )
    config.backend = BackendProxy(FixedPackages(config))
    application = pypiserver.setup_routes_from_config(pypiserver.app_from_config(config), config)
    waitress.serve(application, host="0.0.0.0", port=PORT, threads=THREADS, ident=None)  # noqa: S104 - in a pod


if __name__ == "__main__":
    main()
