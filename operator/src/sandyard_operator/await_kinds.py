"""``python -m sandyard_operator.await_kinds``: wait until the API server serves our kinds.

A CRD is served a moment after it was created. The chart's hook that creates the class ``default`` on a first
install runs after this.
"""

import asyncio
import sys
from time import monotonic
from typing import Final

from sandyard_operator.kube.access import find_access
from sandyard_operator.kube.client import Client
from sandyard_operator.kube.resource import CLASSES, TASKS, Resource
from sandyard_operator.ports import NotFoundError, PortError, UnavailableError

SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.2
KINDS: Final = (TASKS, CLASSES)


async def await_kinds(*, seconds: float = SECONDS) -> None:
    """Return when all are served; raises what was answered last when time is over."""
    deadline = monotonic() + seconds
    async with Client(await find_access()) as client:
        for kind in KINDS:
            await _until_served(client, kind, deadline=deadline)


async def _until_served(client: Client, kind: Resource, *, deadline: float) -> None:
    while True:
        try:
            await client.get(kind.path(), query={"limit": "1"})
        except (NotFoundError, UnavailableError):  # the rights to ask were given a moment ago too
            if monotonic() > deadline:
                raise
            await asyncio.sleep(POLL_SECONDS)
        else:
            return


def main() -> int:
    """Wait; return the exit status."""
    try:
        asyncio.run(await_kinds())
    except PortError as error:
        sys.stderr.write(f"sandyard: the API server does not serve our kinds: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
