"""One HTTP port in the operator's own loop: started and ended with a ``with`` block; what it answers is its user's."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Self

from aiohttp import web

Answer = Callable[[web.Request], Awaitable[web.Response]]


class HttpPort:
    """Serves GET requests by path; an async context manager. Port 0 becomes the port that was given."""

    def __init__(self, *, port: int, host: str | None, answers: Mapping[str, Answer]) -> None:
        self.port = port
        self._host = host
        app = web.Application()
        for path, answer in answers.items():
            app.router.add_get(path, answer)
        self._runner = web.AppRunner(app, access_log=None)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self.port).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()
