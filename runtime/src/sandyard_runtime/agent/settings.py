"""Where one agent finds and keeps its things: paths, port, identity.

In a pod all of it is fixed by ``sandyard_api.names``; tests and a local mode put the same tree below a
directory of their own. Standard library and names only; reads nothing but the environment it is given.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sandyard_api import names


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What differs between a pod and a test."""

    pod_uid: str
    root_keys: tuple[str, ...]
    root: Path = Path("/")  # every path below is taken under it
    port: int = names.AGENT_PORT
    runner_uid: int = names.RUNNER_UID
    python: str = "/usr/bin/python3.13"  # the interpreter packages are installed for
    uv: str = names.UV_BINARY
    image_site: str = names.IMAGE_SITE
    image_packages: str = names.IMAGE_PACKAGES_FILE

    def at(self, path: str) -> Path:
        """Return a pod's absolute path under this agent's root."""
        return self.root / path.lstrip("/")


def settings_from(environ: Mapping[str, str], arguments: list[str]) -> Settings:
    """Read a pod's environment; ``--name value`` arguments replace what a pod has fixed."""
    given = dict(zip(arguments[::2], arguments[1::2], strict=True))
    base = Settings(
        pod_uid=environ[names.ENV_POD_UID],
        root_keys=tuple(key for key in environ[names.ENV_ROOT_KEYS].split(",") if key),
    )
    return Settings(
        pod_uid=base.pod_uid,
        root_keys=base.root_keys,
        root=Path(given.pop("--root", base.root)),
        port=int(given.pop("--port", base.port)),
        runner_uid=int(given.pop("--runner-uid", base.runner_uid)),
        python=given.pop("--python", base.python),
        uv=given.pop("--uv", base.uv),
        image_site=given.pop("--image-site", base.image_site),
        image_packages=given.pop("--image-packages", base.image_packages),
    )
