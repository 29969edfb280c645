"""The probes: ill only when something is wrong, and they say what."""

import aiohttp
import pytest

from sandyard_operator.edge.probes import ProbeServer

HOST = "127.0.0.1"


@pytest.mark.parametrize(
    ("ailments", "ready", "live", "readiness"),
    [
        ((), True, (200, "ok\n"), (200, "ok\n")),
        ((), False, (200, "ok\n"), (503, "starting\n")),
        (("a key waits", "the list is late"), True, (503, "a key waits\nthe list is late\n"), (200, "ok\n")),
    ],
)
async def test_probes(
    ailments: tuple[str, ...], ready: object, live: tuple[int, str], readiness: tuple[int, str]
) -> None:
    server = ProbeServer(port=0, host=HOST, ailments=lambda: ailments, ready=lambda: bool(ready))
    async with server, aiohttp.ClientSession() as session:
        for path, expected in (("/healthz", live), ("/readyz", readiness)):
            async with session.get(f"http://{HOST}:{server.port}{path}") as answer:
                assert (answer.status, await answer.text()) == expected
