"""The agent's door: who is let in, what strangers learn, and that one caller never starves another."""

import contextlib
import socket
import ssl
import time
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import pytest

from harness.agent import HOST, POD_UID, AgentProcess, Keys, client_context
from sandyard_api import names, tokens, wire
from sandyard_api.tokens import Role
from sandyard_runtime.agent.bundle import MAX_BUNDLE_BYTES
from sandyard_runtime.agent.server import BODY_SECONDS, HEAD_SECONDS, MAX_CONNECTIONS

STRANGER = {"code": "Unauthenticated", "message": "no valid token for this request"}


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentProcess]:
    with AgentProcess(tmp_path_factory.mktemp("agent")) as agent:
        yield agent


def test_health_needs_no_token(agent: AgentProcess) -> None:
    assert agent.send("GET", wire.PATH_HEALTH, headers={}).status == 200


def test_the_version_is_the_products(agent: AgentProcess) -> None:
    assert agent.call("GET", wire.PATH_STATUS).json()["version"] == version("sandyard")


def test_every_answer_carries_nonce_pod_and_clock(agent: AgentProcess) -> None:
    headers = agent.headers("GET", wire.PATH_STATUS)
    for sent in (headers, {wire.HEADER_NONCE: "n"}):
        answer = agent.send("GET", wire.PATH_STATUS, headers=sent)
        assert answer.headers[wire.HEADER_NONCE] == sent[wire.HEADER_NONCE]
        assert answer.headers[wire.HEADER_POD_UID] == POD_UID
        assert abs(float(answer.headers[wire.HEADER_TIME]) - time.time()) < 5


