"""The metrics' HTTP server, on a port of its own and in the operator's own loop, so that nothing is read half."""

from collections.abc import Callable
from typing import Final, Self

from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_LATEST

PATH: Final = "/metrics"


class MetricsServer:
    """Serves what ``render`` returns; an async context manager."""

    def __init__(self, *, port: int, render: Callable[[], bytes], host: str | None = None) -> None:
        self.port = port
        self._host = host
        self._render = render
        app = web.Application()
        app.router.add_get(PATH, self._metrics)
        self._runner = web.AppRunner(app, access_log=None)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self.port).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=self._render(), headers={"Content-Type": CONTENT_TYPE_LATEST})
