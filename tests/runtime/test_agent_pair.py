"""Agent and supervisor together, both real: what a pod does, without the cluster around it."""

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.index import make_wheel, serve_index
from harness.pair import LIMITS, RUN, Pair, pair
from harness.pod import ask
from sandyard_api import wire


@pytest.fixture
def pod(tmp_path: Path) -> Iterator[Pair]:
    with pair(tmp_path) as pod:
        yield pod


def test_inputs_arrive_and_outputs_come_back(pod: Pair) -> None:
    code = b"""
import os, pathlib, sys
data = sys.stdin.read()
print(sys.argv[1:], os.environ["NAME"], data, pathlib.Path("in/a.txt").read_text())
print("to stderr", file=sys.stderr)
out = pathlib.Path(os.environ["SANDYARD_OUTPUT_DIR"])
(out / "sub").mkdir()
(out / "sub" / "deep.csv").write_text("x,y\\n")
os.symlink("/etc/passwd", out / "link")
"""
    result = pod.run(
        code, stdin=b"piped", files={"in/a.txt": b"placed"}, args=("one",), env=(wire.EnvVar(name="NAME", value="v"),)
    )
    assert result["outcome"] == "exited", result
    assert result["exitCode"] == 0
    assert result["stdout"]["text"] == "['one'] v piped placed\n"
    assert result["stderr"]["text"] == "to stderr\n"
    assert result["artifacts"] == [
        {
            "path": "sub/deep.csv",
            "bytes": 4,
            "sha256": hashlib.sha256(b"x,y\n").hexdigest(),
            "mediaType": "text/csv",
        }
    ]


def test_an_exception_is_told_in_the_scripts_words(pod: Pair) -> None:
    result = pod.run(b"def f():\n    raise ValueError('no ' + chr(0xD800) + ' good')\nf()\n")
    assert (result["outcome"], result["exitCode"], result["errorType"]) == ("exited", 1, "ValueError"), result
    assert "in f" in result["traceback"]


def test_isolation_is_what_the_supervisor_found(pod: Pair) -> None:
    pod.run(b"pass")
    isolation = pod.status()["isolation"]
    assert isolation["network"] == "None"
    assert isolation["seccomp"]
    assert pod.status()["startedAt"].endswith("Z")


def test_a_flood_is_kept_to_its_cap(pod: Pair) -> None:
    result = pod.run(b"import sys\nfor _ in range(300): sys.stdout.write('x' * 10000)\n")
    stream = result["stdout"]
    assert (stream["bytes"], stream["truncated"]) == (3_000_000, True)
    kept = pod.agent.call("GET", f"{wire.PATH_RUNS}/{RUN}/stdout").body
    assert kept == b"x" * LIMITS.stdout_bytes
    assert stream["sha256"] == hashlib.sha256(kept).hexdigest()
    assert len(stream["text"].encode()) <= wire.TEXT_BYTES


def test_a_run_ends_at_its_time(pod: Pair) -> None:
    began = time.monotonic()
    result = pod.run(b"print('on', flush=True)\nwhile True: pass\n", seconds=1.0)
    assert (result["outcome"], result["stdout"]["text"]) == ("timeout", "on\n")
    assert time.monotonic() - began < 15


def test_cancel_ends_it_and_keeps_what_was_printed(pod: Pair) -> None:
    pod.start(b"import time\nprint('on', flush=True)\ntime.sleep(600)\n", seconds=120.0)
    while pod.status(wait=1)["phase"] == "accepted":
        pass
    pod.agent.call("POST", f"{wire.PATH_RUNS}/{RUN}/cancel")
    assert pod.result()["outcome"] == "cancelled"


def test_a_supervisor_that_dies_is_told_as_lost(pod: Pair) -> None:
    pod.start(b"import time\ntime.sleep(600)\n", seconds=120.0)
    while pod.status(wait=1)["phase"] == "accepted":
        pass
    pod.kill_supervisor()
    assert pod.result()["outcome"] == "supervisorLost"


def test_a_package_from_the_index_is_imported(pod: Pair, tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    with serve_index(tmp_path / "index") as index:
        make_wheel(index.packages, "plain", "1.1")
        assert pod.install(ask(index, "plain"))["phase"] == "succeeded"
    result = pod.run(b"import plain\nprint(plain.version)\n")
    assert result["stdout"]["text"] == "1.1\n", result


def test_large_inputs_and_artifacts_pass_whole(pod: Pair) -> None:
    data = bytes(range(256)) * 12_000
    code = b"import sys, os\nopen(os.environ['SANDYARD_OUTPUT_DIR'] + '/copy', 'wb').write(sys.stdin.buffer.read())\n"
    result = pod.run(code, stdin=data)
    assert result["artifacts"][0]["sha256"] == hashlib.sha256(data).hexdigest()
    assert pod.agent.call("GET", f"{wire.PATH_RUNS}/{RUN}/artifacts/0").body == data
