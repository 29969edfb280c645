"""How the kernel's words become an outcome, case by case, and a script's own words stay data."""

import json
import os
import signal
from typing import Final

import pytest

from sandyard_runtime import wire
from sandyard_runtime.supervisor.ending import WORD_BYTES, Facts, outcome, report

EXITED, KILLED, DUMPED = os.CLD_EXITED, os.CLD_KILLED, os.CLD_DUMPED
SIGKILL, SIGSEGV, SIGXFSZ = int(signal.SIGKILL), int(signal.SIGSEGV), int(signal.SIGXFSZ)
CASES: Final = [
    # code, status, stopped for, OOM killer, over disk, outcome
    (EXITED, 0, "", False, False, "exited"),
    (EXITED, 1, "", False, False, "exited"),
    (EXITED, 1, "", True, False, "exited"),  # the killer took a child
    (EXITED, 0, "timeout", False, False, "exited"),  # it ended before our signal reached it
    (EXITED, 0, "cancelled", False, False, "exited"),
    (EXITED, 0, "", False, True, "disk"),
    (KILLED, SIGKILL, "", False, False, "signaled"),
    (KILLED, SIGKILL, "", True, False, "oom"),
    (KILLED, SIGKILL, "timeout", False, False, "timeout"),
    (KILLED, SIGKILL, "timeout", True, False, "timeout"),
    (KILLED, SIGKILL, "timeout", False, True, "timeout"),
    (KILLED, SIGKILL, "cancelled", False, False, "cancelled"),
    (KILLED, SIGKILL, "disk", False, True, "disk"),
    (KILLED, SIGSEGV, "timeout", False, False, "signaled"),
    (KILLED, SIGSEGV, "", True, False, "signaled"),
    (DUMPED, SIGSEGV, "", False, False, "signaled"),
    (KILLED, SIGXFSZ, "", False, False, "disk"),
]


@pytest.mark.parametrize(("code", "status", "stopped_for", "out_of_memory", "over_disk", "expected"), CASES)
def test_an_outcome_follows_from_the_facts(  # noqa: PLR0913 - a table
    code: int, status: int, stopped_for: str, *, out_of_memory: bool, over_disk: bool, expected: str
) -> None:
    facts = Facts(code=code, status=status, stopped_for=stopped_for, out_of_memory=out_of_memory, over_disk=over_disk)
    assert outcome(facts) == expected


def exited(status: int, said: bytes) -> dict[str, object]:
    """Report an exit."""
    facts = Facts(code=EXITED, status=status, stopped_for="", out_of_memory=False, over_disk=False)
    return report(facts, said)


def test_a_script_that_succeeds_has_nothing_to_say() -> None:
    assert exited(0, b'{"errorType": "E"}') == {"outcome": "exited", "exitCode": 0}


def test_the_words_are_data_and_nothing_else_of_it_is_told() -> None:
    said = json.dumps({"errorType": "E", "errorMessage": "m", "traceback": "t", "exitCode": 0, "outcome": "oom"})
    assert exited(3, said.encode()) == {
        "outcome": "exited",
        "exitCode": 3,
        "errorType": "E",
        "errorMessage": "m",
        "traceback": "t",
    }


@pytest.mark.parametrize(
    "said", [b"", b"[", b"[" * 30_000, b"\xff\xfe", b"[1]", b"null", b'{"errorType": 7}', b"1" * 5000]
)
def test_whatever_was_written_is_survived(said: bytes) -> None:
    assert exited(1, said) == {"outcome": "exited", "exitCode": 1}


@pytest.mark.parametrize("text", ["x", "\0", "\ud800", "\U0001f4a9", "\u20ac", '"', "\\"])
def test_the_longest_words_fit_into_a_header(text: str) -> None:
    said = json.dumps(dict.fromkeys(WORD_BYTES, text * 5000)).encode()
    found = exited(1, said)
    for key, bound in WORD_BYTES.items():
        assert len(str(found[key]).encode()) <= bound
    assert wire.encode({"type": "exited", **found})


def test_an_unknown_signal_has_a_number() -> None:
    facts = Facts(code=KILLED, status=63, stopped_for="", out_of_memory=False, over_disk=False)
    assert report(facts, b"") == {"outcome": "signaled", "signal": "signal 63"}
