"""Tokens between a caller and an agent: what opens a request, and all that does not."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from sandyard_api.tokens import (
    CERTIFICATE_SECONDS,
    SKEW_SECONDS,
    TOKEN_SECONDS,
    Request,
    Role,
    TokenError,
    Verifier,
    certify,
    encode_public,
    sign,
)

NOW = 1_800_000_000.0
ROOT, KEY = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
REQUEST = Request(audience="pod", method="POST", path="/v1/runs/a?wait=1", body=b"body")
CERTIFICATE = certify(ROOT, KEY.public_key(), role=Role.OPERATOR, now=NOW)


def verifier() -> Verifier:
    return Verifier([encode_public(Ed25519PrivateKey.generate().public_key()), encode_public(ROOT.public_key())])


def token(*, token_id: str = "id", now: float = NOW) -> str:  # noqa: S107 - an id
    return sign(KEY, REQUEST, token_id=token_id, now=now)


def verify(given: str, *, certificate: str = CERTIFICATE, request: Request = REQUEST, now: float = NOW) -> Role:
    return verifier().verify(token=given, certificate=certificate, request=request, now=now)


def part(token: str, index: int) -> dict[str, Any]:
    text = token.split(".")[index]
    found: dict[str, Any] = json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return found


def with_part(token: str, index: int, value: Any) -> str:
    parts = token.split(".")
    parts[index] = urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
    return ".".join(parts)


@pytest.mark.parametrize("role", Role)
def test_the_certificate_says_who_calls(role: Role) -> None:
    assert verify(token(), certificate=certify(ROOT, KEY.public_key(), role=role, now=NOW)) is role


def test_it_is_a_jwt_as_the_world_knows_them() -> None:
    assert part(token(), 0) == {"alg": "EdDSA", "typ": "JWT"}
    assert part(token(), 1)["aud"] == "pod"


@pytest.mark.parametrize(
    "changes", [{"audience": "other"}, {"method": "GET"}, {"path": "/v1/runs/a"}, {"body": b"other"}], ids=str
)
def test_it_opens_one_request_only(changes: dict[str, Any]) -> None:
    fields = {"audience": "pod", "method": "POST", "path": "/v1/runs/a?wait=1", "body": b"body"} | changes
    with pytest.raises(TokenError):
        verify(token(), request=Request(**fields))


def test_it_opens_it_once() -> None:
    agent = verifier()
    agent.verify(token=token(), certificate=CERTIFICATE, request=REQUEST, now=NOW)
    with pytest.raises(TokenError) as caught:
        agent.verify(token=token(), certificate=CERTIFICATE, request=REQUEST, now=NOW + 1)
    assert caught.value.replayed


def test_its_id_is_remembered_to_its_very_end() -> None:
    agent = verifier()
    agent.verify(token=token(), certificate=CERTIFICATE, request=REQUEST, now=NOW)
    last = NOW + TOKEN_SECONDS - 0.001
    with pytest.raises(TokenError) as caught:
        agent.verify(token=token(), certificate=CERTIFICATE, request=REQUEST, now=last)
    assert caught.value.replayed


@pytest.mark.parametrize(
    ("after", "holds"), [(-SKEW_SECONDS - 0.1, False), (-SKEW_SECONDS, True), (29.9, True), (30, False)]
)
def test_its_life_is_short(after: float, *, holds: bool) -> None:
    if holds:
        verify(token(), now=NOW + after)
    else:
        with pytest.raises(TokenError):
            verify(token(), now=NOW + after)


def test_a_certificate_lives_an_hour() -> None:
    late = NOW + CERTIFICATE_SECONDS
    verify(token(now=late - 1), now=late - 1)
    with pytest.raises(TokenError):
        verify(token(now=late), now=late)


def test_a_certificate_of_another_root_is_none() -> None:
    foreign = certify(Ed25519PrivateKey.generate(), KEY.public_key(), role=Role.OPERATOR, now=NOW)
    with pytest.raises(TokenError):
        verify(token(), certificate=foreign)


def test_a_certificate_is_no_token_and_a_token_no_certificate() -> None:
    for pair in ((CERTIFICATE, CERTIFICATE), (token(), token())):
        with pytest.raises(TokenError):
            verify(pair[0], certificate=pair[1])


@pytest.mark.parametrize("header", [{"alg": "none"}, {"alg": "HS256", "typ": "JWT"}, {"alg": "EdDSA"}], ids=str)
def test_the_header_decides_nothing(header: dict[str, str]) -> None:
    with pytest.raises(TokenError):
        verify(with_part(token(), 0, header))


def test_changed_claims_break_the_signature() -> None:
    longer = part(token(), 1) | {"exp": int(NOW) + 10_000}
    with pytest.raises(TokenError):
        verify(with_part(token(), 1, longer))


@given(st.text() | st.text(alphabet="ab.=-_", max_size=40))
def test_no_text_raises_anything_else(text: str) -> None:
    for certificate in (CERTIFICATE, text):
        with pytest.raises(TokenError):
            verify(text, certificate=certificate)
