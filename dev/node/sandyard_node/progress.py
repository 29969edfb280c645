"""Show a waiting person what goes on: a spinner on a terminal, lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from rich.console import Console
from rich.status import Status

QUICK_SECONDS: Final = 0.3  # steps that found nothing to do are not worth a line
SILENCE_SECONDS: Final = 30  # in a log, a long step says now and then that it goes on


@dataclass(slots=True)
class Progress:
    """Steps with their times, on standard error; standard output stays for results."""

    console: Console = field(default_factory=lambda: Console(stderr=True, highlight=False))
    clock: Callable[[], float] = time.monotonic
    _status: Status | None = None
    _title: str = ""
    _said_at: float = 0

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Show one step while it lasts, and how long it took."""
        started = self._said_at = self.clock()
        self._title = title
        with self.console.status(f"{title} …") as self._status:
            yield
        self._status = None
        seconds = self.clock() - started
        if seconds >= QUICK_SECONDS:
            self.console.print(f"  [green]✓[/] {title} [dim]{seconds:.1f} s[/]")

    def note(self, text: str) -> None:
        """Say how far the step has come."""
        if self._status:
            self._status.update(f"{self._title} … [dim]{text}[/]")
        if not self.console.is_terminal and self.clock() - self._said_at >= SILENCE_SECONDS:
            self._said_at = self.clock()
            self.say(f"    {self._title} … {text}")

    def say(self, text: str) -> None:
        """Print a line."""
        self.console.print(text, soft_wrap=True)
