"""The reasons are those of the contract, in its order, each with its documentation."""

import pytest

from sandyard_api.reasons import Reason, TaskPhase

CONTRACT = [
    "Succeeded",
    "NonZeroExit",
    "KilledBySignal",
    "OOMKilled",
    "RunTimeout",
    "DiskLimitExceeded",
    "KernelDied",
    "InvalidScript",
    "InvalidDependency",
    "PythonVersionUnsatisfied",
    "LimitExceeded",
    "ClassNotFound",
    "NotAllowed",
    "InputNotFound",
    "QueueFull",
    "QueueTimeout",
    "QuotaExceeded",
    "PodRejected",
    "Unschedulable",
    "ImagePullFailed",
    "StartFailed",
    "IsolationUnavailable",
    "IndexUnavailable",
    "IndexAuthFailed",
    "DependencyNotFound",
    "NoWheelAvailable",
    "DependencyConflict",
    "HashMismatch",
    "InstallTimeout",
    "InstallFailed",
    "PodEvicted",
    "PodDeleted",
    "NodeLost",
    "AgentLost",
    "SandboxNotFound",
    "SandboxNotReady",
    "Cancelled",
    "InternalError",
]


def test_the_reasons_are_those_of_the_contract() -> None:
    assert [str(reason) for reason in Reason] == CONTRACT


@pytest.mark.parametrize("reason", Reason)
def test_a_reason_says_what_happened_and_what_to_do(reason: Reason) -> None:
    for sentence in (reason.happened, reason.action):
        assert sentence[0].isupper() or sentence.startswith("spec.")
        assert sentence.endswith(".")


def test_a_reason_is_found_by_its_word() -> None:
    assert Reason("OOMKilled") is Reason.OOM_KILLED


def test_only_success_and_cancel_are_no_failures() -> None:
    phases = {reason: reason.phase for reason in Reason}
    assert phases.pop(Reason.SUCCEEDED) is TaskPhase.SUCCEEDED
    assert phases.pop(Reason.CANCELLED) is TaskPhase.CANCELLED
    assert set(phases.values()) == {TaskPhase.FAILED}
