"""The probes' HTTP server: liveness from facts that a stuck loop cannot fake, readiness from whether it is up.

It runs in the operator's own loop: where that is blocked nothing answers, and the kubelet counts that too.
"""

from collections.abc import Callable, Collection
from http import HTTPStatus
from typing import Final

from aiohttp import web

from sandyard_operator.telemetry.port import HttpPort

LIVE_PATH: Final = "/healthz"
READY_PATH: Final = "/readyz"


class ProbeServer(HttpPort):
    """Answers 200 while there are no ailments, else 503 and what they are; an async context manager."""

    def __init__(
        self,
        *,
        port: int,
        ailments: Callable[[], Collection[str]],
        ready: Callable[[], bool],
        host: str | None = None,
    ) -> None:
        super().__init__(port=port, host=host, answers={LIVE_PATH: self._live, READY_PATH: self._readiness})
        self._ailments = ailments
        self._ready = ready

    async def _live(self, _: web.Request) -> web.Response:
        ailments = self._ailments()
        if ailments:
            return web.Response(status=HTTPStatus.SERVICE_UNAVAILABLE, text="\n".join(ailments) + "\n")
        return web.Response(text="ok\n")

    async def _readiness(self, _: web.Request) -> web.Response:
        if self._ready():
            return web.Response(text="ok\n")
        return web.Response(status=HTTPStatus.SERVICE_UNAVAILABLE, text="starting\n")
