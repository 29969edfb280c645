"""A real agent process on loopback with real TLS and tokens, and a scripted peer on its channel."""

import json
import os
import secrets
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import NameOID

from sandyard_api import names, tokens, wire

DEADLINE_SECONDS: Final = 20.0
POD_UID: Final = "6f1d1a2c-0000-4000-8000-000000000001"
SMALL_BYTES: Final = 1 << 20
HOST: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back."""

    status: int
    body: bytes
    headers: Mapping[str, str]

    def json(self) -> Any:
        """Return the body as JSON."""
        return json.loads(self.body)


@dataclass(slots=True)
class Keys:
    """A root key and signing keys it has certified."""

    root: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    signing: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)

    def certificate(self, role: tokens.Role, *, now: float | None = None) -> str:
        """Certify the signing key."""
        moment = time.time() if now is None else now
        return tokens.certify(self.root, self.signing.public_key(), role=role, now=moment)


class AgentProcess:
    """An agent with a directory tree of its own; a context manager that ends it.

    The pod's directory ``small`` is then a volume of SMALL_BYTES that only the agent sees.
    """

    def __init__(self, root: Path, *, keys: Keys | None = None, options: tuple[str, ...] = (), small: str = "") -> None:
        self.root = root
        self.keys = keys or Keys()
        self._options = options
        self._small = small
        self.process: subprocess.Popen[str] | None = None
        self.port = 0
        for directory in (
            names.CONTROL_DIR,
            names.PACKAGES_DIR,
            names.AGENT_STATE_DIR,
            names.AGENT_SECRET_DIR,
            names.AGENT_TLS_DIR,
        ):
            self.at(directory).mkdir(parents=True, exist_ok=True)
        write_certificate(self.at(names.AGENT_TLS_DIR))

    def at(self, path: str) -> Path:
        """Return a pod's path under this agent's root."""
        return self.root / path.lstrip("/")

    def start(self) -> None:
        """Start the process and wait until it listens."""
        mount = f"mount -t tmpfs -o size={SMALL_BYTES} tmpfs {self.at(self._small)}" if self._small else ""
        room = ["unshare", "--mount", "--propagation=private", "sh", "-c", f'{mount} && exec "$@"', "sh"]
        self.process = subprocess.Popen(
            [
                *(room if self._small else []),
                sys.executable,
                "-I",
                "-m",
                "sandyard_runtime.agent",
                "--root",
                str(self.root),
                "--port",
                "0",
                "--runner-uid",
                str(os.getuid()),
                *self._options,
            ],
            env={
                names.ENV_POD_UID: POD_UID,
                names.ENV_ROOT_KEYS: tokens.encode_public(self.keys.root.public_key()),
            },
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert line.startswith("listening on port "), line + self.process.stderr.read()
        self.port = int(line.rpartition(" ")[2])

    def kill(self) -> None:
        """End the process at once."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def headers(
        self, method: str, path: str, body: bytes = b"", *, role: tokens.Role = tokens.Role.OPERATOR
    ) -> dict[str, str]:
        """Sign a request."""
        bound = tokens.Request(audience=POD_UID, method=method, path=path, body=body)
        return self.headers_for(bound, role=role)

    def headers_for(
        self, bound: tokens.Request, *, role: tokens.Role = tokens.Role.OPERATOR, now: float | None = None
    ) -> dict[str, str]:
        """Sign whatever request is given, at whatever moment."""
        now = time.time() if now is None else now
        token = tokens.sign(self.keys.signing, bound, token_id=secrets.token_hex(16), now=now)
        return {
            "authorization": f"Bearer {token}",
            wire.HEADER_CERTIFICATE: self.keys.certificate(role),
            wire.HEADER_NONCE: secrets.token_hex(8),
        }

    def connect(self, *, timeout: float = DEADLINE_SECONDS) -> ssl.SSLSocket:
        """Open a raw TLS connection."""
        raw = socket.create_connection((HOST, self.port), timeout=timeout)
        return client_context(self.at(names.AGENT_TLS_DIR)).wrap_socket(raw, server_hostname=HOST)

    def send(self, method: str, path: str, body: bytes = b"", *, headers: Mapping[str, str]) -> Answer:
        """Send a request on a connection of its own."""
        connection = HTTPConnection(HOST, self.port, timeout=DEADLINE_SECONDS + wire.MAX_WAIT_SECONDS)
        connection.sock = self.connect(timeout=DEADLINE_SECONDS + wire.MAX_WAIT_SECONDS)
        try:
            connection.request(method, path, body or None, dict(headers))
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(status=response.status, body=response.read(), headers=found)
        finally:
            connection.close()

    def call(
        self,
        method: str,
        path: str,
        message: wire.Wire | bytes = b"",
        *,
        role: tokens.Role = tokens.Role.OPERATOR,
    ) -> Answer:
        """Send a signed request."""
        body = message if isinstance(message, bytes) else message.to_json()
        headers = self.headers(method, path, body, role=role)
        answer = self.send(method, path, body, headers=headers)
        assert answer.headers[wire.HEADER_NONCE] == headers[wire.HEADER_NONCE]
        assert answer.headers[wire.HEADER_POD_UID] == POD_UID
        return answer


def write_certificate(directory: Path, *, authority: bool = True) -> None:
    """Write a self-signed certificate for loopback; only what is no ``authority`` will do for uv."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "agent")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (directory / "tls.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (directory / "tls.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


def client_context(directory: Path) -> ssl.SSLContext:
    """Trust that certificate and nothing else."""
    return ssl.create_default_context(cafile=str(directory / "tls.crt"))
