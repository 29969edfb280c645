"""A real API server with its etcd and nothing else, on loopback, for the tests of the contract.

It starts in about three seconds, knows no nodes and runs no controller. Needs the programs
``kube-apiserver``, ``etcd`` and ``kubectl``: from the build of ``make cluster``, or on PATH.
"""

import json
import os
import secrets
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

START_SECONDS: Final = 60
STOP_SECONDS: Final = 20
POLL_SECONDS: Final = 0.05
KEY_BITS: Final = 2048
LOOPBACK: Final = "127.0.0.1"
LOG_TAIL: Final = 3000


class ProgramMissingError(Exception):
    """A program of the control plane is not on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlane:
    """The running API server: a client of it, and kubectl."""

    client: httpx2.Client
    kubeconfig: Path
    kubectl_program: str

    def kubectl(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run kubectl; the caller judges its exit status."""
        return subprocess.run(
            [self.kubectl_program, "--kubeconfig", str(self.kubeconfig), *arguments],
            input=stdin,
            text=True,
            capture_output=True,
            check=False,
            timeout=START_SECONDS,
        )

    def request(self, method: str, path: str, body: Any = None, **query: str) -> httpx2.Response:
        """Make a request with strict field validation, as kubectl does."""
        patch = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}
        return self.client.request(
            method,
            path,
            content=None if body is None else json.dumps(body),
            headers={"Content-Type": "application/json"} | patch,
            params={"fieldValidation": "Strict"} | query,
        )

    def apply(self, path: str, body: Mapping[str, Any], *, manager: str) -> httpx2.Response:
        """Apply on the server's side."""
        return self.client.patch(
            path,
            content=json.dumps(body),
            headers={"Content-Type": "application/apply-patch+yaml"},
            params={"fieldManager": manager, "fieldValidation": "Strict"},
        )


@contextmanager
def control_plane(folder: Path) -> Iterator[ControlPlane]:
    """Start etcd and the API server in a folder, and stop them."""
    etcd_port, peer_port, api_port = _free_ports(3)
    token = secrets.token_hex()
    (folder / "tokens.csv").write_text(f'{token},tests,tests,"system:masters"\n')
    (folder / "tokens.csv").chmod(0o600)
    key = rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)
    (folder / "accounts.key").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    )
    etcd_url, peer_url = f"http://{LOOPBACK}:{etcd_port}", f"http://{LOOPBACK}:{peer_port}"
    etcd = [
        *("--data-dir", str(folder / "etcd"), "--unsafe-no-fsync"),
        *("--listen-client-urls", etcd_url, "--advertise-client-urls", etcd_url),
        *("--listen-peer-urls", peer_url, "--initial-advertise-peer-urls", peer_url),
        *("--initial-cluster", f"default={peer_url}"),
    ]
    api_server = [
        f"--etcd-servers={etcd_url}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={api_port}",
        f"--advertise-address={LOOPBACK}",
        "--endpoint-reconciler-type=none",  # there is no other server to find, and loopback would be refused
        f"--cert-dir={folder / 'certificates'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--allow-privileged",
        f"--service-account-key-file={folder / 'accounts.key'}",
        f"--service-account-signing-key-file={folder / 'accounts.key'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-cluster-ip-range=10.0.0.0/24",
    ]
    server = f"https://{LOOPBACK}:{api_port}"
    with _running("etcd", etcd, folder), _running("kube-apiserver", api_server, folder) as process:
        certificate = folder / "certificates" / "apiserver.crt"
        _wait_for(certificate, process, folder)
        context = ssl.create_default_context(cafile=str(certificate))
        headers = {"Authorization": f"Bearer {token}"}
        with httpx2.Client(base_url=server, headers=headers, verify=context, timeout=START_SECONDS) as client:
            _wait_until_ready(client, process, folder)
            kubeconfig = folder / "kubeconfig"
            kubeconfig.write_text(json.dumps(_kubeconfig(server, certificate, token)))
            yield ControlPlane(client=client, kubeconfig=kubeconfig, kubectl_program=program("kubectl"))


def program(name: str) -> str:
    """Return the path of a program of the control plane."""
    cache = os.environ.get("SANDYARD_CACHE")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sandyard"
    folders = [str((Path(cache) if cache else home) / "node" / "bin"), os.environ["PATH"]]
    found = shutil.which(name, path=os.pathsep.join(folders))
    if found is None:
        raise ProgramMissingError(f"{name} is not built and not on PATH: run `make cluster`")
    return found


@contextmanager
def _running(name: str, arguments: list[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen([program(name), *arguments], stdout=log, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(path: Path, process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not path.exists():
        _check_alive(process, folder, deadline)


def _wait_until_ready(client: httpx2.Client, process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            if client.get("/readyz").is_success:
                return
        except httpx2.TransportError:
            pass
        _check_alive(process, folder, deadline)


def _check_alive(process: subprocess.Popen[bytes], folder: Path, deadline: float) -> None:
    if process.poll() is not None or time.monotonic() > deadline:
        log = (folder / "kube-apiserver.log").read_text()
        raise AssertionError(f"the API server did not start:\n{log[-LOG_TAIL:]}")
    time.sleep(POLL_SECONDS)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server((LOOPBACK, 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _kubeconfig(server: str, certificate: Path, token: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "tests", "cluster": {"server": server, "certificate-authority": str(certificate)}}],
        "users": [{"name": "tests", "user": {"token": token}}],
        "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "tests"}}],
        "current-context": "tests",
    }
