"""The cluster's certificates: two authorities, one certificate per component, the key that signs tokens.

Each is checked against what it should be and made anew when it is missing, half-made, of another authority, for other
names, or near its end. So one function serves the first start, an aborted one, and one a year later.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sandyard_node.files import write

LIFETIME: Final = timedelta(days=365)
RENEW_BEFORE: Final = timedelta(days=60)  # so that what is in use always has a month and more
BACKDATE: Final = timedelta(days=1)  # clocks differ


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom a certificate speaks for."""

    file: str
    name: str
    groups: tuple[str, ...] = ()
    hosts: tuple[str | IPv4Address, ...] = ()


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority and its files."""

    folder: Path
    file: str
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def path(self) -> Path:
        """Its certificate."""
        return self.folder / f"{self.file}.crt"


def authority(folder: Path, file: str, *, now: datetime) -> Authority:
    """Return an authority, made anew when there is none that lasts."""
    try:
        found = _load(folder, file)
        if _lasts(found.certificate, now) and found.certificate.public_key() == found.key.public_key():
            return found
    except (OSError, ValueError, TypeError):
        pass
    key = ec.generate_private_key(ec.SECP256R1())
    name = _subject(f"sandyard-node {file}", ())
    certificate = (
        _builder(name, name, key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return _save(Authority(folder, file, key, certificate))


def issue(signer: Authority, identity: Identity, *, now: datetime) -> None:
    """Make an identity's key and certificate unless good ones are there."""
    wanted = _subject(identity.name, identity.groups)
    try:
        found = _load(signer.folder, identity.file)
        found.certificate.verify_directly_issued_by(signer.certificate)
        if (
            _lasts(found.certificate, now)
            and found.certificate.public_key() == found.key.public_key()
            and found.certificate.subject == wanted
            and _hosts(found.certificate) == _general_names(identity.hosts)
        ):
            return
    except (OSError, ValueError, TypeError, InvalidSignature):
        pass
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _builder(wanted, signer.certificate.subject, key, now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
        )
    )
    if identity.hosts:
        names = x509.SubjectAlternativeName(_general_names(identity.hosts))
        builder = builder.add_extension(names, critical=False)
    _save(Authority(signer.folder, identity.file, key, builder.sign(signer.key, hashes.SHA256())))


def signing_key(folder: Path) -> None:
    """Make the key pair of service account tokens unless it is there."""
    path = folder / "sa.key"
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError):
        key = ec.generate_private_key(ec.SECP256R1())
        write(path, _pem(key), mode=0o600)
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    write(folder / "sa.pub", public)


def _load(folder: Path, file: str) -> Authority:
    key = serialization.load_pem_private_key((folder / f"{file}.key").read_bytes(), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError(f"{file}.key is of another kind")
    return Authority(folder, file, key, x509.load_pem_x509_certificate((folder / f"{file}.crt").read_bytes()))


def _save(made: Authority) -> Authority:
    write(made.folder / f"{made.file}.key", _pem(made.key), mode=0o600)
    write(made.path, made.certificate.public_bytes(serialization.Encoding.PEM))
    return made


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATE)
        .not_valid_after(now + LIFETIME)
    )


def _subject(name: str, groups: Sequence[str]) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_names(hosts: Sequence[str | IPv4Address]) -> list[x509.GeneralName]:
    return [x509.IPAddress(host) if isinstance(host, IPv4Address) else x509.DNSName(host) for host in hosts]


def _hosts(certificate: x509.Certificate) -> list[x509.GeneralName]:
    try:
        return list(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return []


def _lasts(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_before_utc <= now and now + RENEW_BEFORE < certificate.not_valid_after_utc


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def utc_now() -> datetime:
    """Return the time, as certificates are made with it."""
    return datetime.now(UTC)
