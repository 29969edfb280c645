"""What the operator vouches with: the CA of the agents' TLS keys and the root key of tokens and pods.

Pure cryptography over the data of one Secret. Two roots may be known at a time: ``root.key`` signs now, and
``root-next.key`` is told to pods from their creation on so that it can sign later; ``root-previous.key`` is
what older pods were signed with. The same with ``ca.crt``: all certificates in it are trusted, the first one
is the issuer.
"""

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sandyard_api.tokens import encode_public

CA_CERTIFICATE: Final = "ca.crt"
CA_KEY: Final = "ca.key"
ROOT_KEY: Final = "root.key"
ROOT_NEXT_KEY: Final = "root-next.key"
ROOT_PREVIOUS_KEY: Final = "root-previous.key"
CA_LIFE: Final = timedelta(days=3650)
AGENT_LIFE: Final = timedelta(days=90)
AGENT_RENEWAL: Final = timedelta(days=30)  # before its end; far longer than a pod lives
BACKDATED: Final = timedelta(days=1)  # for clocks that are off


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, in PEM."""

    certificate: bytes
    key: bytes

    def lasts(self, now: datetime, ca: x509.Certificate) -> bool:
        """Tell whether the certificate is of that CA and far from its end."""
        try:
            certificate = x509.load_pem_x509_certificate(self.certificate)
            certificate.verify_directly_issued_by(ca)
        except (ValueError, TypeError, InvalidSignature):
            return False
        return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc - AGENT_RENEWAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """The keys, parsed."""

    ca_bundle: str
    ca: x509.Certificate
    ca_key: ec.EllipticCurvePrivateKey
    root: Ed25519PrivateKey
    others: tuple[Ed25519PrivateKey, ...]  # next, previous

    @classmethod
    def read(cls, data: Mapping[str, bytes]) -> Self:
        """Parse a Secret's data; raises ValueError or KeyError where it is not an authority."""
        ca_key = _private(data[CA_KEY])
        if not isinstance(ca_key, ec.EllipticCurvePrivateKey):
            raise ValueError(f"{CA_KEY} is no elliptic curve key")  # noqa: TRY004 - the data are wrong
        return cls(
            ca_bundle=data[CA_CERTIFICATE].decode(),
            ca=x509.load_pem_x509_certificates(data[CA_CERTIFICATE])[0],
            ca_key=ca_key,
            root=_root(data[ROOT_KEY]),
            others=tuple(_root(data[name]) for name in (ROOT_NEXT_KEY, ROOT_PREVIOUS_KEY) if data.get(name)),
        )

    @property
    def root_keys(self) -> tuple[str, ...]:
        """Return the public halves of all roots, as a pod's spec carries them."""
        return tuple(encode_public(key.public_key()) for key in (self.root, *self.others))

    def sign(self, message: bytes) -> bytes:
        """Sign with the root of this moment."""
        return self.root.sign(message)

    def holds(self, signature: bytes, message: bytes) -> bool:
        """Tell whether one of the roots signed the message."""
        return any(_holds(key, signature, message) for key in self.root_keys)

    def issue(self, name: str, *, now: datetime) -> KeyPair:
        """Issue a TLS server key for one DNS name."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _builder(name, issuer=self.ca.subject, now=now, life=AGENT_LIFE)
            .public_key(key.public_key())
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(_usage(ca=False), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.ca_key.public_key()), critical=False)
            .sign(self.ca_key, hashes.SHA256())
        )
        return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), _pem(key))


def generate(*, now: datetime) -> dict[str, bytes]:
    """Make the data of a new authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = "Sandyard agents"
    certificate = (
        _builder(name, issuer=None, now=now, life=CA_LIFE)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(ca=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return {
        CA_CERTIFICATE: certificate.public_bytes(serialization.Encoding.PEM),
        CA_KEY: _pem(key),
        ROOT_KEY: _pem(Ed25519PrivateKey.generate()),
    }


def agent_name(namespace: str) -> str:
    """Return the name in the certificate of a namespace's agents."""
    return f"agent.{namespace}.sandyard.internal"


def _builder(name: str, *, issuer: x509.Name | None, now: datetime, life: timedelta) -> x509.CertificateBuilder:
    # A namespace's name has up to 63 characters: with the rest it may pass the 64 of a common name.
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now.astimezone(UTC) - BACKDATED)
        .not_valid_after(now.astimezone(UTC) + life)
    )


def _usage(*, ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=ca,
        crl_sign=ca,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey | Ed25519PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _private(pem: bytes) -> object:
    return serialization.load_pem_private_key(pem, password=None)


def _root(pem: bytes) -> Ed25519PrivateKey:
    key = _private(pem)
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError("a root key is no Ed25519 key")  # noqa: TRY004 - the data are wrong
    return key


@lru_cache(maxsize=4096)  # a pod is looked at on each of its events, and its signature stays
def _holds(root: str, signature: bytes, message: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(b64decode(root)).verify(signature, message)
    except InvalidSignature:
        return False
    return True
