"""The agent's endpoints: a request becomes a call on the run, the install or the supervisor, and a reply.

Routes and shapes are those of ``sandyard_api.wire``. Nothing is decided here but who may call what.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sandyard_api import wire
from sandyard_api.tokens import Role
from sandyard_api.wire import ErrorCode
from sandyard_runtime.agent import bundle
from sandyard_runtime.agent.gate import Call, Gate, RefusedError, refuse, require
from sandyard_runtime.agent.server import DisconnectedError, Request, Response

if TYPE_CHECKING:
    from sandyard_runtime.agent.agent import Agent

RUN_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
OCTETS: Final = "application/octet-stream"
log = logging.getLogger(__name__)

Endpoint = Callable[["Api", Call], Awaitable[Response]]


class Api:
    """Answers requests."""

    def __init__(self, agent: "Agent", gate: Gate) -> None:
        self._agent = agent
        self._gate = gate

    async def answer(self, request: Request) -> Response:
        """Answer one request, whatever it is."""
        if request.target == wire.PATH_HEALTH and request.method == "GET":
            return Response(status=HTTPStatus.OK, body=b"ok\n", media_type="text/plain")
        try:
            response = await self._route(self._gate.admit(request))
        except RefusedError as refusal:
            response = refuse(refusal)
        except (DisconnectedError, asyncio.CancelledError):
            raise
        except Exception:
            log.exception("a request failed")
            response = refuse(RefusedError(ErrorCode.INTERNAL, "the agent failed; its log says why"))
        return self._gate.dress(request, response)

    async def _route(self, call: Call) -> Response:
        endpoint = ROUTES.get((call.method, call.path))
        if endpoint is not None:
            return await endpoint(self, call)
        if call.path.startswith(wire.PATH_RUNS + "/"):
            return await self._run_route(call, call.path.removeprefix(wire.PATH_RUNS + "/").split("/"))
        raise RefusedError(ErrorCode.NOT_FOUND, "there is no such endpoint")

    async def _run_route(self, call: Call, parts: list[str]) -> Response:
        run_id, *rest = parts
        if not RUN_ID.fullmatch(run_id):
            raise RefusedError(ErrorCode.BAD_REQUEST, "a run id is letters, digits, '.', '_' and '-'")
        if call.method == "GET":
            await call.no_body()
            return await self._read_run(run_id, rest, call.wait_seconds)
        require(call, Role.OPERATOR)
        if not rest:
            return _json(self._agent.start_run(run_id, await call.message(wire.StartRequest)))
        await call.no_body()
        return _json(self._change_run(run_id, rest))

    async def _read_run(self, run_id: str, rest: list[str], seconds: float) -> Response:
        runs = self._agent.runs
        match rest:
            case []:
                return _json(await runs.wait(run_id, seconds=seconds))
            case ["stdout" | "stderr" as stream]:
                return _bytes(runs.stream_file(run_id, stream))
            case ["artifacts", index] if re.fullmatch(r"[0-9]{1,6}", index):
                return _bytes(runs.artifact_file(run_id, int(index)))
            case _:
                raise RefusedError(ErrorCode.NOT_FOUND, "there is no such endpoint")

    def _change_run(self, run_id: str, rest: list[str]) -> wire.RunStatus:
        runs = self._agent.runs
        match rest:
            case ["cancel"]:
                return runs.cancel(run_id)
            case ["revoke"]:
                return runs.revoke(run_id)
            case ["acknowledge"]:
                return runs.acknowledge(run_id)
            case _:
                raise RefusedError(ErrorCode.NOT_FOUND, "there is no such endpoint")

    async def _status(self, call: Call) -> Response:
        await call.no_body()
        return _json(await self._agent.status(seconds=call.wait_seconds))

    async def _bundle(self, call: Call) -> Response:
        require(call, Role.OPERATOR)
        self._agent.runs.check_stageable()
        try:
            staged = await bundle.receive(call.chunks(limit=bundle.MAX_BUNDLE_BYTES), self._agent.state_directory)
        except bundle.BundleError as error:
            raise RefusedError(ErrorCode.BAD_REQUEST, str(error)) from error
        return _json(self._agent.runs.stage(staged))

    async def _requirements(self, call: Call) -> Response:
        return _json(self._agent.requirements(await call.message(wire.RequirementsRequest)))

    async def _install(self, call: Call) -> Response:
        require(call, Role.OPERATOR)
        return _json(self._agent.start_install(await call.message(wire.InstallRequest)))

    async def _install_status(self, call: Call) -> Response:
        await call.no_body()
        return _json(await self._agent.install.wait(seconds=call.wait_seconds))

    async def _probe(self, call: Call) -> Response:
        require(call, Role.OPERATOR)
        return _json(await self._agent.probe(await call.message(wire.ProbeRequest)))


ROUTES: Final[dict[tuple[str, str], Endpoint]] = {
    ("GET", wire.PATH_STATUS): Api._status,  # noqa: SLF001 - its own class
    ("POST", wire.PATH_BUNDLE): Api._bundle,  # noqa: SLF001
    ("POST", wire.PATH_REQUIREMENTS): Api._requirements,  # noqa: SLF001
    ("POST", wire.PATH_INSTALL): Api._install,  # noqa: SLF001
    ("GET", wire.PATH_INSTALL): Api._install_status,  # noqa: SLF001
    ("POST", wire.PATH_PROBE): Api._probe,  # noqa: SLF001
}


def _json(message: wire.Wire) -> Response:
    return Response(status=HTTPStatus.OK, body=message.to_json())


def _bytes(file: Path) -> Response:
    return Response(status=HTTPStatus.OK, media_type=OCTETS, file=file)
