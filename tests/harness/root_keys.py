"""Root keys that are the same in every run, so that snapshots of what is signed do not change."""

from base64 import b64decode
from datetime import UTC, datetime
from typing import Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

NOW: Final = datetime(2030, 1, 1, tzinfo=UTC)
SEED: Final = b64decode("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")


def pem(seed: bytes) -> bytes:
    """Return a root key made of a seed, as the Secret has it."""
    return Ed25519PrivateKey.from_private_bytes(seed).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
