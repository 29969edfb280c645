"""A person who waits sees what goes on; a log has a line per step, and now and then one of a long step."""

import io

from rich.console import Console

from sandyard_node.progress import QUICK_SECONDS, SILENCE_SECONDS, Progress


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def test_a_log_has_a_line_per_step_that_took_time() -> None:
    output, clock = io.StringIO(), Clock()
    progress = Progress(Console(file=output), clock)
    with progress.step("quick"):
        clock.now += QUICK_SECONDS / 2
    with progress.step("slow"):
        clock.now += 7.04
    assert output.getvalue() == "  ✓ slow 7.0 s\n"


def test_a_long_step_goes_on_being_heard_in_a_log() -> None:
    output, clock = io.StringIO(), Clock()
    progress = Progress(Console(file=output), clock)
    with progress.step("build"):
        for count in range(1, 6):
            clock.now += SILENCE_SECONDS / 2
            progress.note(f"{count} packages")
    lines = output.getvalue().splitlines()
    assert [line.strip() for line in lines[:-1]] == ["build … 2 packages", "build … 4 packages"]
