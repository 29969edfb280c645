"""HTTP to the API server: one request, one answer, every failure one of the ports' errors.

Never repeats a write by itself: whether it may have arrived is for the caller to find out. Its connections are
apart from those of the watches, which kopf holds.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from http import HTTPStatus
from time import monotonic
from typing import Any, Final, Self

import aiohttp
import orjson

from sandyard_operator.kube.access import Access
from sandyard_operator.kube.errors import refusal
from sandyard_operator.ports import PortError, UnavailableError, UnsureError

CONNECT_SECONDS: Final = 5.0
REQUEST_SECONDS: Final = 15.0  # etcd's own time-outs end earlier; a silent connection is dead by then
CONNECTIONS: Final = 64  # twice the workers: HTTP/1.1 carries one request each
KEEPALIVE_SECONDS: Final = 30.0
PAGE_OBJECTS: Final = 100  # of at most 0.5 MB each
JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"  # JSON is YAML
FIELD_MANAGER: Final = "sandyard-operator"

Observer = Callable[[str, str, str, float], None]  # verb, kind, error (empty on success), seconds


def _ignore(_verb: str, _kind: str, _error: str, _seconds: float) -> None:
    return None


class Client:
    """Requests to one API server."""

    def __init__(self, access: Access, *, observer: Observer = _ignore) -> None:
        self._access = access
        self._observer = observer
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=CONNECTIONS,
                keepalive_timeout=KEEPALIVE_SECONDS,
                ssl=access.ssl_context() if access.server.startswith("https") else True,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=REQUEST_SECONDS, sock_connect=CONNECT_SECONDS),
            headers={"User-Agent": FIELD_MANAGER, "Accept": JSON},
            raise_for_status=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def get(self, path: str, *, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Read; raises NotFoundError where there is nothing."""
        return await self._request("GET", path, query=query)

    async def create(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create; raises AlreadyExistsError where the name is taken."""
        return await self._request("POST", path, body=body, query={"fieldManager": FIELD_MANAGER})

    async def merge(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Merge (RFC 7386); a resourceVersion in the body makes it a compare-and-swap."""
        query = {"fieldManager": FIELD_MANAGER}
        return await self._request("PATCH", path, body=body, query=query, media=MERGE_PATCH)

    async def apply(
        self, path: str, body: Mapping[str, Any], *, manager: str = FIELD_MANAGER, force: bool = True
    ) -> dict[str, Any]:
        """Apply server-side; without ``force`` a field of another manager is a ConflictError."""
        query = {"fieldManager": manager, "force": "true" if force else "false"}
        return await self._request("PATCH", path, body=body, query=query, media=APPLY_PATCH)

    async def delete(self, path: str, options: Mapping[str, Any]) -> None:
        """Delete; raises NotFoundError, and ConflictError where a precondition does not hold."""
        await self._request("DELETE", path, body=options)

    async def items(self, path: str, *, query: Mapping[str, str] | None = None) -> AsyncIterator[dict[str, Any]]:
        """Yield a whole collection, read page by page and never from the server's cache.

        A list that outlives the server's memory ends as UnavailableError: what was yielded is then no list.
        """
        asked = {**(query or {}), "limit": str(PAGE_OBJECTS)}
        while True:
            page = await self.get(path, query=asked)
            for item in page.get("items") or ():
                yield item
            token = page["metadata"].get("continue")
            if not token:
                return
            asked["continue"] = token

    async def _request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        media: str = JSON,
    ) -> dict[str, Any]:
        began = monotonic()
        failure = ""
        try:
            return await self._answer(method, path, query=query, body=body, media=media)
        except PortError as error:
            failure = type(error).__name__
            raise
        finally:
            self._observer(method, kind_of(path), failure, monotonic() - began)

    async def _answer(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None,
        body: Mapping[str, Any] | None,
        media: str,
    ) -> dict[str, Any]:
        write = method != "GET"
        headers = {}
        token = await self._access.token()
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if body is not None:
            headers["Content-Type"] = media
        try:
            async with self._session.request(
                method,
                self._access.server + path,
                params=query,
                data=None if body is None else orjson.dumps(body),
                headers=headers,
                server_hostname=self._access.server_name,
                allow_redirects=False,
            ) as answer:
                raw = await answer.read()
                found = orjson.loads(raw) if raw else {}
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise UnavailableError(f"the API server cannot be reached: {error}") from error
        except (aiohttp.ClientError, TimeoutError, asyncio.IncompleteReadError) as error:
            what = f"no answer to {method} {path}: {type(error).__name__}"
            raise (UnsureError(what) if write else UnavailableError(what)) from error
        except orjson.JSONDecodeError:
            found = {}
            if answer.status < HTTPStatus.BAD_REQUEST:
                what = f"the answer to {method} {path} is not JSON"
                raise (UnsureError(what) if write else UnavailableError(what)) from None
        if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
            retry_after = answer.headers.get("Retry-After", "")
            raise refusal(answer.status, found, retry_after=retry_after, write=write)
        if not isinstance(found, dict):
            raise UnavailableError(f"the answer to {method} {path} is not an object")
        return found


def kind_of(path: str) -> str:
    """Return the kind that a path is about, with its subresource: a closed set of words."""
    parts = path.removeprefix("/apis/").removeprefix("/api/").split("/")
    parts = parts[2:] if path.startswith("/apis/") else parts[1:]
    if parts[0] == "namespaces" and len(parts) > 2:  # noqa: PLR2004 - namespaces/NAME/plural
        parts = parts[2:]
    return "/".join(parts[::2]) if len(parts) > 1 else parts[0]
