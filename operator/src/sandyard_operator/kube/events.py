"""Events about tasks: few, deduplicated, in the background, never in the way of the work.

The same reason for the same task becomes a series of one Event. A token bucket bounds what a storm of tasks can
write; what does not fit is dropped and counted. Messages are the core's own and hold no user text.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import uuid4

from sandyard_api import names
from sandyard_api.task import SandboxTask
from sandyard_operator.kube.client import Client
from sandyard_operator.kube.resource import EVENTS
from sandyard_operator.ports import PortError

BURST: Final = 25.0
PER_SECOND: Final = 1.0
WAITING: Final = 256
REMEMBERED: Final = 4096  # (task, reason) pairs that may become a series
NOTE_BYTES: Final = 1024  # the API server's bound
NAME_CHARACTERS: Final = 200  # of the task's name in the Event's, which ends at 253
CONTROLLER: Final = "sandyard.dev/operator"


@dataclass(slots=True)
class _Series:
    path: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class _Note:
    task: SandboxTask
    reason: str
    message: str
    warning: bool


class EventRecorder:
    """Records Events; ``run`` writes them."""

    def __init__(
        self,
        client: Client,
        *,
        instance: str,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
        dropped: Callable[[], None],
    ) -> None:
        self._client = client
        self._instance = instance
        self._now = now
        self._monotonic = monotonic
        self._dropped = dropped
        self._queue: asyncio.Queue[_Note] = asyncio.Queue(WAITING)
        self._series: OrderedDict[tuple[str, str], _Series] = OrderedDict()
        self._tokens = BURST
        self._filled = monotonic()

    def record(self, task: SandboxTask, *, reason: str, message: str, warning: bool) -> None:
        """Take an Event to be written soon, or drop it."""
        if not self._take_token():
            self._dropped()
            return
        try:
            self._queue.put_nowait(_Note(task, reason, message, warning))
        except asyncio.QueueFull:
            self._dropped()

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            note = await self._queue.get()
            try:
                await self._write(note)
            except PortError:
                self._dropped()
            finally:
                self._queue.task_done()

    async def drain(self) -> None:
        """Wait until all that was recorded is written."""
        await self._queue.join()

    async def _write(self, note: _Note) -> None:
        key = (note.task.metadata.uid, note.reason)
        series = self._series.get(key)
        if series is not None:
            series.count += 1
            body = {"series": {"count": series.count, "lastObservedTime": self._stamp()}}
            await self._client.merge(series.path, body)
            return
        event = self._event(note)
        namespace = event["metadata"]["namespace"]
        await self._client.create(EVENTS.path(namespace=namespace), event)
        self._series[key] = _Series(EVENTS.path(namespace=namespace, name=event["metadata"]["name"]))
        if len(self._series) > REMEMBERED:
            self._series.popitem(last=False)

    def _event(self, note: _Note) -> dict[str, Any]:
        metadata = note.task.metadata
        return {
            "apiVersion": EVENTS.api_version,
            "kind": "Event",
            "metadata": {
                "namespace": metadata.namespace,
                "name": f"{metadata.name[:NAME_CHARACTERS]}.{uuid4().hex[:16]}",
            },
            "eventTime": self._stamp(),
            "reportingController": CONTROLLER,
            "reportingInstance": self._instance[:128],
            "action": note.reason,
            "reason": note.reason,
            "type": "Warning" if note.warning else "Normal",
            "note": note.message.encode()[:NOTE_BYTES].decode(errors="ignore"),
            "regarding": {
                "apiVersion": names.API_VERSION,
                "kind": note.task.kind,
                "namespace": metadata.namespace,
                "name": metadata.name,
                "uid": metadata.uid,
                "resourceVersion": metadata.resource_version,
            },
        }

    def _stamp(self) -> str:
        return self._now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def _take_token(self) -> bool:
        now = self._monotonic()
        self._tokens = min(BURST, self._tokens + (now - self._filled) * PER_SECOND)
        self._filled = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