@pytest.mark.parametrize("path", [wire.PATH_STATUS, wire.PATH_BUNDLE, f"{wire.PATH_RUNS}/x", "/", "/etc/passwd"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_stranger_learns_nothing(agent: AgentProcess, method: str, path: str) -> None:
    answer = agent.send(method, path, headers={})
    assert (answer.status, answer.json()) == (401, STRANGER)


def test_a_token_opens_exactly_one_request(agent: AgentProcess) -> None:
    path = f"{wire.PATH_STATUS}?wait=0"
    headers = agent.headers("GET", path)
    assert agent.send("GET", path, headers=headers).status == 200
    replay = agent.send("GET", path, headers=headers)
    assert (replay.status, replay.json()["code"]) == (401, "Replayed")


@pytest.mark.parametrize(
    "changes",
    [
        {"audience": "another-pod"},
        {"method": "POST"},
        {"path": f"{wire.PATH_STATUS}?wait=25"},
        {"body": b"x"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_token_for_anything_else_is_a_strangers(agent: AgentProcess, changes: dict[str, Any]) -> None:
    bound = {"audience": POD_UID, "method": "GET", "path": wire.PATH_STATUS} | changes
    answer = agent.send("GET", wire.PATH_STATUS, headers=agent.headers_for(tokens.Request(**bound)))
    assert (answer.status, answer.json()) == (401, STRANGER)


@pytest.mark.parametrize("skew", [-60.0, 60.0])
def test_a_token_of_another_moment_is_a_strangers(agent: AgentProcess, skew: float) -> None:
    bound = tokens.Request(audience=POD_UID, method="GET", path=wire.PATH_STATUS)
    headers = agent.headers_for(bound, now=time.time() + skew)
    assert agent.send("GET", wire.PATH_STATUS, headers=headers).json() == STRANGER


def test_a_key_the_root_never_certified_is_a_strangers(agent: AgentProcess) -> None:
    foreign = Keys()
    headers = agent.headers("GET", wire.PATH_STATUS)
    headers[wire.HEADER_CERTIFICATE] = foreign.certificate(Role.OPERATOR)
    assert agent.send("GET", wire.PATH_STATUS, headers=headers).json() == STRANGER


def test_an_expired_certificate_is_a_strangers(agent: AgentProcess) -> None:
    headers = agent.headers("GET", wire.PATH_STATUS)
    old = time.time() - tokens.CERTIFICATE_SECONDS - 1
    headers[wire.HEADER_CERTIFICATE] = agent.keys.certificate(Role.OPERATOR, now=old)
    assert agent.send("GET", wire.PATH_STATUS, headers=headers).json() == STRANGER


def test_a_body_that_was_not_signed_is_a_strangers(agent: AgentProcess) -> None:
    signed, sent = b'{"requirements":[]}', b'{"requirements":["six"]}'
    headers = agent.headers("POST", wire.PATH_REQUIREMENTS, signed)
    assert agent.send("POST", wire.PATH_REQUIREMENTS, sent, headers=headers).json() == STRANGER


def test_a_strangers_body_is_never_read(agent: AgentProcess) -> None:
    with agent.connect() as connection:
        connection.sendall(b"POST /v1/bundle HTTP/1.1\r\nhost: a\r\ncontent-length: 83886080\r\n\r\n")
        assert connection.recv(15) == b"HTTP/1.1 401 Un"


def test_a_body_above_its_bound_is_refused_before_it_is_sent(agent: AgentProcess) -> None:
    body = b""
    head = agent.headers("POST", wire.PATH_BUNDLE, body) | {"content-length": str(MAX_BUNDLE_BYTES + 1)}
    answer = raw(agent, "POST", wire.PATH_BUNDLE, head)
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_chunked_body_above_its_bound_is_cut_off(agent: AgentProcess) -> None:
    head = agent.headers("POST", wire.PATH_REQUIREMENTS, b"") | {"transfer-encoding": "chunked"}
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    answer = raw(agent, "POST", wire.PATH_REQUIREMENTS, head, chunk * 17)
    assert answer.startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda data: data[:4], "inside its manifest"),
        (lambda data: data[:40], "inside its manifest"),
        (lambda data: data[:-1], "not what the manifest says"),
        (lambda data: data + b"x", "goes on after"),
        (lambda data: b"\xff" * 8 + data[8:], "too large"),
        (lambda data: bytes(8) + data[8:], "empty"),
        (lambda data: data[:8] + b"[" + data[9:], "not one"),
    ],
    ids=["no length", "cut manifest", "cut blob", "more", "huge length", "no manifest", "no JSON"],
)
def test_a_bundle_that_lies_is_refused(agent: AgentProcess, spoil: object, message: str) -> None:
    answer = agent.call("POST", wire.PATH_BUNDLE, spoil(make_bundle().encode()))  # type: ignore[operator]
    assert answer.status == 400
    assert message in answer.json()["message"]


@pytest.mark.parametrize("path", ["../a", "/a", "a/../b", "a//b", "./a", "", ".", "a\nb", "a\x00b", "a" * 4097])
def test_a_file_that_leaves_the_workspace_is_refused(agent: AgentProcess, path: str) -> None:
    answer = agent.call("POST", wire.PATH_BUNDLE, make_bundle(path).encode())
    assert (answer.status, answer.json()["code"]) == (400, "BadRequest")


def make_bundle(*paths: str) -> wire.Bundle:
    limits = wire.RunLimits(stdout_bytes=1, stderr_bytes=1, artifact_bytes=1, disk_bytes=1, open_files=1, processes=1)
    blobs = (b"code", *(b"file" for _ in paths))
    parts = [wire.part_of(wire.PartKind.CODE, blobs[0])]
    parts += [wire.part_of(wire.PartKind.FILE, b"file", path=path) for path in paths]
    return wire.Bundle(wire.BundleManifest(salt="s", limits=limits, parts=tuple(parts)), blobs)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/nothing", 404),
        (f"{wire.PATH_RUNS}/a/b", 404),
        (f"{wire.PATH_RUNS}/..", 400),
        (f"{wire.PATH_RUNS}/", 400),
    ],
)
def test_unknown_paths_are_refused(agent: AgentProcess, path: str, status: int) -> None:
    assert agent.call("GET", path).status == status


@pytest.mark.parametrize(("wait", "status"), [("x", 400), ("nan", 200), ("-1", 200), ("0.05", 200)])
def test_odd_waits_do_no_harm(agent: AgentProcess, wait: str, status: int) -> None:
    assert agent.call("GET", f"{wire.PATH_RUNS}/gone?wait={wait}").status == status


