"""The ``Agents`` door: each call is one request to one pod's agent. How it gets there is in ``exchange``."""

import asyncio
from collections.abc import Callable
from typing import Final, Self, TypeVar

from pydantic import ValidationError

from sandyard_api import names, tokens, wire
from sandyard_operator.agents.exchange import Exchange, NotListeningError, Way
from sandyard_operator.agents.signer import Signer
from sandyard_operator.decide.pod import PodView
from sandyard_operator.ports import AgentUnreachableError, PortError

SEND_BYTES_PER_SECOND: Final = 1 << 20  # a bundle gets a second more for each of these
FIRST_RETRY_SECONDS: Final = 0.02  # while a pod starts: its agent is there a moment later
LAST_RETRY_SECONDS: Final = 0.25
GROWTH: Final = 1.5
LEAF: Final = 3  # v1/runs/ID/leaf

Answer = TypeVar("Answer", bound=wire.Reply)
Observer = Callable[[str, str], None]  # endpoint, error (empty on success)


class AgentClient:
    """Talks to agents; an async context manager that closes its connections."""

    def __init__(  # noqa: PLR0913 - what it trusts, and clocks
        self,
        *,
        ca_bundle: str,
        signer: Signer,
        server_name: Callable[[str], str],
        now: Callable[[], float],
        monotonic: Callable[[], float],
        observer: Observer,
        port: int = names.AGENT_PORT,
    ) -> None:
        way = Way(ca_bundle=ca_bundle, server_name=server_name, port=port)
        self._exchange = Exchange(way, signer, now=now)
        self._monotonic = monotonic
        self._observer = observer

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._exchange.close()

    async def status(self, pod: PodView, *, wait: float) -> wire.AgentStatus:
        """Ask for everything; answers when the supervisor is ready or lost, or after ``wait`` seconds.

        A pod that is only starting refuses connections: it is tried again, ever more slowly, within ``wait``.
        """
        deadline = self._monotonic() + wait
        pause = FIRST_RETRY_SECONDS
        while True:
            left = max(0.0, deadline - self._monotonic())
            try:
                return await self._get(pod, wire.PATH_STATUS, wire.AgentStatus, wait=left)
            except NotListeningError:
                if left <= pause:
                    raise
            await asyncio.sleep(pause)
            pause = min(LAST_RETRY_SECONDS, pause * GROWTH)

    async def send_bundle(self, pod: PodView, bundle: wire.Bundle) -> str:
        """Stage inputs; returns the digest the agent computed."""
        reply = await self._post(pod, wire.PATH_BUNDLE, bundle.encode(), wire.BundleReply)
        return reply.digest

    async def requirements(self, pod: PodView, request: wire.RequirementsRequest) -> wire.RequirementsReply:
        """Ask what the image lacks."""
        return await self._post(pod, wire.PATH_REQUIREMENTS, request.to_json(), wire.RequirementsReply)

    async def install(self, pod: PodView, request: wire.InstallRequest) -> wire.InstallStatus:
        """Begin the pod's one install, or tell how far it is."""
        return await self._post(pod, wire.PATH_INSTALL, request.to_json(), wire.InstallStatus)

    async def install_status(self, pod: PodView, *, wait: float) -> wire.InstallStatus:
        """Ask for the install; answers at its end or after ``wait`` seconds."""
        return await self._get(pod, wire.PATH_INSTALL, wire.InstallStatus, wait=wait)

    async def probe(self, pod: PodView, request: wire.ProbeRequest) -> wire.ProbeReply:
        """Have the agent try a fresh connect."""
        return await self._post(pod, wire.PATH_PROBE, request.to_json(), wire.ProbeReply)

    async def start(self, pod: PodView, run_id: str, request: wire.StartRequest) -> wire.RunStatus:
        """Start the run, or tell its state if it was accepted before."""
        return await self._post(pod, f"{wire.PATH_RUNS}/{run_id}", request.to_json(), wire.RunStatus)

    async def run_status(self, pod: PodView, run_id: str, *, wait: float) -> wire.RunStatus:
        """Ask for the run; answers at its end or after ``wait`` seconds."""
        return await self._get(pod, f"{wire.PATH_RUNS}/{run_id}", wire.RunStatus, wait=wait)

    async def cancel(self, pod: PodView, run_id: str) -> wire.RunStatus:
        """Stop the run; its output is kept."""
        return await self._post(pod, f"{wire.PATH_RUNS}/{run_id}/cancel", b"", wire.RunStatus)

    async def revoke(self, pod: PodView, run_id: str) -> wire.RunStatus:
        """Have the run promised never to be accepted, or tell its state if it was."""
        return await self._post(pod, f"{wire.PATH_RUNS}/{run_id}/revoke", b"", wire.RunStatus)

    async def acknowledge(self, pod: PodView, run_id: str) -> wire.RunStatus:
        """Tell that the result is stored."""
        return await self._post(pod, f"{wire.PATH_RUNS}/{run_id}/acknowledge", b"", wire.RunStatus)

    async def _get(self, pod: PodView, path: str, model: type[Answer], *, wait: float) -> Answer:
        seconds = min(wait, wire.MAX_WAIT_SECONDS)
        target = f"{path}?wait={seconds:.3f}"
        request = tokens.Request(audience=pod.uid, method="GET", path=target)
        return await self._ask(pod, request, model, seconds=seconds)

    async def _post(self, pod: PodView, path: str, body: bytes, model: type[Answer]) -> Answer:
        request = tokens.Request(audience=pod.uid, method="POST", path=path, body=body)
        seconds = len(body) / SEND_BYTES_PER_SECOND
        return await self._ask(pod, request, model, seconds=seconds)

    async def _ask(self, pod: PodView, request: tokens.Request, model: type[Answer], *, seconds: float) -> Answer:
        failure = ""
        try:
            return _read(pod, model, await self._exchange.call(pod, request, seconds=seconds))
        except PortError as error:
            failure = type(error).__name__
            raise
        finally:
            self._observer(_endpoint(request), failure)


def _endpoint(request: tokens.Request) -> str:
    """Name what is asked for: a closed set of words, without the ids in the path."""
    parts = request.path.partition("?")[0].strip("/").split("/")
    return f"{request.method} {parts[1]}{'/' + parts[3] if len(parts) > LEAF else ''}"


def _read(pod: PodView, model: type[Answer], body: bytes) -> Answer:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise AgentUnreachableError(
            f"the agent of pod {pod.name} answered something other than a {model.__name__}"
        ) from error
