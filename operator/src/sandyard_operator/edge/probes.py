"""The probes' HTTP server: liveness from facts that a stuck loop cannot fake, readiness from whether it is up.

It runs in the operator's own loop: where that is blocked nothing answers, and the kubelet counts that too.
"""

from collections.abc import Callable, Collection
from http import HTTPStatus
from typing import Final, Self

from aiohttp import web

LIVE_PATH: Final = "/healthz"
READY_PATH: Final = "/readyz"


class ProbeServer:
    """Answers 200 while there are no ailments, else 503 and what they are; an async context manager."""

    def __init__(
        self,
        *,
        port: int,
        ailments: Callable[[], Collection[str]],
        ready: Callable[[], bool],
        host: str | None = None,
    ) -> None:
        self.port = port
        self._host = host
        self._ailments = ailments
        self._ready = ready
        app = web.Application()
        app.router.add_get(LIVE_PATH, self._live)
        app.router.add_get(READY_PATH, self._readiness)
        self._runner = web.AppRunner(app, access_log=None)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self.port).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _live(self, _: web.Request) -> web.Response:
        ailments = self._ailments()
        if ailments:
            return web.Response(status=HTTPStatus.SERVICE_UNAVAILABLE, text="\n".join(ailments) + "\n")
        return web.Response(text="ok\n")

    async def _readiness(self, _: web.Request) -> web.Response:
        if self._ready():
            return web.Response(text="ok\n")
        return web.Response(status=HTTPStatus.SERVICE_UNAVAILABLE, text="starting\n")