def test_a_caller_that_asks_first_is_told_to_go_on(agent: AgentProcess) -> None:
    body = wire.ProbeRequest(host=HOST, port=1).to_json()
    headers = agent.headers("POST", wire.PATH_PROBE, body)
    headers |= {"content-length": str(len(body)), "expect": "100-continue"}
    with agent.connect() as connection:
        connection.sendall(request_head("POST", wire.PATH_PROBE, headers))
        assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
        connection.sendall(body)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_one_connection_carries_many_requests(agent: AgentProcess) -> None:
    with agent.connect() as connection:
        for _ in range(3):
            connection.sendall(request_head("GET", wire.PATH_HEALTH, {}))
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("junk", [b"\x00\x01\x02\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"A" * 20000, b"GET /\r\n\r\n"])
def test_what_is_not_http_is_turned_away(agent: AgentProcess, junk: bytes) -> None:
    with agent.connect() as connection:
        connection.sendall(junk)
        assert connection.recv(12).startswith(b"HTTP/1.1 4")


def test_plain_text_is_turned_away(agent: AgentProcess) -> None:
    with socket.create_connection((HOST, agent.port), timeout=10) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            assert b"HTTP" not in connection.recv(100)


def test_tls_below_1_3_is_turned_away(agent: AgentProcess) -> None:
    context = client_context(agent.at(names.AGENT_TLS_DIR))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with socket.create_connection((HOST, agent.port), timeout=10) as raw_socket, pytest.raises(ssl.SSLError):
        context.wrap_socket(raw_socket, server_hostname=HOST)


def test_a_head_that_never_ends_is_cut_off(agent: AgentProcess) -> None:
    with agent.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\n")
        began = time.monotonic()
        assert connection.recv(100) == b""
        assert HEAD_SECONDS - 1 < time.monotonic() - began < HEAD_SECONDS + 10


def test_a_body_that_never_comes_is_cut_off(agent: AgentProcess) -> None:
    head = agent.headers("POST", wire.PATH_REQUIREMENTS, b"x" * 10) | {"content-length": "10"}
    began = time.monotonic()
    assert raw(agent, "POST", wire.PATH_REQUIREMENTS, head, b"x") == b""
    assert BODY_SECONDS - 1 < time.monotonic() - began < BODY_SECONDS + 10


def test_a_crowd_of_silent_connections_locks_nobody_out(agent: AgentProcess) -> None:
    with contextlib.ExitStack() as crowd:
        for _ in range(MAX_CONNECTIONS + 40):
            crowd.enter_context(socket.create_connection((HOST, agent.port), timeout=10))
        for _ in range(5):
            assert agent.call("GET", wire.PATH_STATUS).status == 200


def test_a_crowd_leaves_proven_connections_alone(agent: AgentProcess) -> None:
    with agent.connect() as proven, contextlib.ExitStack() as crowd:
        proven.sendall(request_head("GET", wire.PATH_STATUS, agent.headers("GET", wire.PATH_STATUS)))
        assert proven.recv(65536).startswith(b"HTTP/1.1 200 ")
        for _ in range(MAX_CONNECTIONS + 40):
            crowd.enter_context(socket.create_connection((HOST, agent.port), timeout=10))
        proven.sendall(request_head("GET", wire.PATH_STATUS, agent.headers("GET", wire.PATH_STATUS)))
        assert proven.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_the_probe_tells_open_from_closed(agent: AgentProcess) -> None:
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
        answer = agent.call("POST", wire.PATH_PROBE, wire.ProbeRequest(host=HOST, port=port))
        assert answer.json() == {"connected": True, "error": "", "installerGone": True}
    answer = agent.call("POST", wire.PATH_PROBE, wire.ProbeRequest(host=HOST, port=port))
    assert answer.json() == {"connected": False, "error": "ECONNREFUSED", "installerGone": True}


def raw(agent: AgentProcess, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> bytes:
    with agent.connect() as connection:
        connection.sendall(request_head(method, path, headers))
        with contextlib.suppress(ConnectionError):
            connection.sendall(body)
        answer = b""
        with contextlib.suppress(ConnectionError):
            while piece := connection.recv(65536):
                answer += piece
        return answer


def request_head(method: str, path: str, headers: dict[str, str]) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "host: a", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()
