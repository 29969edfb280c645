"""Every reason an install can fail for, each met for real against a private index with a password."""

import hashlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.agent import write_certificate
from harness.fault_proxy import Reply, fault_proxy
from harness.index import PASSWORD, USER, Index, free_port, make_sdist, make_wheel, serve_index
from harness.pod import Pod, ask, ready_pod


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with serve_index(tmp_path_factory.mktemp("index")) as index:
        fill(index.packages)
        yield index


def fill(packages: Path) -> None:
    make_wheel(packages, "plain", "1.0")
    make_wheel(packages, "plain", "1.1")
    make_wheel(packages, "needs_old", "1.0", requires=["plain<1.1"])
    make_wheel(packages, "needs_new", "1.0", requires=["plain>=1.1"])
    make_wheel(packages, "needs_absent", "1.0", requires=["no-such-thing"])
    make_wheel(packages, "needs_future", "1.0", requires=["plain>=7"])
    make_wheel(packages, "windows_only", "1.0", tag="cp313-cp313-win_amd64")
    make_wheel(packages, "later_python", "1.0", requires_python=">=3.99")
    canary = packages.parent / "canary"
    make_sdist(packages, "from_source", "1.0", setup=f"open({str(canary)!r}, 'w').close()\n")
    truncated = make_wheel(packages, "truncated", "1.0", files={"truncated.py": b"x = 1\n" * 9000})
    truncated.write_bytes(truncated.read_bytes()[:-200])


@pytest.fixture
def pod(tmp_path: Path) -> Iterator[Pod]:
    with ready_pod(tmp_path) as pod:
        yield pod


def test_a_package_is_installed(pod: Pod, index: Index) -> None:
    status = pod.install(ask(index, "needs-old"))
    assert status["phase"] == "succeeded", status
    assert (pod.site / "plain" / "__init__.py").read_text() == "version = '1.0'\n"
    wheel = next(index.packages.glob("plain-1.0-*.whl"))
    assert {
        "name": "plain",
        "version": "1.0",
        "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
    } in status["packages"]
    assert len(status["lockSHA256"]) == 64


@pytest.mark.parametrize(
    ("requirements", "reason"),
    [
        (["no-such-thing"], "DependencyNotFound"),
        (["needs-absent"], "DependencyNotFound"),
        (["plain==7"], "DependencyNotFound"),
        (["plain>=2"], "DependencyNotFound"),
        (["needs-future"], "DependencyNotFound"),
        (["from-source"], "NoWheelAvailable"),
        (["windows-only"], "NoWheelAvailable"),
        (["later-python"], "NoWheelAvailable"),
        (["needs-old", "needs-new"], "DependencyConflict"),
        (["plain==1.0", "needs-new"], "DependencyConflict"),
        (["plain==1.0", "plain>1.0"], "DependencyConflict"),
        (["truncated"], "InstallFailed"),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, list) else value,
)
def test_what_the_index_has_not_is_named(pod: Pod, index: Index, requirements: list[str], reason: str) -> None:
    status = pod.install(ask(index, *requirements))
    assert (status["phase"], status["reason"]) == ("failed", reason), status
    assert status["message"]
    assert_discreet(status, index)
    assert not (index.packages.parent / "canary").exists()


def test_a_wrong_password_is_an_auth_failure(pod: Pod, index: Index) -> None:
    status = pod.install(ask(index, "plain", access={"netrc": index.netrc(password="wrong-password")}))
    assert status["reason"] == "IndexAuthFailed", status
    assert_discreet(status, index)
    assert "wrong-password" not in json.dumps(status)


def test_no_password_is_an_auth_failure(pod: Pod, index: Index) -> None:
    assert pod.install(ask(index, "plain", access={"netrc": ""}))["reason"] == "IndexAuthFailed"


@pytest.mark.parametrize(
    "url",
    [f"http://127.0.0.1:{free_port()}/simple/", "http://index.invalid/simple/", "https://{host}/simple/"],
    ids=["refused", "no such host", "no TLS"],
)
def test_an_index_that_does_not_answer_is_unavailable(pod: Pod, index: Index, url: str) -> None:
    url = url.format(host=f"127.0.0.1:{index.port}")
    status = pod.install(ask(index, "plain", access={"url": url}))
    assert status["reason"] == "IndexUnavailable", status
    assert "127.0.0.1" not in json.dumps(status)
    assert "index.invalid" not in json.dumps(status)


