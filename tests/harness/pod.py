"""An agent with a scripted supervisor that is ready, as install and run tests need it."""

import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.agent import AgentProcess
from harness.index import Index
from harness.peer import Peer
from sandyard_api import names, wire

MEGABYTE: Final = 1024 * 1024


@dataclass
class Pod:
    """An agent whose supervisor is ready."""

    agent: AgentProcess

    @property
    def site(self) -> Path:
        """Where packages are published."""
        return self.agent.at(names.PACKAGES_SITE)

    def install(self, request: wire.InstallRequest) -> dict[str, Any]:
        """Install and wait for the end; checks what must hold after every install."""
        answer = self.agent.call("POST", wire.PATH_INSTALL, request)
        assert answer.status == 200, answer.body
        status: dict[str, Any] = answer.json()
        while status["phase"] == "running":
            status = self.agent.call("GET", f"{wire.PATH_INSTALL}?wait=25").json()
        assert status["installerGone"]
        assert not (self.agent.at(names.PACKAGES_DIR) / ".staging").exists()
        assert list(self.agent.at(names.AGENT_SECRET_DIR).iterdir()) == []
        assert status["phase"] == "succeeded" or not self.site.exists()
        return status


@dataclass
class ScriptedPod(Pod):
    """Its supervisor is a script of the test's."""

    peer: Peer


def installer_options() -> tuple[str, ...]:
    """Have an agent install for this interpreter."""
    python = str(Path(sys.executable).resolve())
    return ("--uv", str(Path(sys.executable).with_name("uv")), "--python", python)


@contextmanager
def ready_pod(root: Path, *, options: tuple[str, ...] = (), small: str = "") -> Iterator[ScriptedPod]:
    """Run an agent with a scripted supervisor that is ready."""
    fixed = (*installer_options(), *options)
    with AgentProcess(root, options=fixed, small=small) as agent, Peer(agent.at(names.CONTROL_SOCKET)) as peer:
        peer.ready(python=platform.python_version())
        yield ScriptedPod(agent, peer)


def ask(index: Index, *requirements: str, access: dict[str, str] | None = None, **changes: Any) -> wire.InstallRequest:
    """Ask for requirements from that index."""
    where = {"url": index.url, "netrc": index.netrc()} | (access or {})
    fields = {"timeout_seconds": 60, "max_bytes": 64 * MEGABYTE} | changes
    return wire.InstallRequest(requirements=requirements, index=wire.IndexAccess(**where), **fields)
