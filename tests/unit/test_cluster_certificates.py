"""Certificates are made once, and again only when they are not what they should be."""

from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509

from sandyard_node import certificates
from sandyard_node.certificates import LIFETIME, RENEW_BEFORE, Identity

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SERVER = Identity("server", "server", ("group",), ("localhost", IPv4Address("127.0.0.1")))


def make(folder: Path, identity: Identity = SERVER, now: datetime = NOW) -> dict[str, bytes]:
    """Make everything and return the files' contents."""
    certificates.issue(certificates.authority(folder, "ca", now=now), identity, now=now)
    certificates.signing_key(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    assert make(tmp_path) == make(tmp_path, now=NOW + timedelta(days=1))


def test_what_is_in_use_has_a_month_and_more_left(tmp_path: Path) -> None:
    make(tmp_path)
    last_kept = NOW + LIFETIME - RENEW_BEFORE - timedelta(seconds=1)
    make(tmp_path, now=last_kept)
    certificate = x509.load_pem_x509_certificate((tmp_path / "server.crt").read_bytes())
    assert certificate.not_valid_after_utc - last_kept > timedelta(days=30)


def test_near_its_end_everything_but_the_signing_key_is_made_anew(tmp_path: Path) -> None:
    first = make(tmp_path)
    second = make(tmp_path, now=NOW + LIFETIME - RENEW_BEFORE)
    assert {name for name in first if first[name] == second[name]} == {"sa.key", "sa.pub"}


@pytest.mark.parametrize("file", ["ca.crt", "ca.key", "server.crt", "server.key", "sa.key", "sa.pub"])
@pytest.mark.parametrize("damage", [b"", b"-----BEGIN CERTIFICATE-----\n", None])
def test_a_half_made_file_is_mended(tmp_path: Path, file: str, damage: bytes | None) -> None:
    make(tmp_path)
    if damage is None:
        (tmp_path / file).unlink()
    else:
        (tmp_path / file).write_bytes(damage)
    mended = make(tmp_path)
    assert mended == make(tmp_path)
    server = x509.load_pem_x509_certificate(mended["server.crt"])
    server.verify_directly_issued_by(x509.load_pem_x509_certificate(mended["ca.crt"]))


@pytest.mark.parametrize("file", ["ca.key", "server.key"])
def test_a_key_of_another_certificate_is_noticed(tmp_path: Path, file: str) -> None:
    make(tmp_path)
    other = make(tmp_path / "other")
    (tmp_path / file).write_bytes(other[file])
    assert make(tmp_path)[file] != other[file]


@pytest.mark.parametrize(
    "other",
    [
        Identity("server", "server", ("group",), ("localhost", IPv4Address("127.0.0.2"))),
        Identity("server", "another", ("group",), SERVER.hosts),
        Identity("server", "server", (), SERVER.hosts),
    ],
)
def test_other_names_need_another_certificate(tmp_path: Path, other: Identity) -> None:
    first = make(tmp_path)
    second = make(tmp_path, other)
    assert first["server.crt"] != second["server.crt"]
    assert first["ca.crt"] == second["ca.crt"]


def test_only_the_owner_reads_a_key(tmp_path: Path) -> None:
    make(tmp_path)
    assert {path.name for path in tmp_path.iterdir() if path.stat().st_mode & 0o077 == 0} == {
        "ca.key",
        "server.key",
        "sa.key",
    }
