"""Logs: one JSON object a line, ours and those of kopf and aiohttp alike.

A line may say which task it is about (``extra=``), by the keys below and no others: libraries add objects of
theirs to their records. Tracebacks carry no values of variables.
"""

import logging
import sys
from typing import Final, TextIO

import structlog

IDENTITY: Final = ("namespace", "task", "uid", "runID", "attempt", "pod", "class", "epoch", "action", "reason")
QUIET: Final = {
    "kopf": logging.WARNING,  # it reports each object it looks at
    "aiohttp.access": logging.WARNING,
    "asyncio": logging.WARNING,
}


def configure(level: str, *, stream: TextIO = sys.stderr) -> None:
    """Send everything to ``stream`` as JSON, from ``level`` on."""
    shared: tuple[structlog.typing.Processor, ...] = (
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(allow=IDENTITY),
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        structlog.processors.format_exc_info,
        structlog.processors.EventRenamer("message"),
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.JSONRenderer(),
        ],
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name, least in QUIET.items():
        logging.getLogger(name).setLevel(max(least, root.level))
