"""The API server's refusals, as it words them, and what they mean to the core."""

from typing import Any

import pytest

from sandyard_operator.decide.pod import RefusalKind
from sandyard_operator.kube.errors import refusal
from sandyard_operator.ports import (
    AlreadyExistsError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    RefusedError,
    UnavailableError,
    UnsureError,
)

QUOTA = "pods p is forbidden: exceeded quota: q, requested: {}, used: {}, limited: {}"
TAKEN, TOO_SMALL = RefusalKind.QUOTA_TAKEN, RefusalKind.QUOTA_TOO_SMALL


def status(reason: str = "", message: str = "", **details: Any) -> dict[str, Any]:
    return {"kind": "Status", "reason": reason, "message": message, "details": details}


@pytest.mark.parametrize(
    ("code", "body", "expected"),
    [
        (404, status("NotFound"), NotFoundError),
        (409, status("AlreadyExists"), AlreadyExistsError),
        (409, status("Conflict"), ConflictError),
        (401, status("Unauthorized"), UnavailableError),
        (410, status("Expired"), UnavailableError),
        (429, None, UnavailableError),
        (500, status("InternalError"), UnsureError),
        (502, None, UnsureError),
        (503, status("ServiceUnavailable"), UnavailableError),
        (503, None, UnsureError),
        (504, status("Timeout"), UnsureError),
        (400, status("BadRequest"), RefusedError),
        (413, None, RefusedError),
        (302, None, RefusedError),
    ],
)
def test_refused_write(code: int, body: Any, expected: type[Exception]) -> None:
    assert type(refusal(code, body, write=True)) is expected


@pytest.mark.parametrize("code", [500, 502, 503, 504])
def test_failed_read_is_only_unavailable(code: int) -> None:
    assert type(refusal(code, None, write=False)) is UnavailableError


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (QUOTA.format("limits.cpu=2,pods=1", "limits.cpu=9,pods=3", "limits.cpu=10,pods=10"), TAKEN),
        (
            QUOTA.format("limits.cpu=11,pods=1", "limits.cpu=0,pods=0", "limits.cpu=10,pods=9"),
            RefusalKind.QUOTA_TOO_SMALL,
        ),
        (QUOTA.format("limits.memory=1Gi", "limits.memory=0", "limits.memory=1023Mi"), TOO_SMALL),
        (QUOTA.format("limits.odd=1x", "limits.odd=0", "limits.odd=2x"), TAKEN),
        ("failed quota: q: must specify limits.cpu", RefusalKind.ADMISSION),
        ('violates PodSecurity "restricted:latest"', RefusalKind.ADMISSION),
        ("maximum cpu usage per Container is 500m, but limit is 1", RefusalKind.ADMISSION),
    ],
)
def test_forbidden_pod(message: str, kind: RefusalKind) -> None:
    error = refusal(403, status("Forbidden", message), write=True)
    assert isinstance(error, RefusedError)
    assert error.kind is kind


def test_ending_namespace() -> None:
    error = refusal(403, status("Forbidden", "m", causes=[{"reason": "NamespaceTerminating"}]), write=True)
    assert isinstance(error, RefusedError)
    assert error.kind is RefusalKind.NAMESPACE_ENDING


def test_missing_right_is_the_administrators_to_mend() -> None:
    message = 'pods is forbidden: User "system:serviceaccount:a:b" cannot create resource "pods" in API group ""'
    error = refusal(403, status("Forbidden", message), write=True)
    assert isinstance(error, ForbiddenError)
    assert error.retry_after > 0


def test_new_namespace_without_its_account_is_only_early() -> None:
    message = 'pods "p" is forbidden: error looking up service account a/default: serviceaccount "default" not found'
    assert type(refusal(403, status("Forbidden", message), write=True)) is UnavailableError


def test_delay_is_read() -> None:
    error = refusal(429, None, retry_after="3", write=True)
    assert isinstance(error, UnavailableError)
    assert error.retry_after == 3


@pytest.mark.parametrize("text", ["", "soon", "Wed, 21 Oct 2015 07:28:00 GMT", "-1"])
def test_odd_delay_is_none(text: str) -> None:
    error = refusal(429, None, retry_after=text, write=True)
    assert isinstance(error, UnavailableError)
    assert error.retry_after == 0


def test_long_message_is_cut() -> None:
    assert len(str(refusal(400, status("BadRequest", "x" * 5000), write=True))) == 1024


def test_unknown_status_has_words() -> None:
    assert str(refusal(599, None, write=True))
