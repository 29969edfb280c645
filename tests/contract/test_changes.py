"""What may change after creation and what may not, in spec and status."""

from typing import Any, Final

import pytest

from harness.objects import ENV, FILES, KEY_REF, NETWORK, RESOURCES
from harness.store import Store, Stored

CODE: Final = {"code": "print(1)"}
FROM: Final = {"codeFrom": {"configMapKeyRef": KEY_REF}}

# field: a value and another one.
FIXED: Final[dict[str, tuple[Any, Any]]] = {
    "code": ("1", "2"),
    "codeFrom": (FROM["codeFrom"], {"configMapKeyRef": {"name": "a", "key": "b"}}),
    "stdin": ("1", "2"),
    "stdinFrom": ({"configMapKeyRef": KEY_REF}, {"configMapKeyRef": {"name": "a", "key": "b"}}),
    "files": (FILES, FILES[:1]),
    "args": (["1"], ["2"]),
    "env": (ENV, ENV[:1]),
    "sandboxClassName": ("a", "b"),
    "sandboxRef": ({"name": "a"}, {"name": "b"}),
    "resources": (RESOURCES, {"limits": {"cpu": 2}}),
    "network": (NETWORK, NETWORK | {"dns": False}),
    "queueTimeoutSeconds": (1, 2),
    "startTimeoutSeconds": (1, 2),
    "installTimeoutSeconds": (1, 2),
    "runTimeoutSeconds": (1, 2),
    "retryPolicy": ("OnInfrastructureFailure", "Never"),
}
DEFAULTED: Final = {"sandboxClassName", "queueTimeoutSeconds", "startTimeoutSeconds", "retryPolicy"}


def with_field(field: str, value: Any) -> dict[str, Any]:
    """Return a task's spec with a field set."""
    return {field: value} if field in ("code", "codeFrom") else CODE | {field: value}


def refused(answer: tuple[int, str], field: str) -> None:
    code, message = answer
    assert code == 422, message
    assert f"spec.{field}" in message
    assert f"{field} may not change after creation" in message


@pytest.mark.parametrize("field", FIXED)
def test_a_field_of_a_task_cannot_be_changed_or_removed(store: Store, field: str) -> None:
    value, other = FIXED[field]
    task = store.create("SandboxTask", with_field(field, value))
    refused(task.patch({"spec": {field: other}}), field)
    refused(task.patch({"spec": {field: None}}), field)  # where it has a default, that comes back
    assert task.read()["spec"] == task.created["spec"]


@pytest.mark.parametrize("field", sorted(FIXED.keys() - DEFAULTED - {"code", "codeFrom"}))
def test_a_field_of_a_task_cannot_be_added(store: Store, field: str) -> None:
    refused(store.create("SandboxTask", CODE).patch({"spec": {field: FIXED[field][0]}}), field)


def test_cancel_can_be_set_and_not_taken_back(store: Store) -> None:
    task = store.create("SandboxTask", CODE)
    assert task.patch({"spec": {"cancel": True}})[0] == 200
    for value in (False, None):
        code, message = task.patch({"spec": {"cancel": value}})
        assert code == 422
        assert "spec.cancel" in message
        assert "cannot be taken back" in message


@pytest.mark.parametrize("value", [0, 60, None])
def test_the_time_to_live_of_a_task_may_change(store: Store, value: int | None) -> None:
    task = store.create("SandboxTask", CODE | {"ttlSecondsAfterFinished": 30})
    assert task.patch({"spec": {"ttlSecondsAfterFinished": value}})[0] == 200


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sandboxClassName", "other"),
        ("sandboxPoolName", "other"),
        ("network", NETWORK),
        ("env", ENV),
        ("files", FILES),
        ("persistence", {"enabled": True}),
    ],
)
def test_a_field_of_a_session_cannot_be_changed(store: Store, field: str, value: Any) -> None:
    refused(store.create("Sandbox", {}).patch({"spec": {field: value}}), field)


@pytest.mark.parametrize(
    "change",
    [
        {"operatingMode": "Suspended"},
        {"idleTimeoutSeconds": 1},
        {"maxLifetimeSeconds": 1},
        {"onIdle": "Delete"},
        {"onExpiry": "Suspend"},
    ],
)
def test_a_session_can_be_steered(store: Store, change: dict[str, Any]) -> None:
    assert store.create("Sandbox", {}).patch({"spec": change})[0] == 200


@pytest.mark.parametrize("change", [{"dependencies": ["six"]}, {"resources": RESOURCES}])
def test_some_fields_of_a_session_change_only_while_it_is_suspended(store: Store, change: dict[str, Any]) -> None:
    session = store.create("Sandbox", {})
    code, message = session.patch({"spec": change | {"operatingMode": "Suspended"}})
    assert code == 422
    assert "only while operatingMode is Suspended" in message
    assert session.patch({"spec": {"operatingMode": "Suspended"}})[0] == 200
    assert session.patch({"spec": change | {"operatingMode": "Running"}})[0] == 200


