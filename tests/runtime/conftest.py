"""Fixtures of the runtime's tests: a room of this machine and a supervisor in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.runner import Room, Runner


@pytest.fixture
def room(tmp_path: Path) -> Room:
    """Return a room whose folders are the test's own."""
    return Room(tmp_path)


@pytest.fixture
def runner(room: Room) -> Iterator[Runner]:
    """Return a supervisor that is ready."""
    with Runner(room) as runner:
        yield runner
