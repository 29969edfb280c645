"""The agent put together: record, supervisor, run, install and door, and its end.

Told to stop, it goes on serving until the result it holds is acknowledged, or until it is killed.
"""

import asyncio
import json
import logging
import signal
import socket
import ssl
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from sandyard_api import names, tokens
from sandyard_api.wire import (
    AgentStatus,
    ErrorCode,
    InstallRequest,
    InstallStatus,
    Package,
    ProbeReply,
    ProbeRequest,
    RequirementsReply,
    RequirementsRequest,
    RunStatus,
    StartRequest,
    SupervisorPhase,
)
from sandyard_runtime.agent.api import Api
from sandyard_runtime.agent.changes import Changes
from sandyard_runtime.agent.gate import Gate, RefusedError
from sandyard_runtime.agent.ledger import Ledger
from sandyard_runtime.agent.runs import Runs
from sandyard_runtime.agent.server import Server
from sandyard_runtime.agent.settings import Settings
from sandyard_runtime.agent.supervisor import Supervisor

if TYPE_CHECKING:
    from sandyard_runtime.agent.install.image import Image
    from sandyard_runtime.agent.install.job import Install

log = logging.getLogger(__name__)


class Agent:
    """Everything the endpoints stand on."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.changes = Changes()
        self.state_directory = settings.at(names.AGENT_STATE_DIR)
        self.ledger = Ledger(self.state_directory)
        self.supervisor = Supervisor(settings, ledger=self.ledger, changes=self.changes)
        self.runs = Runs(self.state_directory, ledger=self.ledger, supervisor=self.supervisor, changes=self.changes)
        self.packages = _packages(Path(settings.image_packages))
        self._install: Install | None = None
        self._image: Image | None = None

    @property
    def install(self) -> "Install":
        """The pod's one install; what it needs is imported when first asked for."""
        if self._install is None:
            from sandyard_runtime.agent.install.job import Install

            self._install = Install(self.settings, changes=self.changes, image=self._read_image)
        return self._install

    def start_run(self, run_id: str, request: StartRequest) -> RunStatus:
        """Accept the run, but never beside an installer that still has the index's network."""
        if self._install is not None and self._install.running:
            raise RefusedError(ErrorCode.NOT_READY, "an install is running")
        return self.runs.start(run_id, request)

    def start_install(self, request: InstallRequest) -> InstallStatus:
        """Install, but never once a run was accepted."""
        self.runs.check_stageable()
        return self.install.start(request)

    async def status(self, *, seconds: float) -> AgentStatus:
        """Say everything, once the supervisor is there or lost, at the latest after ``seconds``."""
        supervisor = self.supervisor
        await self.changes.until(lambda: supervisor.phase is not SupervisorPhase.STARTING, seconds=seconds)
        found = AgentStatus(
            pod_uid=self.settings.pod_uid,
            version=names.RELEASE,
            python=supervisor.python,
            supervisor=supervisor.phase,
            isolation=supervisor.isolation,
            bundle_digest=self.runs.bundle_digest,
            run=self.runs.current(),
            packages=self.packages,
        )
        if self._install is not None:
            found = found.model_copy(update={"install": self._install.status})
        return found

    def requirements(self, request: RequirementsRequest) -> RequirementsReply:
        """Tell what of this the image already has."""
        from sandyard_runtime.agent.install.image import check_requirements

        image = self._read_image()
        try:
            check_requirements(request.requirements)
            satisfied, missing = image.split(request.requirements)
            python_satisfied = image.accepts_python(request.requires_python)
        except ValueError as error:
            raise RefusedError(ErrorCode.BAD_REQUEST, str(error)) from error
        return RequirementsReply(
            satisfied=satisfied, missing=missing, python=image.python, python_satisfied=python_satisfied
        )

    async def probe(self, request: ProbeRequest) -> ProbeReply:
        """Connect once."""
        from sandyard_runtime.agent.probe import probe

        gone = self._install is None or self._install.status.installer_gone
        return await probe(request, installer_gone=gone)

    def _read_image(self) -> "Image":
        """Read what the image ships, once it is known for which Python."""
        if self._image is None:
            from sandyard_runtime.agent.install.image import read_image

            if not self.supervisor.python:
                raise RefusedError(ErrorCode.NOT_READY, "the supervisor is not there yet")
            self._image = read_image(
                Path(self.settings.image_site),
                Path(self.settings.image_packages),
                python=self.supervisor.python,
            )
        return self._image


def _packages(file: Path) -> tuple[Package, ...]:
    try:
        return tuple(Package(**item) for item in json.loads(file.read_bytes()))
    except FileNotFoundError:
        return ()


def serve(settings: Settings, listener: socket.socket, context: ssl.SSLContext) -> None:
    """Run the agent on ``listener`` until it is told to stop and has nothing left to hand over."""
    logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(name)s %(message)s", level=logging.INFO)
    asyncio.run(_serve(settings, listener, context))


async def _serve(settings: Settings, listener: socket.socket, context: ssl.SSLContext) -> None:
    agent = Agent(settings)
    gate = Gate(verifier=tokens.Verifier(settings.root_keys), pod_uid=settings.pod_uid, clock=time.time)
    server = Server(listener, context=context, handler=Api(agent, gate).answer)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with asyncio.TaskGroup() as group:
        tasks = (group.create_task(server.run()), group.create_task(agent.supervisor.run()))
        await stop.wait()
        await agent.changes.until(lambda: not agent.runs.must_serve)
        for task in tasks:
            task.cancel()
