"""Show what is going on: one line a job with its time, live on a terminal, plain elsewhere; a table at the end."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Row:
    """What the table says of one image."""

    name: str
    ref: str
    layer_bytes: int
    seconds: float | None  # of its build; None when nothing had changed


@dataclass(slots=True)
class Display:
    """The console of one build."""

    console: Console = field(default_factory=lambda: Console(stderr=True, highlight=False))
    _live: Progress = field(init=False)

    def __post_init__(self) -> None:
        columns = (SpinnerColumn(finished_text="[green]✓[/]"), TextColumn("{task.description}"), TimeElapsedColumn())
        self._live = Progress(*columns, console=self.console, disable=not self.console.is_terminal)

    @contextmanager
    def live(self) -> Iterator[None]:
        """Show jobs while the block runs."""
        with self._live:
            yield

    @contextmanager
    def job(self, title: str) -> Iterator[None]:
        """Show one job."""
        task = self._live.add_task(title, total=1)
        started = time.monotonic()
        yield
        self._live.update(task, completed=1)
        if not self.console.is_terminal:
            self.console.print(f"{time.monotonic() - started:7.1f} s  {title}")

    def table(self, rows: list[Row]) -> None:
        """Print the images."""
        table = Table("image", "reference", "MB", "built in", box=None, header_style="bold")
        for row in rows:
            built = "unchanged" if row.seconds is None else f"{row.seconds:.1f} s"
            table.add_row(row.name, row.ref, f"{row.layer_bytes / MEGABYTE:.0f}", built)
        self.console.print(table)
