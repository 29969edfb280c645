"""Run named steps one after another, with their times, and stop at the first that fails.

A step is a command or a function. Its output is shown when it fails, or live where a person would wait long.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

ROOT = Path(__file__).resolve().parents[2]
OUTPUT_TAIL_LINES = 60  # of a failed command that was not shown live


class StepError(Exception):
    """A step failed; the message says which, why, and the next thing to do."""


@dataclass(slots=True)
class Steps:
    """A sequence of timed steps."""

    console: Console = field(default_factory=lambda: Console(stderr=True, highlight=False))
    times: list[tuple[str, float]] = field(default_factory=list)

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Announce, time and record one step."""
        self.console.print(f"[bold]>[/] {title}")
        started = time.monotonic()
        try:
            yield
        finally:
            self.times.append((title, time.monotonic() - started))
        self.console.print(f"  [green]done[/] in {self.times[-1][1]:.1f} s")

    def command(
        self,
        title: str,
        argv: Sequence[str | Path],
        *,
        live: bool = False,
        env: Mapping[str, str] | None = None,
        hint: str = "",
    ) -> None:
        """Run a program from the checkout's root as one step."""
        with self.step(title):
            run(argv, title=title, live=live, env=env, hint=hint)

    def call(self, title: str, action: Callable[[], None]) -> None:
        """Run a function as one step."""
        with self.step(title):
            action()

    def summary(self) -> None:
        """Print how long each part took."""
        self.console.print("\n[bold]Times[/]")
        for title, seconds in self.times:
            self.console.print(f"  {seconds:8.1f} s  {title}")
        self.console.print(f"  {sum(seconds for _, seconds in self.times):8.1f} s  together")


def run(
    argv: Sequence[str | Path],
    *,
    title: str,
    live: bool = False,
    env: Mapping[str, str] | None = None,
    hint: str = "",
) -> str:
    """Run a program; raise StepError with the end of its output when it fails."""
    command = [str(part) for part in argv]
    environment = {**os.environ, **(env or {})}
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            check=False,
            text=True,
            stdout=None if live else subprocess.PIPE,
            stderr=None if live else subprocess.STDOUT,
        )
    except FileNotFoundError as error:
        raise StepError(f"{title}: the program {command[0]} is not there. {hint}".rstrip()) from error
    if done.returncode == 0:
        return done.stdout or ""
    tail = "\n".join((done.stdout or "").splitlines()[-OUTPUT_TAIL_LINES:])
    raise StepError(f"{tail}\n{title}: `{' '.join(command)}` ended with {done.returncode}. {hint}".strip())


def main(program: Callable[[Steps], None]) -> None:
    """Run a program of steps; exit 1 with its message when one fails."""
    steps = Steps()
    try:
        program(steps)
    except StepError as error:
        steps.console.print(str(error), markup=False)
        steps.summary()
        sys.exit(1)
    except KeyboardInterrupt:
        steps.console.print("interrupted; run the same command again to go on")
        sys.exit(130)
    steps.summary()
