"""A fresh TCP connect, to prove that the network is open or cut. Knows no index and no policy."""

import asyncio
import errno
import socket
from typing import Final

from sandyard_api.wire import ErrorCode, ProbeReply, ProbeRequest
from sandyard_runtime.agent.gate import RefusedError

MAX_MILLISECONDS: Final = 20_000
TIMED_OUT: Final = "ETIMEDOUT"
UNRESOLVED: Final = "EAI"


async def probe(request: ProbeRequest, *, installer_gone: bool) -> ProbeReply:
    """Connect once and close; never raises for the network's answer."""
    if not (0 < request.port < 1 << 16 and 0 < request.timeout_milliseconds <= MAX_MILLISECONDS):
        raise RefusedError(ErrorCode.BAD_REQUEST, "port or time is out of range")
    error = ""
    try:
        async with asyncio.timeout(request.timeout_milliseconds / 1000):
            _, writer = await asyncio.open_connection(request.host, request.port)
        writer.transport.abort()
    except TimeoutError:
        error = TIMED_OUT
    except socket.gaierror as failure:
        error = f"{UNRESOLVED}_{failure.errno}"
    except OSError as failure:
        error = errno.errorcode.get(failure.errno or 0, "EIO")
    return ProbeReply(connected=not error, error=error, installer_gone=installer_gone)
