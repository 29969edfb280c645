"""The one run of a pod's life: accepted once, told at once, kept until it is safe elsewhere."""

import contextlib
import hashlib
import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from harness.agent import AgentProcess
from harness.pair import make_bundle
from harness.peer import Peer
from harness.pod import ScriptedPod, ready_pod
from sandyard_api import names, wire
from sandyard_api.tokens import Role

RUN: Final = "run-1"
PROMPT_SECONDS: Final = 3.0  # a poll that wakes at a change, on a busy machine; one that does not takes 20
LIMITS: Final = wire.RunLimits(
    stdout_bytes=1000,
    stderr_bytes=100,
    artifact_bytes=5000,
    disk_bytes=1 << 20,
    open_files=64,
    processes=16,
    artifact_count=2,
)


@pytest.fixture
def pod(tmp_path: Path) -> Iterator[ScriptedPod]:
    with ready_pod(tmp_path) as pod:
        yield pod


def bundle(code: bytes = b"print(1)", **changes: Any) -> wire.Bundle:
    return make_bundle(code, **{"limits": LIMITS} | changes)


def stage(agent: AgentProcess, inputs: wire.Bundle) -> None:
    answer = agent.call("POST", wire.PATH_BUNDLE, inputs.encode())
    assert answer.status == 200, answer.body
    assert answer.json() == {"digest": inputs.digest}


def start(agent: AgentProcess, inputs: wire.Bundle, *, run: str = RUN, epoch: int = 1, seconds: float = 60) -> Any:
    request = wire.StartRequest(epoch=epoch, input_digest=inputs.digest, run_timeout_seconds=seconds)
    return agent.call("POST", f"{wire.PATH_RUNS}/{run}", request)


def status(agent: AgentProcess, *, wait: int = 0, run: str = RUN) -> dict[str, Any]:
    answer: dict[str, Any] = agent.call("GET", f"{wire.PATH_RUNS}/{run}?wait={wait}").json()
    return answer


def finished(agent: AgentProcess) -> dict[str, Any]:
    """Follow the run to its end; return the result."""
    deadline = time.monotonic() + 20
    while (found := status(agent, wait=20))["phase"] != "finished":
        assert time.monotonic() < deadline, found
    result: dict[str, Any] = found["result"]
    return result


def begin(pod: ScriptedPod, inputs: wire.Bundle | None = None) -> wire.Bundle:
    """Stage, start, and take the supervisor's side up to the script's start."""
    inputs = inputs or bundle()
    stage(pod.agent, inputs)
    assert start(pod.agent, inputs).status == 200
    pod.peer.take_inputs()
    pod.peer.started()
    return inputs


def test_a_run_from_its_inputs_to_its_result(pod: ScriptedPod) -> None:
    inputs = bundle(
        b"import sys",
        stdin=b"in",
        files={"data/a.csv": b"1,2\n"},
        args=("x",),
        env=(wire.EnvVar(name="A", value="b"),),
    )
    stage(pod.agent, inputs)
    assert start(pod.agent, inputs).json()["phase"] == "accepted"
    taken = pod.peer.take_inputs()
    assert taken.files == {"data/a.csv": b"1,2\n"}
    assert (taken.code, taken.stdin) == (b"import sys", b"in")
    assert taken.start["args"] == ["x"]
    assert taken.start["env"] == {"A": "b"}
    pod.peer.started()
    pod.peer.output("stdout", b"out\n")
    pod.peer.output("stderr", b"err\n")
    pod.peer.artifact("sub/plot.png", b"\x89PNG\r\n\x1a\nrest")
    pod.peer.exited(stdout=4, stderr=4)
    pod.peer.finished()
    result = finished(pod.agent)
    assert result["outcome"] == "exited"
    assert result["exitCode"] == 0
    assert result["stdout"] == {
        "text": "out\n",
        "bytes": 4,
        "truncated": False,
        "sha256": hashlib.sha256(b"out\n").hexdigest(),
    }
    assert result["artifacts"] == [
        {
            "path": "sub/plot.png",
            "bytes": 12,
            "sha256": hashlib.sha256(b"\x89PNG\r\n\x1a\nrest").hexdigest(),
            "mediaType": "image/png",
        }
    ]
    runs = f"{wire.PATH_RUNS}/{RUN}"
    assert pod.agent.call("GET", f"{runs}/stdout").body == b"out\n"
    assert pod.agent.call("GET", f"{runs}/stderr").body == b"err\n"
    assert pod.agent.call("GET", f"{runs}/artifacts/0").body == b"\x89PNG\r\n\x1a\nrest"
    assert pod.agent.call("GET", f"{runs}/artifacts/1").status == 404


