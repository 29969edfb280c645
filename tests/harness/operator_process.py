"""The real operator as a program that one fault strikes: a signal to itself just before or after one of its calls.

Composed by ``sandyard_operator.__main__`` as in production; only the two clients, to the API server and to the
agents, tell each call to a counter first. FAULT holds the fault as JSON, RECORD names the file that gets a line for
each counted call, and a line on standard input lets it begin, so that its imports cost no time between two operators.
"""

import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import wraps
from typing import Any, Final, Self

from sandyard_operator.__main__ import main
from sandyard_operator.agents.client import AgentClient
from sandyard_operator.decide.pod import PodView
from sandyard_operator.kube.client import Client
from sandyard_operator.ports import PortError

API_CALLS: Final = ("get", "create", "merge", "apply", "delete")
AGENT_CALLS: Final = (
    "status",
    "send_bundle",
    "requirements",
    "install",
    "install_status",
    "probe",
    "start",
    "run_status",
    "cancel",
    "revoke",
    "acknowledge",
)
FAULT: Final = "FAULT"
RECORD: Final = "RECORD"

Method = Callable[..., Awaitable[Any]]


class When(StrEnum):
    """On which side of the call."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens to the process, and when."""

    signal: str = "SIGKILL"
    when: When = When.AFTER
    call: str = ""  # its name; empty for any
    number: int = 1  # which of these calls
    namespace: str = ""  # only calls that concern it count; empty for all calls

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what ``str`` wrote."""
        fields = json.loads(text)
        return cls(**{**fields, "when": When(fields["when"])})

    def __str__(self) -> str:
        """Write it as JSON."""
        return json.dumps(asdict(self))


@dataclass(slots=True)
class Counter:
    """Counts calls and strikes once."""

    fault: Fault | None
    record: int  # a file descriptor
    count: int = 0

    def watch(self, client: type[Any], methods: Iterable[str]) -> None:
        """Have a client's methods tell their calls."""
        for name in methods:
            setattr(client, name, self._told(name, getattr(client, name)))

    def _told(self, name: str, method: Method) -> Method:
        @wraps(method)
        async def call(client: object, subject: str | PodView, *args: Any, **kwargs: Any) -> Any:
            namespace, kind = _place(subject)
            what = f"{name} {kind}".strip()
            number = self._number(what, namespace)
            self._strike(When.BEFORE, what, number)
            outcome = "answered"
            try:
                return await method(client, subject, *args, **kwargs)
            except PortError as error:
                outcome = type(error).__name__
                raise
            finally:
                self._strike(When.AFTER, what, number)
                if number:
                    self._note(f"{outcome} {what}")

        return call

    def _number(self, what: str, namespace: str) -> int:
        """Return which of the counted calls this is; 0 where it does not count."""
        fault = self.fault
        if fault is None or fault.namespace not in ("", namespace):
            return 0
        self._note(f"call {what}")
        if fault.call not in ("", what):
            return 0
        self.count += 1
        return self.count

    def _strike(self, when: When, what: str, number: int) -> None:
        fault = self.fault
        if fault is not None and number == fault.number and when is fault.when:
            self._note(f"struck {when} {what}")
            os.kill(os.getpid(), signal.Signals[fault.signal])

    def _note(self, line: str) -> None:
        os.write(self.record, f"{line}\n".encode())


def _place(subject: str | PodView) -> tuple[str, str]:
    """Return namespace and kind of a path of the API server; an agent's calls have a name that says it all."""
    if isinstance(subject, PodView):
        return subject.namespace, ""
    parts = subject.split("/")[3 if subject.startswith("/api/") else 4 :]
    if parts[0] == "namespaces" and len(parts) > 2:
        return parts[1], "/".join(parts[2::2])
    return "", "/".join(parts[::2])


if __name__ == "__main__":
    text = os.environ.get(FAULT)
    counter = Counter(
        fault=Fault.parse(text) if text else None,
        record=os.open(os.environ[RECORD], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600),
    )
    counter.watch(Client, API_CALLS)
    counter.watch(AgentClient, AGENT_CALLS)
    sys.exit(main() if sys.stdin.readline() else 0)  # nothing is said where the test itself was killed
