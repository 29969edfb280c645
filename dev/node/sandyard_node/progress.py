"""Show a waiting person what goes on: a spinner on a terminal, one line per finished step elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.status import Status

QUICK_SECONDS = 0.3  # steps that found nothing to do are not worth a line


@dataclass(slots=True)
class Progress:
    """Steps with their times, on standard error; standard output stays for results."""

    console: Console = field(default_factory=lambda: Console(stderr=True, highlight=False))
    _status: Status | None = None
    _title: str = ""

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Show one step while it lasts, and how long it took."""
        started = time.monotonic()
        self._title = title
        with self.console.status(f"{title} …") as self._status:
            yield
        self._status = None
        seconds = time.monotonic() - started
        if seconds >= QUICK_SECONDS:
            self.console.print(f"  [green]✓[/] {title} [dim]{seconds:.1f} s[/]")

    def note(self, text: str) -> None:
        """Say how far the step has come."""
        if self._status:
            self._status.update(f"{self._title} … [dim]{text}[/]")

    def say(self, text: str) -> None:
        """Print a line."""
        self.console.print(text)
