"""The metrics' HTTP server, on a port of its own and in the operator's own loop, so that nothing is read half."""

from collections.abc import Callable
from typing import Final

from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from sandyard_operator.telemetry.port import HttpPort

PATH: Final = "/metrics"


class MetricsServer(HttpPort):
    """Serves what ``render`` returns; an async context manager."""

    def __init__(self, *, port: int, render: Callable[[], bytes], host: str | None = None) -> None:
        super().__init__(port=port, host=host, answers={PATH: self._metrics})
        self._render = render

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=self._render(), headers={"Content-Type": CONTENT_TYPE_LATEST})
