"""What may be published: files with a RECORD, within bounds, and nothing that runs by itself."""

import json
import random
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.index import HOST, Index, make_wheel, serve_index
from harness.pair import make_bundle
from harness.pod import MEGABYTE, Pod, ScriptedPod, ask, ready_pod
from sandyard_api import names, wire

SIZED = 300_000  # bytes of the big package's one file


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with serve_index(tmp_path_factory.mktemp("index")) as index:
        fill(index.packages)
        yield index


def fill(packages: Path) -> None:
    make_wheel(packages, "plain", "1.0")
    scripts = {
        "handy.py": b"value = 1\n",
        "handy.pth": b"import os; os.environ['HARM'] = '1'\n",
        "handy-1.0.data/scripts/handy": b"#!python\nprint('hi')\n",
        "handy-1.0.data/data/share/handy.txt": b"data\n",
    }
    make_wheel(packages, "handy", "1.0", files=scripts)
    make_wheel(packages, "unlisted", "1.0", unlisted={"extra.py": b"x = 1\n"})
    make_wheel(packages, "wrong", "1.0", record={"wrong/__init__.py": "wrong/__init__.py,sha256=AAAA,18"})
    make_wheel(packages, "climbing", "1.0", unlisted={"../../escaped.py": b"x = 1\n"})
    make_wheel(packages, "big", "1.0", files={"big.py": b"#" * SIZED})
    make_wheel(packages, "random", "1.0", files={"random.bin": random.Random(1).randbytes(2 * MEGABYTE)})  # noqa: S311
    make_wheel(packages, "bomb", "1.0", files={"bomb.bin": bytes(64 * MEGABYTE)})
    make_wheel(packages, "many", "1.0", files={f"many/{number}.py": b"" for number in range(50)})
    shared = {"space/__init__.py": b"# shared\n"}
    make_wheel(packages, "part_one", "1.0", files=shared | {"space/one.py": b"one = 1\n"})
    make_wheel(packages, "part_two", "1.0", files=shared | {"space/two.py": b"two = 2\n"})


@pytest.fixture
def pod(tmp_path: Path) -> Iterator[ScriptedPod]:
    with ready_pod(tmp_path) as pod:
        yield pod


def test_scripts_and_path_files_are_left_out(pod: Pod, index: Index) -> None:
    assert pod.install(ask(index, "handy"))["phase"] == "succeeded"
    assert (pod.site / "handy.py").exists()
    assert (pod.site / "share" / "handy.txt").exists()
    assert not (pod.site / "handy.pth").exists()
    assert not (pod.site / "bin").exists()


def test_what_is_published_is_readable_by_the_runner_and_writable_by_no_other(pod: Pod, index: Index) -> None:
    pod.install(ask(index, "handy"))
    for path in (pod.site, *pod.site.rglob("*")):
        assert path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644)
        assert not path.is_symlink()
        assert path.is_dir() or path.stat().st_nlink == 1


@pytest.mark.parametrize("name", ["unlisted", "wrong"])
def test_a_wheel_that_breaks_its_record_is_refused(pod: Pod, index: Index, name: str) -> None:
    status = pod.install(ask(index, name))
    assert (status["phase"], status["reason"]) == ("failed", "InstallFailed"), status
    assert "RECORD" in status["message"]


def test_a_wheel_never_writes_outside(pod: Pod, index: Index) -> None:
    pod.install(ask(index, "climbing"))
    assert not list(pod.agent.root.rglob("escaped.py"))


def test_two_packages_may_share_a_file(pod: Pod, index: Index) -> None:
    assert pod.install(ask(index, "part-one", "part-two"))["phase"] == "succeeded"
    assert {"one.py", "two.py"} <= {entry.name for entry in (pod.site / "space").iterdir()}


def test_bytes_are_capped_exactly(pod: Pod, index: Index, tmp_path: Path) -> None:
    assert pod.install(ask(index, "big"))["phase"] == "succeeded"
    size = sum(path.stat().st_size for path in pod.site.rglob("*") if path.is_file())
    for above, phase in ((0, "succeeded"), (1, "failed")):
        with ready_pod(tmp_path / phase) as other:
            status = other.install(ask(index, "big", max_bytes=size - above))
            assert status["phase"] == phase, status
            assert above == 0 or status["reason"] == "InstallFailed"


def test_files_are_capped_exactly(pod: Pod, index: Index, tmp_path: Path) -> None:
    assert pod.install(ask(index, "many"))["phase"] == "succeeded"
    count = sum(path.is_file() for path in pod.site.rglob("*"))
    for above, phase in ((0, "succeeded"), (1, "failed")):
        with ready_pod(tmp_path / phase) as other:
            assert other.install(ask(index, "many", max_files=count - above))["phase"] == phase


def test_a_bomb_is_stopped_while_it_grows(pod: Pod, index: Index) -> None:
    status = pod.install(ask(index, "bomb", max_bytes=MEGABYTE))
    assert (status["phase"], status["reason"]) == ("failed", "InstallFailed"), status


def test_a_full_disk_is_an_install_failure(index: Index, tmp_path: Path) -> None:
    with ready_pod(tmp_path, small=names.PACKAGES_DIR) as pod:
        status = pod.install(ask(index, "random"))
    assert (status["phase"], status["reason"]) == ("failed", "InstallFailed"), status
    assert "No space left" in status["message"]


def test_nothing_is_installed_once_a_run_was_accepted(pod: ScriptedPod, index: Index) -> None:
    inputs = make_bundle(b"pass")
    pod.agent.call("POST", wire.PATH_BUNDLE, inputs.encode())
    start = wire.StartRequest(epoch=1, input_digest=inputs.digest, run_timeout_seconds=9)
    assert pod.agent.call("POST", f"{wire.PATH_RUNS}/a", start).status == 200
    assert pod.agent.call("POST", wire.PATH_INSTALL, ask(index, "plain")).json()["code"] == "Conflict"