def test_the_same_start_again_finds_the_state_and_starts_nothing(pod: ScriptedPod) -> None:
    inputs = begin(pod)
    for epoch in (1, 2):
        answer = start(pod.agent, inputs, epoch=epoch)
        assert (answer.status, answer.json()["phase"]) == (200, "running")
    pod.peer.exited()
    pod.peer.finished()
    finished(pod.agent)
    assert start(pod.agent, inputs, epoch=2).json()["phase"] == "finished"
    assert pod.peer.nothing_more()


def test_many_starts_at_once_are_one(pod: ScriptedPod) -> None:
    inputs = bundle()
    stage(pod.agent, inputs)
    answers: list[int] = []
    threads = [threading.Thread(target=lambda: answers.append(start(pod.agent, inputs).status)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * 8
    pod.peer.take_inputs()
    assert pod.peer.nothing_more()


def test_a_lower_epoch_is_refused(pod: ScriptedPod) -> None:
    inputs = bundle()
    stage(pod.agent, inputs)
    assert start(pod.agent, bundle(b"other"), epoch=5).json()["code"] == "Conflict"
    answer = start(pod.agent, inputs, epoch=4)
    assert (answer.status, answer.json()["code"]) == (409, "StaleEpoch")
    assert status(pod.agent)["phase"] == "unknown"


def test_other_inputs_or_another_id_are_a_conflict(pod: ScriptedPod) -> None:
    inputs = begin(pod)
    assert start(pod.agent, bundle(b"other")).json()["code"] == "Conflict"
    assert start(pod.agent, inputs, run="run-2").json()["code"] == "Conflict"
    assert pod.agent.call("POST", wire.PATH_BUNDLE, bundle(b"late").encode()).json()["code"] == "Conflict"


def test_a_bundle_is_replaced_until_then(pod: ScriptedPod) -> None:
    stage(pod.agent, bundle(b"first"))
    second = bundle(b"second")
    stage(pod.agent, second)
    assert pod.agent.call("GET", wire.PATH_STATUS).json()["bundleDigest"] == second.digest
    assert start(pod.agent, bundle(b"first")).json()["code"] == "Conflict"
    assert start(pod.agent, second).status == 200
    assert pod.peer.take_inputs().code == b"second"


def test_a_revoked_id_is_never_accepted_not_even_by_the_next_process(pod: ScriptedPod) -> None:
    inputs = bundle()
    stage(pod.agent, inputs)
    assert pod.agent.call("POST", f"{wire.PATH_RUNS}/{RUN}/revoke").json()["phase"] == "revoked"
    assert start(pod.agent, inputs).json()["code"] == "Revoked"
    pod.agent.kill()
    pod.agent.start()
    assert status(pod.agent)["phase"] == "revoked"


def test_an_accepted_run_cannot_be_revoked(pod: ScriptedPod) -> None:
    begin(pod)
    assert pod.agent.call("POST", f"{wire.PATH_RUNS}/{RUN}/revoke").json()["phase"] == "running"


def test_no_run_before_the_supervisor_is_ready(tmp_path: Path) -> None:
    with AgentProcess(tmp_path) as agent:
        inputs = bundle()
        stage(agent, inputs)
        answer = start(agent, inputs)
        assert (answer.status, answer.json()["code"]) == (503, "NotReady")
        assert status(agent)["phase"] == "unknown"


@pytest.mark.parametrize("moment", ["accepted", "running"])
def test_an_agent_killed_in_a_run_never_starts_it_again(pod: ScriptedPod, moment: str) -> None:
    inputs = bundle()
    if moment == "running":
        begin(pod, inputs)
    else:
        stage(pod.agent, inputs)
        start(pod.agent, inputs)
    pod.agent.kill()
    pod.agent.start()
    assert pod.agent.call("GET", wire.PATH_STATUS).json()["supervisor"] == "lost"
    answer = start(pod.agent, inputs, epoch=9)
    assert answer.json()["phase"] == "finished"
    assert answer.json()["result"]["outcome"] == "supervisorLost"
    with pytest.raises(FileNotFoundError):
        Peer(pod.agent.at(names.CONTROL_SOCKET), seconds=0)


def test_a_finished_result_survives_the_agent(pod: ScriptedPod) -> None:
    begin(pod)
    pod.peer.output("stdout", b"kept")
    pod.peer.exited(stdout=4)
    pod.peer.finished()
    before = finished(pod.agent)
    pod.agent.kill()
    pod.agent.start()
    assert status(pod.agent)["result"] == before
    assert pod.agent.call("GET", f"{wire.PATH_RUNS}/{RUN}/stdout").body == b"kept"


def test_a_poll_answers_at_the_change(pod: ScriptedPod) -> None:
    begin(pod)
    woken: list[float] = []

    def poll() -> None:
        assert status(pod.agent, wait=20)["phase"] == "finished"
        woken.append(time.monotonic())

    thread = threading.Thread(target=poll)
    thread.start()
    pod.peer.exited()
    told = time.monotonic()
    pod.peer.finished()
    thread.join()
    assert woken[0] - told < PROMPT_SECONDS


def test_a_poll_ends_when_nothing_changes(pod: ScriptedPod) -> None:
    begin(pod)
    before = time.monotonic()
    assert status(pod.agent, wait=1)["phase"] == "running"
    assert 0.9 < time.monotonic() - before < 10


def test_cancel_reaches_the_supervisor_and_keeps_what_was_printed(pod: ScriptedPod) -> None:
    begin(pod)
    pod.peer.output("stdout", b"so far")
    assert pod.agent.call("POST", f"{wire.PATH_RUNS}/{RUN}/cancel").json()["phase"] == "running"
    assert pod.peer.receive()[0]["type"] == "cancel"
    pod.peer.exited(outcome="cancelled", stdout=6)
    pod.peer.finished()
    result = finished(pod.agent)
    assert (result["outcome"], result["stdout"]["text"]) == ("cancelled", "so far")


def test_cancel_before_the_inputs_are_placed_starts_nothing(pod: ScriptedPod) -> None:
    inputs = bundle(files={"a": b"1"})
    stage(pod.agent, inputs)
    start(pod.agent, inputs)
    while pod.peer.receive()[0]["type"] != "place":
        pass
    assert pod.agent.call("POST", f"{wire.PATH_RUNS}/{RUN}/cancel").json()["phase"] == "accepted"
    pod.peer.send({"type": "placed"})
    assert finished(pod.agent)["outcome"] == "cancelled"
    assert pod.peer.nothing_more()


def test_a_full_disk_ends_the_run_and_not_the_agent(tmp_path: Path) -> None:
    with ready_pod(tmp_path, small=names.AGENT_STATE_DIR) as pod:
        limits = LIMITS.model_copy(update={"stdout_bytes": 4 << 20})
        begin(pod, bundle(limits=limits))
        with contextlib.suppress(ConnectionError):
            for _ in range(8):
                pod.peer.output("stdout", b"x" * (256 << 10))
        assert finished(pod.agent)["outcome"] == "supervisorLost"
        assert pod.agent.call("GET", wire.PATH_STATUS).status == 200


def test_cancel_before_the_start_is_a_promise(pod: ScriptedPod) -> None:
    inputs = bundle()
    stage(pod.agent, inputs)
    assert pod.agent.call("POST", f"{wire.PATH_RUNS}/{RUN}/cancel").json()["phase"] == "revoked"
    assert start(pod.agent, inputs).json()["code"] == "Revoked"


def test_acknowledge_only_what_has_finished(pod: ScriptedPod) -> None:
    runs = f"{wire.PATH_RUNS}/{RUN}"
    assert pod.agent.call("POST", f"{runs}/acknowledge").status == 404
    begin(pod)
    assert pod.agent.call("POST", f"{runs}/acknowledge").json()["code"] == "Conflict"
    pod.peer.exited()
    pod.peer.finished()
    finished(pod.agent)
    assert pod.agent.call("POST", f"{runs}/acknowledge").json()["acknowledged"]
    assert pod.agent.call("POST", f"{runs}/acknowledge").json()["acknowledged"]


def test_told_to_stop_it_serves_until_the_result_is_safe(pod: ScriptedPod) -> None:
    begin(pod)
    process = pod.agent.process
    assert process is not None
    process.send_signal(signal.SIGTERM)
    pod.peer.exited()
    pod.peer.finished()
    finished(pod.agent)
    assert process.poll() is None
    pod.agent.call("POST", f"{wire.PATH_RUNS}/{RUN}/acknowledge")
    assert process.wait(10) == 0


def test_told_to_stop_with_nothing_to_hand_over_it_ends(pod: ScriptedPod) -> None:
    assert pod.agent.process is not None
    pod.agent.process.send_signal(signal.SIGTERM)
    assert pod.agent.process.wait(10) == 0


def test_the_gateway_may_look_but_not_touch(pod: ScriptedPod) -> None:
    inputs = bundle()
    touches = [
        ("POST", wire.PATH_BUNDLE, inputs.encode()),
        ("POST", wire.PATH_INSTALL, b"{}"),
        ("POST", f"{wire.PATH_RUNS}/{RUN}", b"{}"),
        ("POST", f"{wire.PATH_RUNS}/{RUN}/acknowledge", b""),
        ("POST", f"{wire.PATH_RUNS}/{RUN}/revoke", b""),
        ("POST", f"{wire.PATH_RUNS}/{RUN}/cancel", b""),
        ("POST", wire.PATH_PROBE, b"{}"),
    ]
    for method, path, body in touches:
        assert pod.agent.call(method, path, body, role=Role.GATEWAY).status == 403, path
    assert pod.agent.call("GET", wire.PATH_STATUS, role=Role.GATEWAY).status == 200


@pytest.mark.parametrize(("written", "truncated"), [(1000, False), (1001, True)])
def test_a_stream_is_capped_exactly(pod: ScriptedPod, written: int, *, truncated: bool) -> None:
    begin(pod)
    data = bytes(range(256)) * 4
    pod.peer.output("stdout", data[:600])
    pod.peer.output("stdout", data[600:written])
    pod.peer.exited(stdout=written)
    pod.peer.finished()
    stream = finished(pod.agent)["stdout"]
    kept = pod.agent.call("GET", f"{wire.PATH_RUNS}/{RUN}/stdout").body
    assert kept == data[:1000]
    assert (stream["bytes"], stream["truncated"]) == (written, truncated)
    assert stream["sha256"] == hashlib.sha256(kept).hexdigest()


def test_secrets_are_taken_out_of_everything(pod: ScriptedPod) -> None:
    secret = "s3cr3t-value"
    begin(
        pod,
        bundle(
            env=(
                wire.EnvVar(name="KEY", value=secret, secret=True),
                wire.EnvVar(name="B", value="plainvalue"),
            )
        ),
    )
    pod.peer.output("stdout", b"a s3cr3t-")
    pod.peer.output("stdout", b"value plainvalue")
    pod.peer.exited(
        stdout=25,
        exitCode=1,
        errorType="ValueError",
        errorMessage=f"bad {secret}",
        traceback=f"line {secret}",
    )
    pod.peer.finished()
    result = finished(pod.agent)
    assert secret not in json.dumps(result)
    assert result["stdout"]["text"] == "a [redacted] plainvalue"
    assert result["errorMessage"] == "bad [redacted]"
    for path in pod.agent.at(names.AGENT_STATE_DIR).rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes()


@pytest.mark.parametrize(
    "frame",
    [
        {"type": "output", "stream": "stdlog"},
        {"type": "exited", "outcome": "won", "stdoutBytes": 0, "stderrBytes": 0, "runMilliseconds": 0},
        {"type": "exited", "outcome": "exited", "stdoutBytes": -1, "stderrBytes": 0, "runMilliseconds": 0},
        {"type": "artifact", "path": "", "last": True},
        {"type": "ready", "python": "3", "isolation": {}},
        {"type": "surprise"},
        ["no", "object"],
    ],
    ids=str,
)
def test_a_supervisor_that_talks_nonsense_is_lost(pod: ScriptedPod, frame: Any) -> None:
    begin(pod)
    pod.peer.send(frame)
    result = finished(pod.agent)
    assert result["outcome"] == "supervisorLost"
    assert pod.agent.call("GET", wire.PATH_STATUS).json()["supervisor"] == "lost"


@pytest.mark.parametrize("lengths", [b"\xff\xff\xff\xff\x00\x00\x00\x00", b"\x00\x00\x00\x02\x00\x10\x00\x01"])
def test_a_frame_above_its_bounds_is_never_read(pod: ScriptedPod, lengths: bytes) -> None:
    begin(pod)
    pod.peer.socket.sendall(lengths)
    assert finished(pod.agent)["outcome"] == "supervisorLost"


@pytest.mark.parametrize("kept", [0, 1])
def test_artifacts_above_their_caps_end_the_channel(pod: ScriptedPod, kept: int) -> None:
    begin(pod)
    pod.peer.output("stdout", b"before")
    if kept:
        pod.peer.artifact("a", b"x" * 5000)
        pod.peer.artifact("b", b"x")
    else:
        for name in ("a", "b", "c"):
            pod.peer.artifact(name, b"")
    result = finished(pod.agent)
    assert result["outcome"] == "supervisorLost"
    assert result["stdout"]["text"] == "before"


def test_a_result_always_fits_into_one_reply(pod: ScriptedPod) -> None:
    limits = LIMITS.model_copy(update={"artifact_count": 256, "stdout_bytes": 1 << 20, "stderr_bytes": 1 << 20})
    begin(pod, bundle(limits=limits))
    for stream in ("stdout", "stderr"):
        pod.peer.output(stream, b"\x01" * (1 << 20))
    for number in range(256):
        pod.peer.artifact(f"{number:04}" + "x" * 4000, b"1")
    pod.peer.exited(stdout=1 << 20, exitCode=1, errorMessage="\x01" * 5000, traceback="\x01" * 5000)
    pod.peer.finished()
    result = finished(pod.agent)
    assert len(json.dumps(result)) < wire.MAX_JSON_BYTES
    assert len(result["artifacts"]) == 32
    assert "224 artifacts" in result["warnings"][0]
    assert pod.agent.call("GET", f"{wire.PATH_RUNS}/{RUN}/artifacts/31").body == b"1"


def test_a_supervisor_that_goes_after_the_end_loses_no_end(pod: ScriptedPod) -> None:
    begin(pod)
    pod.peer.exited(exitCode=3)
    pod.peer.socket.close()
    result = finished(pod.agent)
    assert (result["outcome"], result["exitCode"]) == ("exited", 3)
    assert result["warnings"]


def test_inputs_that_cannot_be_placed_run_nothing(pod: ScriptedPod) -> None:
    inputs = bundle(files={"a": b"1"})
    stage(pod.agent, inputs)
    start(pod.agent, inputs)
    pod.peer.refuse_inputs("no space")
    result = finished(pod.agent)
    assert (result["outcome"], result["message"]) == ("startFailed", "no space")


def test_only_the_runners_user_is_heard(tmp_path: Path) -> None:
    with AgentProcess(tmp_path, options=("--runner-uid", "10002")) as agent:
        with Peer(agent.at(names.CONTROL_SOCKET)) as stranger:
            assert stranger.socket.recv(1) == b""
        assert agent.call("GET", wire.PATH_STATUS).json()["supervisor"] == "starting"
        assert agent.at(names.CONTROL_SOCKET).exists()


def test_the_socket_is_gone_once_the_supervisor_is_there(pod: ScriptedPod) -> None:
    assert pod.agent.call("GET", f"{wire.PATH_STATUS}?wait=20").json()["supervisor"] == "ready"
    assert not pod.agent.at(names.CONTROL_SOCKET).exists()


def test_half_a_surrogate_pair_in_the_scripts_words_harms_nobody(pod: ScriptedPod) -> None:
    begin(pod)
    pod.peer.exited(exitCode=1, errorType="ValueError", errorMessage="half \ud800 pair")
    pod.peer.finished()
    result = finished(pod.agent)
    assert (result["outcome"], result["errorMessage"]) == ("exited", "half ? pair")


def test_arguments_and_environment_may_be_larger_than_a_header(pod: ScriptedPod) -> None:
    inputs = bundle(args=("\x01" * 4096,) * 20, env=(wire.EnvVar(name="A", value="\u00e9" * 16000),))
    stage(pod.agent, inputs)
    start(pod.agent, inputs)
    taken = pod.peer.take_inputs()
    assert taken.start["args"] == ["\x01" * 4096] * 20
    assert taken.start["env"] == {"A": "\u00e9" * 16000}
