"""How a run ended: the kernel's words turned into a report, the script's own words beside them as data."""

import json
import os
import signal
from typing import Any, Final, NamedTuple

WORD_BYTES: Final = {"errorType": 200, "errorMessage": 1024, "traceback": 4096}  # a header holds them, escaped


class Facts(NamedTuple):
    """What PID 1 knows: waitid's two numbers, why it killed the run if it did, and what was measured."""

    code: int  # CLD_EXITED, CLD_KILLED or CLD_DUMPED
    status: int  # the exit code or the signal
    stopped_for: str  # an outcome, or empty
    out_of_memory: bool  # the OOM killer took a process meanwhile
    over_disk: bool


def outcome(facts: Facts) -> str:
    """Return the outcome; a run that ended before our signal reached it has ended by itself."""
    killed = facts.code != os.CLD_EXITED
    by_sigkill = killed and facts.status == signal.SIGKILL
    if facts.stopped_for and by_sigkill:
        return facts.stopped_for
    if facts.over_disk or (killed and facts.status == signal.SIGXFSZ):
        return "disk"
    if facts.out_of_memory and by_sigkill:
        return "oom"
    return "signaled" if killed else "exited"


def report(facts: Facts, said: bytes) -> dict[str, Any]:
    """Return the end as the agent reads it."""
    told: dict[str, Any] = {"outcome": outcome(facts)}
    if facts.code != os.CLD_EXITED:
        return told | {"signal": signal_name(facts.status)}
    told["exitCode"] = facts.status
    return told | words(said) if facts.status else told


def words(said: bytes) -> dict[str, str]:
    """Return what a script said of its exception, each word cut to its bound; whatever it wrote is possible."""
    try:
        found = json.loads(said)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    texts = {key: found[key] for key in WORD_BYTES if isinstance(found.get(key), str)}
    return {
        key: text.encode(errors="replace")[: WORD_BYTES[key]].decode(errors="ignore") for key, text in texts.items()
    }


def signal_name(number: int) -> str:
    """Return SIGKILL for 9, and so on."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
