"""Tokens between a caller (operator, gateway) and one pod's agent: EdDSA, short, bound to one request.

A caller signs with a short-lived key; the root key, whose public half is in the pod's spec since its
creation, certifies that key and its role. A token names the pod (audience), method, path with query, body
digest, an id and an end at most 30 s away. The agent remembers ids until they expire. Clocks are passed in,
so a caller can follow a node whose clock is off. Needs the ``operator`` or ``agent`` extra.

The form is that of a JWT (RFC 7519, RFC 8037) with one algorithm, which the key decides and never the
header: no library is needed for it, and an agent's start is a sixth shorter without one.
"""

import hashlib
import json
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

ALGORITHM: Final = "EdDSA"
TOKEN_SECONDS: Final = 30  # longest life of a token
SKEW_SECONDS: Final = 5  # a token from slightly ahead is still of this moment
CERTIFICATE_SECONDS: Final = 3600
BODY_CLAIM: Final = "bd"


class Role(StrEnum):
    """Who signs. The gateway's keys never cover install, start, claim or acknowledge."""

    OPERATOR = "operator"
    GATEWAY = "gateway"


class TokenError(Exception):
    """The token or its certificate does not hold; ``replayed`` when only its id was seen before."""

    def __init__(self, message: str, *, replayed: bool = False) -> None:
        super().__init__(message)
        self.replayed = replayed


def encode_public(key: Ed25519PublicKey) -> str:
    """Raw public key in base64, as in a pod's spec."""
    return b64encode(key.public_bytes_raw()).decode()


def certify(root: Ed25519PrivateKey, key: Ed25519PublicKey, *, role: Role, now: float) -> str:
    """Have the root key vouch for a signing key for an hour."""
    claims = {"key": encode_public(key), "role": role, "exp": int(now) + CERTIFICATE_SECONDS}
    return _encode(claims, root)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The request a token is bound to; ``path`` with its query."""

    audience: str
    method: str
    path: str
    body: bytes = b""

    def claims(self) -> dict[str, str]:
        """Return the claims that tie a token to this request."""
        return {
            "aud": self.audience,
            "htm": self.method,
            "htu": self.path,
            BODY_CLAIM: hashlib.sha256(self.body).hexdigest(),
        }


def sign(key: Ed25519PrivateKey, request: Request, *, token_id: str, now: float) -> str:
    """Make a token for one request."""
    claims = request.claims() | {
        "jti": token_id,
        "iat": int(now),
        "exp": int(now) + TOKEN_SECONDS - SKEW_SECONDS,
    }
    return _encode(claims, key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A token that holds for everything but the body, which is still to come."""

    role: Role
    body_sha256: str

    def check_body(self, sha256: str) -> None:
        """Raise TokenError unless the body that arrived is the one that was signed."""
        if sha256 != self.body_sha256:
            raise TokenError("the token is for another request")


class Verifier:
    """Checks tokens on the agent's side and remembers their ids until they expire."""

    def __init__(self, roots: Iterable[str]) -> None:
        self._roots = tuple(Ed25519PublicKey.from_public_bytes(b64decode(root, validate=True)) for root in roots)
        self._certified: dict[str, tuple[Ed25519PublicKey, Role, float]] = {}
        self._seen: dict[str, float] = {}

    def verify(self, *, token: str, certificate: str, request: Request, now: float) -> Role:
        """Return the caller's role, or raise TokenError."""
        grant = self.admit(token=token, certificate=certificate, request=request, now=now)
        grant.check_body(hashlib.sha256(request.body).hexdigest())
        return grant.role

    def admit(self, *, token: str, certificate: str, request: Request, now: float) -> "Grant":
        """Check all but the body, which then need not be read from a stranger; the grant checks that."""
        key, role = self._signing_key(certificate, now)
        claims = _decode(token, key)
        issued, expires = claims.get("iat"), claims.get("exp")
        if type(issued) is not int or type(expires) is not int or expires - issued > TOKEN_SECONDS:
            raise TokenError("the token lives too long or has no life")
        if not issued - SKEW_SECONDS <= now < expires + SKEW_SECONDS:
            raise TokenError("the token is expired or not yet valid")
        expected = request.claims()
        body_sha256 = claims.get(BODY_CLAIM)
        del expected[BODY_CLAIM]
        if any(claims.get(name) != value for name, value in expected.items()):
            raise TokenError("the token is for another request")
        token_id = claims.get("jti")
        if not isinstance(token_id, str) or not token_id:
            raise TokenError("the token has no id")
        self._seen = {seen: end for seen, end in self._seen.items() if end > now}
        if token_id in self._seen:
            raise TokenError("the token was used before", replayed=True)
        self._seen[token_id] = expires + SKEW_SECONDS
        return Grant(role=role, body_sha256=str(body_sha256))

    def _signing_key(self, certificate: str, now: float) -> tuple[Ed25519PublicKey, Role]:
        known = self._certified.get(certificate)
        if known is None:
            known = self._read_certificate(certificate)
            self._certified = {certificate: known} | {c: k for c, k in self._certified.items() if k[2] > now}
        key, role, expires = known
        if now >= expires:
            raise TokenError("the signing key's certificate is expired")
        return key, role

    def _read_certificate(self, certificate: str) -> tuple[Ed25519PublicKey, Role, float]:
        for root in self._roots:
            try:
                claims = _decode(certificate, root)
            except TokenError:
                continue
            try:
                raw = b64decode(claims["key"], validate=True)
                return Ed25519PublicKey.from_public_bytes(raw), Role(claims["role"]), float(claims["exp"])
            except (KeyError, TypeError, ValueError) as error:
                raise TokenError("the signing key's certificate is malformed") from error
        raise TokenError("the signing key is not certified by a known root")


def _encode(claims: Mapping[str, Any], key: Ed25519PrivateKey) -> str:
    signed = f"{_HEADER}.{_base64(json.dumps(claims, separators=(',', ':')).encode())}"
    return f"{signed}.{_base64(key.sign(signed.encode()))}"


def _decode(token: str, key: Ed25519PublicKey) -> dict[str, Any]:
    """Return the claims of a token that ``key`` has signed."""
    signed, _, signature = token.rpartition(".")
    header, _, payload = signed.partition(".")
    try:
        key.verify(_bytes(signature), signed.encode("ascii"))
        claims = json.loads(_bytes(payload))
    except (InvalidSignature, ValueError, RecursionError) as error:
        raise TokenError("the signature does not hold") from error
    if header != _HEADER or not isinstance(claims, dict):
        raise TokenError("the token is of another kind")
    return claims


def _base64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


_HEADER: Final = _base64(json.dumps({"alg": ALGORITHM, "typ": "JWT"}, separators=(",", ":")).encode())
