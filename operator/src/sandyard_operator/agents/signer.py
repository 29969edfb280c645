"""Signing keys for half an hour each, certified by the root, made for whatever time an agent believes it is.

A node's clock may be hours off: a key is then certified for that time. It can be used towards that one agent
and for as long as this process keeps it, so nothing is gained by an agent that lies about the time.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sandyard_api import tokens

PERIOD_SECONDS: Final = 1800  # half a certificate's life: the newest one always has that long to go
KEPT: Final = 8  # this period's and those of clocks that are off


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key and the root's word for it."""

    key: Ed25519PrivateKey
    certificate: str


class Signer:
    """Makes tokens for requests to agents."""

    def __init__(self, root: Ed25519PrivateKey, *, role: tokens.Role = tokens.Role.OPERATOR) -> None:
        self._root = root
        self._role = role
        self._keys: OrderedDict[int, SigningKey] = OrderedDict()

    def sign(self, request: tokens.Request, *, token_id: str, now: float) -> tuple[str, str]:
        """Return a token for a request and the certificate of the key that signed it."""
        signing = self._key(now)
        return tokens.sign(signing.key, request, token_id=token_id, now=now), signing.certificate

    def _key(self, now: float) -> SigningKey:
        period = int(now // PERIOD_SECONDS)
        known = self._keys.get(period)
        if known is None:
            key = Ed25519PrivateKey.generate()
            certificate = tokens.certify(
                self._root, key.public_key(), role=self._role, now=(period + 1) * PERIOD_SECONDS
            )
            known = self._keys[period] = SigningKey(key, certificate)
            while len(self._keys) > KEPT:
                self._keys.popitem(last=False)
        self._keys.move_to_end(period)
        return known