def through(index: Index, port: int) -> dict[str, str]:
    return {"url": index.url.replace(str(index.port), str(port))}


def is_wheel(path: str) -> bool:
    return path.startswith("/packages/") and path.endswith(".whl")


@pytest.mark.parametrize("status", [500, 503, 429])
def test_an_index_that_fails_is_unavailable(pod: Pod, index: Index, status: int) -> None:
    def fail(_path: str, _reply: Reply) -> Reply:
        return Reply(status=status, body=b"oops")

    with fault_proxy(index.port, fail) as port:
        answer = pod.install(ask(index, "plain", access=through(index, port)))
    assert answer["reason"] == "IndexUnavailable", answer
    assert_discreet(answer, index)


def test_an_index_that_lists_what_it_does_not_serve_is_unavailable(pod: Pod, index: Index) -> None:
    def lose(path: str, reply: Reply) -> Reply:
        return Reply(status=404, body=b"") if is_wheel(path) else reply

    with fault_proxy(index.port, lose) as port:
        assert pod.install(ask(index, "plain", access=through(index, port)))["reason"] == "IndexUnavailable"


def test_an_index_that_refuses_the_download_is_an_auth_failure(pod: Pod, index: Index) -> None:
    def refuse(path: str, reply: Reply) -> Reply:
        return Reply(status=403, body=b"") if is_wheel(path) else reply

    with fault_proxy(index.port, refuse) as port:
        assert pod.install(ask(index, "plain", access=through(index, port)))["reason"] == "IndexAuthFailed"


def test_a_wheel_that_is_not_what_the_index_says_is_a_hash_mismatch(pod: Pod, index: Index, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = make_wheel(tmp_path / "other", "plain", "1.1", files={"plain/__init__.py": b"evil = True\n"})

    def swap(path: str, reply: Reply) -> Reply:
        return Reply(status=200, body=other.read_bytes()) if is_wheel(path) else reply

    with fault_proxy(index.port, swap) as port:
        status = pod.install(ask(index, "plain", access=through(index, port)))
    assert status["reason"] == "HashMismatch", status
    assert_discreet(status, index)


def test_an_index_behind_an_authority_of_its_own(pod: Pod, index: Index, tmp_path: Path) -> None:
    (tmp_path / "tls").mkdir()
    write_certificate(tmp_path / "tls", authority=False)
    authority = (tmp_path / "tls" / "tls.crt").read_text()
    with fault_proxy(index.port, lambda _path, reply: reply, tls=tmp_path / "tls") as port:
        access = {"url": f"https://127.0.0.1:{port}/simple/", "ca_bundle": authority}
        assert pod.install(ask(index, "plain", access=access))["phase"] == "succeeded"


def test_an_index_with_an_authority_nobody_named_is_unavailable(pod: Pod, index: Index, tmp_path: Path) -> None:
    (tmp_path / "tls").mkdir()
    write_certificate(tmp_path / "tls", authority=False)
    with fault_proxy(index.port, lambda _path, reply: reply, tls=tmp_path / "tls") as port:
        access = {"url": f"https://127.0.0.1:{port}/simple/"}
        assert pod.install(ask(index, "plain", access=access))["reason"] == "IndexUnavailable"


def test_a_slow_index_ends_at_the_time_given(pod: Pod, index: Index) -> None:
    stall = threading.Event()

    def crawl(path: str, reply: Reply) -> Reply:
        reply.stall = stall if is_wheel(path) else None
        return reply

    with fault_proxy(index.port, crawl) as port:
        status = pod.install(ask(index, "plain", access=through(index, port), timeout_seconds=3))
        stall.set()
    assert status["reason"] == "InstallTimeout", status
    assert 3000 <= status["milliseconds"] < 15000


def assert_discreet(status: dict[str, Any], index: Index) -> None:
    text = json.dumps(status)
    for secret in (PASSWORD, USER, index.url, f"127.0.0.1:{index.port}"):
        assert secret not in text
