"""A signal that something changed, for long polls: everyone who waits is woken at once.

Standard library only.
"""

import asyncio
from collections.abc import Callable


class Changes:
    """Waiters on a condition over plain state; whoever changes the state calls ``notify``."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()

    def notify(self) -> None:
        """Wake all who wait; they look again."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def until(self, holds: Callable[[], bool], *, seconds: float | None = None) -> bool:
        """Wait until ``holds()`` is true, at most ``seconds`` (for ever without); tells whether it is."""
        try:
            async with asyncio.timeout(seconds):
                while not holds():
                    await self._changed.wait()
        except TimeoutError:
            return holds()
        return True
