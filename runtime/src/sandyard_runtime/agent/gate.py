"""Who may ask this agent for what: token first, then role, and only then a byte of body.

A stranger gets the same answer whatever he asks for. Each answer carries the nonce, the pod's UID and the
clock. Knows tokens and HTTP; knows nothing of runs and installs.
"""

import hashlib
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Final, TypeVar
from urllib.parse import parse_qs, urlsplit

from sandyard_api import tokens, wire
from sandyard_api.wire import ErrorCode, ErrorReply, Wire
from sandyard_runtime.agent.server import BodyTooLargeError, Request, Response

MAX_NONCE: Final = 128
BEARER: Final = "Bearer "
STATUS_OF: Final = {
    ErrorCode.BAD_REQUEST: HTTPStatus.BAD_REQUEST,
    ErrorCode.UNAUTHENTICATED: HTTPStatus.UNAUTHORIZED,
    ErrorCode.REPLAYED: HTTPStatus.UNAUTHORIZED,
    ErrorCode.STALE_EPOCH: HTTPStatus.CONFLICT,
    ErrorCode.CONFLICT: HTTPStatus.CONFLICT,
    ErrorCode.NOT_FOUND: HTTPStatus.NOT_FOUND,
    ErrorCode.NOT_READY: HTTPStatus.SERVICE_UNAVAILABLE,
    ErrorCode.REVOKED: HTTPStatus.GONE,
    ErrorCode.TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    ErrorCode.INTERNAL: HTTPStatus.INTERNAL_SERVER_ERROR,
}
Message = TypeVar("Message", bound=Wire)


class RefusedError(Exception):
    """The request is answered with this error."""

    def __init__(self, code: ErrorCode, message: str, *, status: HTTPStatus | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.status = STATUS_OF[code] if status is None else status


class Call:
    """A request whose token holds; its body is checked against the token as it is read."""

    def __init__(self, request: Request, grant: tokens.Grant) -> None:
        parts = urlsplit(request.target)
        self.method = request.method
        self.path = parts.path
        self.role = grant.role
        self._query = parse_qs(parts.query, max_num_fields=8)
        self._request = request
        self._grant = grant

    @property
    def wait_seconds(self) -> float:
        """How long the caller is willing to wait for a change."""
        given = self._query.get("wait", ["0"])[-1]
        try:
            return max(0.0, min(float(given), float(wire.MAX_WAIT_SECONDS)))
        except ValueError as error:
            raise RefusedError(ErrorCode.BAD_REQUEST, "wait is a number of seconds") from error

    async def chunks(self, *, limit: int) -> AsyncIterator[bytes]:
        """Yield the body; raises RefusedError at its end if it is not the one that was signed."""
        digest = hashlib.sha256()
        try:
            async for chunk in self._request.chunks(limit=limit):
                digest.update(chunk)
                yield chunk
        except BodyTooLargeError as error:
            raise RefusedError(ErrorCode.TOO_LARGE, f"the body is above {limit} bytes") from error
        try:
            self._grant.check_body(digest.hexdigest())
        except tokens.TokenError as error:
            raise _stranger() from error

    async def message(self, model: type[Message]) -> Message:
        """Read the body as one message."""
        raw = b"".join([chunk async for chunk in self.chunks(limit=wire.MAX_JSON_BYTES)])
        try:
            return model.model_validate_json(raw)
        except ValueError as error:
            raise RefusedError(ErrorCode.BAD_REQUEST, f"the body is not a {model.__name__}") from error

    async def no_body(self) -> None:
        """Check that there is none."""
        async for _ in self.chunks(limit=0):
            pass


class Gate:
    """Checks callers and dresses answers."""

    def __init__(self, *, verifier: tokens.Verifier, pod_uid: str, clock: Callable[[], float]) -> None:
        self._verifier = verifier
        self._pod_uid = pod_uid
        self._clock = clock

    def admit(self, request: Request) -> Call:
        """Return the call, or raise RefusedError."""
        bearer = request.headers.get("authorization", "")
        certificate = request.headers.get(wire.HEADER_CERTIFICATE, "")
        if not bearer.startswith(BEARER) or not certificate:
            raise _stranger()
        bound = tokens.Request(audience=self._pod_uid, method=request.method, path=request.target)
        try:
            grant = self._verifier.admit(
                token=bearer.removeprefix(BEARER), certificate=certificate, request=bound, now=self._clock()
            )
        except tokens.TokenError as error:
            if error.replayed:
                raise RefusedError(ErrorCode.REPLAYED, "the token was used before") from error
            raise _stranger() from error
        request.trust()
        try:
            return Call(request, grant)
        except ValueError as error:
            raise RefusedError(ErrorCode.BAD_REQUEST, "the target is not a path and a query") from error

    def dress(self, request: Request, response: Response) -> Response:
        """Add what every answer carries."""
        headers = {
            **response.headers,
            wire.HEADER_POD_UID: self._pod_uid,
            wire.HEADER_TIME: f"{self._clock():.3f}",
        }
        nonce = request.headers.get(wire.HEADER_NONCE, "")
        if nonce and len(nonce) <= MAX_NONCE:
            headers[wire.HEADER_NONCE] = nonce
        return Response(
            status=response.status,
            body=response.body,
            media_type=response.media_type,
            headers=headers,
            file=response.file,
        )


def refuse(refusal: RefusedError) -> Response:
    """Answer with an error."""
    return Response(status=refusal.status, body=ErrorReply(code=refusal.code, message=str(refusal)).to_json())


def require(call: Call, role: tokens.Role) -> None:
    """Refuse who is known but may not."""
    if call.role is not role:
        raise RefusedError(ErrorCode.UNAUTHENTICATED, f"only the {role} may do this", status=HTTPStatus.FORBIDDEN)


def _stranger() -> RefusedError:
    return RefusedError(ErrorCode.UNAUTHENTICATED, "no valid token for this request")