def test_no_run_starts_beside_an_installer(pod: ScriptedPod, index: Index) -> None:
    inputs = make_bundle(b"pass")
    pod.agent.call("POST", wire.PATH_BUNDLE, inputs.encode())
    start = wire.StartRequest(epoch=1, input_digest=inputs.digest, run_timeout_seconds=9)
    with socket.create_server((HOST, 0)) as silent:
        access = {"url": f"http://{HOST}:{silent.getsockname()[1]}/simple/"}
        pod.agent.call("POST", wire.PATH_INSTALL, ask(index, "plain", access=access, timeout_seconds=2))
        status = pod.agent.call("GET", wire.PATH_INSTALL).json()
        assert (status["phase"], status["installerGone"]) == ("running", False)
        probe = wire.ProbeRequest(host=HOST, port=silent.getsockname()[1])
        assert not pod.agent.call("POST", wire.PATH_PROBE, probe).json()["installerGone"]
        assert pod.agent.call("POST", f"{wire.PATH_RUNS}/a", start).json()["code"] == "NotReady"
        pod.agent.call("GET", f"{wire.PATH_INSTALL}?wait=20")
    assert pod.agent.call("POST", f"{wire.PATH_RUNS}/a", start).status == 200


def test_one_install_a_pod(pod: Pod, index: Index) -> None:
    first = pod.install(ask(index, "plain"))
    again = pod.agent.call("POST", wire.PATH_INSTALL, ask(index, "plain"))
    assert (again.status, again.json()) == (200, first)
    other = pod.agent.call("POST", wire.PATH_INSTALL, ask(index, "big"))
    assert (other.status, other.json()["code"]) == (409, "Conflict")


@pytest.mark.parametrize(
    "requirement",
    [
        "x @ file:///etc/passwd",
        "git+https://a/b",
        "./x",
        "-r /etc/passwd",
        "x\n--index-url http://evil",
        "--hash=x",
    ],
)
def test_what_is_no_plain_requirement_never_reaches_uv(pod: Pod, index: Index, requirement: str) -> None:
    answer = pod.agent.call("POST", wire.PATH_INSTALL, ask(index, requirement))
    assert (answer.status, answer.json()["code"]) == (400, "BadRequest")
    assert pod.agent.call("GET", wire.PATH_INSTALL).json()["phase"] == "none"


def test_credentials_in_the_address_are_refused(pod: Pod, index: Index) -> None:
    url = index.url.replace("http://", "http://me:secret@")
    assert pod.agent.call("POST", wire.PATH_INSTALL, ask(index, "plain", access={"url": url})).status == 400


def test_nothing_of_the_index_is_left_behind(pod: Pod, index: Index) -> None:
    pod.install(ask(index, "plain"))
    for directory in (names.PACKAGES_DIR, names.AGENT_SECRET_DIR, names.AGENT_STATE_DIR):
        for path in pod.agent.at(directory).rglob("*"):
            assert not path.is_file() or index.url.encode() not in path.read_bytes()
    assert not children_of(pod)


def children_of(pod: Pod) -> list[str]:
    assert pod.agent.process is not None
    pid = pod.agent.process.pid
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_the_image_is_not_installed_again_and_own_versions_win(index: Index, tmp_path: Path) -> None:
    image = tmp_path / "image"
    for name, version, requires in (("plain", "0.9", ()), ("base", "2.0", ("plain<1",))):
        info = image / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        lines = "".join(f"Requires-Dist: {each}\n" for each in requires)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{lines}")
    listed = [{"name": "plain", "version": "0.9"}, {"name": "base", "version": "2.0"}]
    (tmp_path / "packages.json").write_text(json.dumps(listed))
    options = ("--image-site", str(image), "--image-packages", str(tmp_path / "packages.json"))

    with ready_pod(tmp_path / "one", options=options) as pod:
        question = wire.RequirementsRequest(requirements=("base", "big", "plain>=1"), requires_python=">=3.11")
        reply = pod.agent.call("POST", wire.PATH_REQUIREMENTS, question).json()
        assert [each["name"] for each in reply["satisfied"]] == ["base", "plain"]
        assert reply["missing"] == ["big", "plain>=1"]
        assert reply["pythonSatisfied"]

        status = pod.install(ask(index, "base", "big"))
        assert status["phase"] == "succeeded", status
        assert not (pod.site / "plain").exists()
        assert [(each["name"], each["version"]) for each in status["packages"]] == [
            ("base", "2.0"),
            ("big", "1.0"),
            ("plain", "0.9"),
        ]

    with ready_pod(tmp_path / "two", options=options) as pod:
        status = pod.install(ask(index, "plain>=1"))
        assert (pod.site / "plain").exists(), status

    with ready_pod(tmp_path / "three", options=options) as pod:
        status = pod.install(ask(index, "base", "plain>=1"))
        assert status["reason"] == "DependencyConflict", status

    with ready_pod(tmp_path / "four", options=options) as pod:
        nowhere = {"url": "http://127.0.0.1:1/simple/"}
        assert pod.install(ask(index, "base", access=nowhere))["phase"] == "succeeded"


def test_a_python_that_does_not_fit_is_told(pod: Pod) -> None:
    question = wire.RequirementsRequest(requirements=(), requires_python=">=3.99")
    assert not pod.agent.call("POST", wire.PATH_REQUIREMENTS, question).json()["pythonSatisfied"]
