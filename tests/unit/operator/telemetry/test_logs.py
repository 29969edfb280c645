"""Logs: each line is JSON, says which task it is about, and nothing that a user wrote or a library added."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from sandyard_operator.telemetry.logs import QUIET, configure


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """Send logs to a buffer, and put everything back."""
    root = logging.getLogger()
    before = (root.handlers[:], root.level, {name: logging.getLogger(name).level for name in QUIET})
    stream = io.StringIO()
    configure("info", stream=stream)
    yield stream
    root.handlers[:], root.level = before[0], before[1]
    for name, level in before[2].items():
        logging.getLogger(name).setLevel(level)


def read(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_line_carries_the_tasks_identity_and_no_more(lines: io.StringIO) -> None:
    extra = {"namespace": "ns", "task": "t", "uid": "u", "k8s_skip": True, "settings": object()}
    logging.getLogger("sandyard_operator.tasks").info("looking %s", "again", extra=extra)
    (line,) = read(lines)
    assert line.pop("time").endswith("Z")
    assert line == {
        "message": "looking again",
        "level": "info",
        "logger": "sandyard_operator.tasks",
        "namespace": "ns",
        "task": "t",
        "uid": "u",
    }


def _break(value: str) -> None:
    raise RuntimeError(f"{len(value)} characters were too many")


def test_traceback_is_one_line_without_values(lines: io.StringIO) -> None:
    try:
        _break("hunter" + "2")
    except RuntimeError:
        logging.getLogger("x").exception("failed")
    (line,) = read(lines)
    assert "RuntimeError: 7 characters were too many" in line["exception"]
    assert "hunter2" not in lines.getvalue()


def test_libraries_speak_json_too_and_only_when_it_matters(lines: io.StringIO) -> None:
    logging.getLogger("kopf.objects").info("handler succeeded")
    logging.getLogger("kopf._cogs.clients.watching").error("request failed")
    logging.getLogger("aiohttp.access").info("GET /metrics")
    logging.getLogger("sandyard").debug("detail")
    assert [line["message"] for line in read(lines)] == ["request failed"]
