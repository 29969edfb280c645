"""Keys: what is issued holds, what is old is renewed, and a second root makes a change of keys possible."""

import ssl
from datetime import timedelta

import pytest
from cryptography import x509

from harness.root_keys import NOW, SEED, pem
from sandyard_api import tokens
from sandyard_operator.kube.authority import (
    AGENT_LIFE,
    AGENT_RENEWAL,
    CA_KEY,
    ROOT_KEY,
    ROOT_NEXT_KEY,
    ROOT_PREVIOUS_KEY,
    Authority,
    KeyPair,
    agent_name,
    generate,
)

LONGEST = "n" * 63


@pytest.mark.parametrize("namespace", ["ns", LONGEST])
def test_agent_key_is_for_one_namespace(authority: Authority, namespace: str) -> None:
    pair = authority.issue(agent_name(namespace), now=NOW)
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    certificate.verify_directly_issued_by(authority.ca)
    alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert alternatives.get_values_for_type(x509.DNSName) == [f"agent.{namespace}.sandyard.internal"]
    assert pair.lasts(NOW, authority.ca)


def test_ca_can_be_trusted_by_openssl(authority: Authority) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=authority.ca_bundle)
    assert context.cert_store_stats()["x509_ca"] == 1


def test_key_is_renewed_before_its_end(authority: Authority) -> None:
    pair = authority.issue("a", now=NOW)
    assert pair.lasts(NOW + AGENT_LIFE - AGENT_RENEWAL - timedelta(hours=1), authority.ca)
    assert not pair.lasts(NOW + AGENT_LIFE - AGENT_RENEWAL, authority.ca)


def test_key_of_another_authority_does_not_last(authority: Authority) -> None:
    other = Authority.read(generate(now=NOW))
    assert not other.issue("a", now=NOW).lasts(NOW, authority.ca)
    assert not KeyPair(b"no certificate", b"").lasts(NOW, authority.ca)


def test_next_root_is_told_to_pods_and_signs_nothing_yet() -> None:
    data = generate(now=NOW) | {ROOT_KEY: pem(SEED)}
    now = Authority.read(data)
    announced = Authority.read(data | {ROOT_NEXT_KEY: pem(bytes(32))})
    changed = Authority.read(data | {ROOT_KEY: pem(bytes(32)), ROOT_PREVIOUS_KEY: pem(SEED)})
    assert announced.root_keys == (*now.root_keys, *announced.root_keys[1:])
    assert set(changed.root_keys) == set(announced.root_keys)
    verifier = tokens.Verifier(announced.root_keys)  # of a pod made before the change
    for authority in (announced, changed):
        request = tokens.Request(audience="u", method="GET", path="/")
        certificate = tokens.certify(authority.root, authority.root.public_key(), role=tokens.Role.OPERATOR, now=1.0)
        token = tokens.sign(authority.root, request, token_id=str(id(authority)), now=1.0)
        assert verifier.verify(token=token, certificate=certificate, request=request, now=1.0) is tokens.Role.OPERATOR
    assert changed.holds(now.sign(b"pod"), b"pod"), "a pod signed before the change is still ours"
    assert not now.holds(changed.sign(b"pod"), b"pod")


@pytest.mark.parametrize("name", [CA_KEY, ROOT_KEY])
def test_key_of_another_kind_is_refused(name: str) -> None:
    data = generate(now=NOW)
    data[name] = data[ROOT_KEY if name == CA_KEY else CA_KEY]
    with pytest.raises(ValueError, match="key"):
        Authority.read(data)


def test_signature_on_something_else_does_not_hold(authority: Authority) -> None:
    assert not authority.holds(authority.sign(b"one"), b"other")