RUN: Final = {"podName": "p", "podUID": "u", "attempt": 1, "runID": "r", "inputDigest": "d"}


def condition(kind: str, status: str, **changes: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "status": status,
        "reason": "Succeeded",
        "message": "It ended.",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    } | changes


@pytest.fixture
def started(store: Store) -> Stored:
    """Return a task whose point of no return is written."""
    task = store.create("SandboxTask", CODE)
    assert task.patch({"status": {"phase": "Running", "run": RUN}}, status=True)[0] == 200
    return task


@pytest.mark.parametrize(
    "status", [{"run": RUN | {"runID": "other"}}, {"run": RUN | {"attempt": 2}}, {"run": None}, None]
)
def test_the_point_of_no_return_stays(started: Stored, status: dict[str, Any] | None) -> None:
    code, message = started.patch({"status": status}, status=True)
    assert code == 422
    assert "status.run never changes once set" in message


def test_the_rest_of_a_started_task_s_status_goes_on(started: Stored) -> None:
    more = {"nodeName": "n", "conditions": [condition("Finished", "False")]}
    assert started.patch({"status": more}, status=True)[0] == 200
    assert started.patch({"status": {"conditions": [condition("Finished", "True")]}}, status=True)[0] == 200


@pytest.fixture
def finished(store: Store) -> Stored:
    """Return a finished task."""
    task = store.create("SandboxTask", CODE)
    status = {
        "observedGeneration": 1,
        "phase": "Succeeded",
        "reason": "Succeeded",
        "message": "It ended.",
        "completionTime": "2026-01-01T00:00:00Z",
        "conditions": [condition("Accepted", "True"), condition("Finished", "True")],
        "result": {"exitCode": 0, "stdout": {"text": "1", "bytes": 1}},
    }
    assert task.patch({"status": status}, status=True)[0] == 200
    return task


@pytest.mark.parametrize(
    "change",
    [
        {"phase": "Failed"},
        {"reason": "NonZeroExit"},
        {"message": "Something else."},
        {"completionTime": "2026-01-01T00:00:01Z"},
        {"result": {"exitCode": 1}},
        {"result": {"stdout": {"text": "2"}}},
        {"result": None},
        {"conditions": []},
        {"conditions": [condition("Finished", "False")]},
        {"conditions": [condition("Finished", "True", reason="Other")]},
        {"conditions": [condition("Finished", "True", message="Other.")]},
        None,
    ],
)
def test_the_end_of_a_task_stays(finished: Stored, change: dict[str, Any] | None) -> None:
    code, message = finished.patch({"status": change}, status=True)
    assert code == 422
    assert "finished task keeps" in message or "true Finished condition never changes" in message


def test_a_finished_task_s_generation_may_be_observed_again(finished: Stored) -> None:
    assert finished.patch({"spec": {"ttlSecondsAfterFinished": 1}})[0] == 200
    assert finished.patch({"status": {"observedGeneration": 2}}, status=True)[0] == 200


def test_nobody_writes_a_status_through_the_object_itself(store: Store) -> None:
    task = store.create("SandboxTask", CODE)
    assert task.patch({"status": {"phase": "Succeeded"}})[0] == 200
    assert "status" not in task.read()


@pytest.mark.parametrize(
    ("status", "field"),
    [
        ({"phase": "Asleep"}, "status.phase"),
        ({"codeSHA256": "xyz"}, "status.codeSHA256"),
        ({"run": {"podName": "p"}}, "status.run.podUID"),
        ({"startTime": "yesterday"}, "status.startTime"),
        ({"conditions": [{"type": "Finished", "status": "True"}]}, "status.conditions[0].reason"),
        ({"conditions": [condition("Finished", "Perhaps")]}, "status.conditions[0].status"),
    ],
)
def test_a_wrong_status_is_refused(store: Store, status: dict[str, Any], field: str) -> None:
    code, message = store.create("SandboxTask", CODE).patch({"status": status}, status=True)
    assert code == 422
    assert field in message


def test_the_largest_status_passes_its_rules_twice(store: Store) -> None:
    task = store.create("SandboxTask", CODE)
    stream = {"text": "x" * 16384, "bytes": 10**9, "truncated": True, "sha256": "ab" * 32}
    status = {
        "phase": "Failed",
        "reason": "NonZeroExit",
        "message": "x" * 32768,
        "run": RUN,
        "conditions": [condition("Finished", "True", message="x" * 32768)],
        "packages": [{"name": f"p{n}", "version": "1.0", "sha256": "ab" * 32} for n in range(1024)],
        "warnings": ["x" * 1024] * 256,
        "result": {
            "exitCode": 1,
            "errorMessage": "x" * 4096,
            "traceback": "x" * 4096,
            "stdout": stream,
            "stderr": stream,
            "artifacts": [{"path": "x" * 255, "bytes": 1, "sha256": "ab" * 32, "mediaType": "text/plain"}] * 256,
        },
    }
    assert task.patch({"status": status}, status=True) == (200, "")
    assert task.patch({"status": {"nodeName": "n"}}, status=True) == (200, "")
