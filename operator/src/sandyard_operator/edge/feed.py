"""The ``ChangeFeed`` door: kopf's raw watch events, turned into the core's own values, in the order they came.

A lost deletion (a gap after 410 Gone) is not noticed here; the sweep repairs it. An object that cannot be read is
logged and left out: it must not cost the others.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
import kopf
from pydantic import ValidationError

from sandyard_api import names
from sandyard_api.sandbox_class import SandboxClass
from sandyard_api.task import SandboxTask
from sandyard_operator.decide.pod import PodView
from sandyard_operator.kube.access import Access
from sandyard_operator.kube.views import problems
from sandyard_operator.ports import Change, ObjectKind

SERVER_SECONDS: Final = 300  # a whole number, or the API server refuses; a stream is renewed after it …
CLIENT_SECONDS: Final = 310.0  # … or given up; one that fell silent ends after kopf's own 70 s
CONNECT_SECONDS: Final = 10.0
REQUEST_SECONDS: Final = 30.0
BACKOFFS: Final = (0.2, 0.5, 1.0, 2.0, *(5.0,) * 12)  # a minute; after it the process ends and is restarted
PAGE_OBJECTS: Final = 100  # of at most 0.5 MB each
CANCELS: Final = 10
CANCEL_SECONDS: Final = 0.5
KOPF: Final = Path(kopf.__file__).parent
WATCHED: Final = {
    ObjectKind.TASK: (names.GROUP, names.VERSION, "sandboxtasks"),
    ObjectKind.CLASS: (names.GROUP, names.VERSION, "sandboxclasses"),
    ObjectKind.POD: ("", "v1", "pods"),
}

Raw = Mapping[str, Any]
Read = Callable[[Raw], SandboxTask | PodView | SandboxClass]

logger = logging.getLogger(__name__)


class FeedError(Exception):
    """The watches ended: the process cannot go on."""


class _Everything(Collection["asyncio.Task[Any]"]):
    """All tasks of the loop: kopf, when it ends, takes those that are not in here for its own and cancels them."""

    def __contains__(self, _: object) -> bool:
        return True

    def __iter__(self) -> Iterator["asyncio.Task[Any]"]:
        return iter(asyncio.all_tasks())

    def __len__(self) -> int:
        return len(asyncio.all_tasks())


@dataclass(frozen=True, kw_only=True)
class _Connection(kopf.ConnectionInfo):
    """kopf's way to the API server, with the TLS of our own client."""

    access: Access

    def as_ssl_context(self) -> ssl.SSLContext:
        """Return TLS as the kube room sets it up."""
        return self.access.ssl_context()


class KopfFeed:
    """Watches tasks, classes and our pods."""

    def __init__(self, access: Access, *, read_pod: Callable[[Raw], PodView]) -> None:
        self._access = access
        self._readers: dict[ObjectKind, Read] = {
            ObjectKind.TASK: SandboxTask.model_validate,
            ObjectKind.CLASS: SandboxClass.model_validate,
            ObjectKind.POD: read_pod,
        }
        self._changes: asyncio.Queue[Change] = asyncio.Queue()
        self._tasks: Collection[asyncio.Task[Any]] = ()
        self._sessions: list[aiohttp.ClientSession] = []

    async def start(self) -> None:
        """Begin to watch.

        kopf takes SIGTERM and SIGINT for itself here; whoever wants them installs handlers afterwards.
        """
        self._tasks = await kopf.spawn_tasks(
            registry=self._registry(),
            settings=_settings(),
            clusterwide=True,
            standalone=True,
        )

    async def run(self) -> None:
        """Watch until cancelled; raises FeedError when the watches end by themselves."""
        try:
            await kopf.run_tasks(self._tasks, ignored=_Everything())
        except Exception as error:
            raise FeedError(f"the watches ended: {error}") from error
        finally:
            await _end_leftovers()
            for session in self._sessions:
                await session.close()
        raise FeedError("the watches ended")

    async def changes(self) -> AsyncIterator[Change]:
        """Yield changes for ever."""
        while True:
            yield await self._changes.get()

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry)(self._login)
        for kind, (group, version, plural) in WATCHED.items():
            # The label is checked by the API server, see _settings.
            kopf.on.event(group, version, plural, id=kind, registry=registry)(self._handler(kind))
        return registry

    async def _login(self, **_: Any) -> kopf.AiohttpSession:
        """Give kopf a session of our own: it takes each token as it is at the time, and is closed for sure."""
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._access.ssl_context()), middlewares=(self._authorise,)
        )
        self._sessions.append(session)
        return kopf.AiohttpSession(server=self._access.server, aiohttp_session=session)

    async def _authorise(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        token = await self._access.token()
        if token:
            request.headers["Authorization"] = f"Bearer {token}"
        return await handler(request)

    def _handler(self, kind: ObjectKind) -> Callable[..., Any]:
        async def take(*, event: Any, **_: Any) -> None:
            self._take(kind, event)

        return take

    def _take(self, kind: ObjectKind, event: Raw) -> None:
        raw = event["object"]
        try:
            value = self._readers[kind](raw)
        except ValidationError as error:
            self._skip(kind, raw, problems(error))
            return
        except (KeyError, ValueError) as error:
            self._skip(kind, raw, type(error).__name__)
            return
        self._changes.put_nowait(Change(kind=kind, value=value, gone=event["type"] == "DELETED"))

    def _skip(self, kind: ObjectKind, raw: Raw, why: str) -> None:
        metadata = raw.get("metadata") or {}
        identity = {"namespace": metadata.get("namespace"), kind: metadata.get("name")}
        logger.error("a %s is not as this version of the operator knows it: %s", kind, why, extra=identity)


async def _end_leftovers() -> None:
    """End what kopf leaves behind when one of its watches fails: the others, which survive a first cancel."""
    for _ in range(CANCELS):
        left = {task for task in asyncio.all_tasks() if _is_of_kopf(task)}
        if not left:
            return
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=CANCEL_SECONDS)


def _is_of_kopf(task: "asyncio.Task[Any]") -> bool:
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and Path(code.co_filename).is_relative_to(KOPF)


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.watching.server_timeout = SERVER_SECONDS
    settings.watching.client_timeout = CLIENT_SECONDS
    settings.watching.connect_timeout = CONNECT_SECONDS
    settings.watching.chunk_size = PAGE_OBJECTS
    settings.watching.initial_streaming = False  # loses objects where the stream is cut early
    settings.watching.label_selectors["", "v1", "pods"] = names.LABEL_ROLE
    settings.networking.request_timeout = REQUEST_SECONDS
    settings.networking.connect_timeout = CONNECT_SECONDS
    settings.networking.error_backoffs = BACKOFFS
    settings.queueing.worker_limit = None  # a limit becomes a throttle: workers linger
    settings.process.ultimate_exiting_timeout = None  # how the process ends is not kopf's business
    return settings
