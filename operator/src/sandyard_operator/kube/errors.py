"""The API server's refusals, told apart: what was not done, what may have been done, what never will be.

Read from the status code and the ``Status`` object of the answer (Kubernetes API conventions, "Response
Status Kind"). Pure.
"""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from sandyard_api.quantity import parse
from sandyard_operator.ports import (
    AlreadyExistsError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    PortError,
    RefusalKind,
    RefusedError,
    UnavailableError,
    UnsureError,
)

QUOTA: Final = re.compile(r"exceeded quota: [^,]+, requested: (.*), used: .*, limited: (.*)$", re.DOTALL)
UNAUTHORISED: Final = re.compile(r'User "[^"]*" cannot \w+ resource')  # RBAC's own words
NAMESPACE_ENDING: Final = "NamespaceTerminating"
NAMESPACE_BEGINNING: Final = "error looking up service account"  # a new namespace gets it a moment later
MESSAGE_CHARACTERS: Final = 1024
MISDIRECTED_SECONDS: Final = 5.0  # an administrator has to act; asking faster does not help


def refusal(  # noqa: PLR0911 - one for each kind of answer
    status: int, body: Any, *, retry_after: str = "", write: bool
) -> PortError:
    """Return the error that an answer other than 2xx stands for."""
    details = body if isinstance(body, Mapping) else {}
    reason = details.get("reason", "")
    message = str(details.get("message") or f"HTTP status {status}")[:MESSAGE_CHARACTERS]
    match status:
        case HTTPStatus.NOT_FOUND:
            return NotFoundError(message)
        case HTTPStatus.CONFLICT if reason == "AlreadyExists":
            return AlreadyExistsError(message)
        case HTTPStatus.CONFLICT:
            return ConflictError(message)
        case HTTPStatus.FORBIDDEN:
            return _forbidden(message, details)
        case HTTPStatus.TOO_MANY_REQUESTS | HTTPStatus.UNAUTHORIZED | HTTPStatus.GONE:
            return UnavailableError(message, retry_after=_seconds(retry_after))
        case HTTPStatus.SERVICE_UNAVAILABLE if reason or retry_after or not write:
            # Without a Status it is a proxy's answer, after which a write may still have arrived.
            return UnavailableError(message, retry_after=_seconds(retry_after))
        case _ if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return UnsureError(message) if write else UnavailableError(message)
        case _:
            return RefusedError(RefusalKind.INVALID, message)


def _forbidden(message: str, details: Mapping[str, Any]) -> PortError:
    causes = (details.get("details") or {}).get("causes") or ()
    if any(cause.get("reason") == NAMESPACE_ENDING for cause in causes):
        return RefusedError(RefusalKind.NAMESPACE_ENDING, message)
    quota = QUOTA.search(message)
    if quota is not None:
        alone = _exceeds(quota[1], quota[2])
        return RefusedError(RefusalKind.QUOTA_TOO_SMALL if alone else RefusalKind.QUOTA_TAKEN, message)
    if UNAUTHORISED.search(message):
        return ForbiddenError(f"the operator lacks a right: {message}", retry_after=MISDIRECTED_SECONDS)
    if NAMESPACE_BEGINNING in message:
        return UnavailableError(message)
    return RefusedError(RefusalKind.ADMISSION, message)


def _exceeds(requested: str, limited: str) -> bool:
    """Tell whether a request alone is above the quota: ``a=1,b=2`` against ``a=3,b=1``."""
    most = _amounts(limited)
    try:
        return any(parse(amount) > parse(most[name]) for name, amount in _amounts(requested).items())
    except (KeyError, ValueError):
        return False


def _amounts(text: str) -> dict[str, str]:
    return {name: amount for name, _, amount in (part.partition("=") for part in text.split(","))}


def _seconds(text: str) -> float:
    return float(text) if text.isdecimal() else 0.0
