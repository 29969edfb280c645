"""The supervisor's life: connect, template, ready, inputs, one run, artifacts, done.

Ends when the agent goes away. Nothing here waits for a user's process without also watching the channel.
"""

import json
import os
import signal
import sys
from typing import Any, Final

from sandyard_runtime import wire
from sandyard_runtime.supervisor.collect import collect
from sandyard_runtime.supervisor.forks import NotStartedError, Template, start_template
from sandyard_runtime.supervisor.link import Link, LinkLostError, connect
from sandyard_runtime.supervisor.reaper import end_all
from sandyard_runtime.supervisor.run import Run
from sandyard_runtime.supervisor.workspace import Placement
from sandyard_runtime.worker import syscalls
from sandyard_runtime.worker.order import Order

MESSAGE_CHARACTERS: Final = 1000
NOTHING: Final = {"stdoutBytes": 0, "stderrBytes": 0, "runMilliseconds": 0}


def main() -> int:
    """Serve one agent; returns the exit code of whichever process this is in the end."""
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # which PID 1 ignores; Python's own handler would raise
    try:
        serve(connect())
    except LinkLostError as error:
        print(f"supervisor: {error}", file=sys.stderr)  # noqa: T201 - PID 1 has no other log
        if os.getpid() == 1:
            end_all()
    return 0


class Inputs:
    """What a start brings, piece by piece."""

    def __init__(self, frame: wire.Frame) -> None:
        self._head: dict[str, Any] = {**frame.header, **json.loads(frame.payload)}
        self._blobs = {"code": bytearray(), "stdin": bytearray()}
        self._missing = set(self._blobs)
        self.cancelled = False
        self.run_id: str = self._head["runId"]
        self.timeout: float = self._head["timeoutSeconds"]

    @property
    def complete(self) -> bool:
        """Whether nothing is missing any more."""
        return not self._missing

    @property
    def stdin(self) -> bytes:
        """What the script reads."""
        return bytes(self._blobs["stdin"])

    def take(self, frame: wire.Frame) -> None:
        """Take a piece."""
        self._blobs[frame.kind] += frame.payload
        if frame.header["last"]:
            self._missing.discard(frame.kind)

    def order(self) -> Order:
        """Return what the template needs."""
        head = self._head
        return Order(bytes(self._blobs["code"]), head["args"], head["env"], head["limits"], head["egress"])


def serve(link: Link) -> None:
    """Announce what is in force, then do what the agent says, one run at most; ends by LinkLostError."""
    template = try_template(link)
    isolation = {} if isinstance(template, NotStartedError) else template.isolation
    link.send({"type": "ready", "python": sys.version.split()[0], "isolation": isolation})
    placement = Placement()
    inputs: Inputs | None = None
    while True:
        frame = link.wait()
        match frame.kind:
            case "file":
                placement.take(frame.header["path"], frame.payload, last=frame.header["last"])
            case "place" if placement.problem:
                link.send({"type": "placeFailed", "message": placement.problem[:MESSAGE_CHARACTERS]})
            case "place":
                link.send({"type": "placed"})
            case "start" if inputs is None:
                inputs = Inputs(frame)
            case "code" | "stdin" if inputs is not None and not inputs.complete:
                inputs.take(frame)
                if inputs.complete:
                    run(link, inputs, template)
            case "cancel" if inputs is not None:
                inputs.cancelled = True  # too late once the run has ended
            case _:
                raise LinkLostError(f"a frame of type {frame.kind} out of order")


def try_template(link: Link) -> Template | NotStartedError:
    """Return a template without a network, or why there is none."""
    try:
        return start_template(link, egress=False)
    except NotStartedError as error:
        return error


def run(link: Link, inputs: Inputs, first: Template | NotStartedError) -> None:
    """Carry out the one run and send what it left behind."""
    order = inputs.order()
    try:
        template = choose_template(link, inputs, first)
        one = Run(link, order, run_id=inputs.run_id)
        ending = one.carry_out(template, stdin=inputs.stdin, timeout=inputs.timeout)
        collecting = True
    except NotStartedError as error:
        end_all()
        ending = {"outcome": error.outcome, "message": str(error)[:MESSAGE_CHARACTERS], **NOTHING}
        collecting = False
    link.send({"type": "exited", "runId": inputs.run_id, **ending})
    warnings = collect(link, order.limits) if collecting else []
    link.send({"type": "finished", "runId": inputs.run_id, "warnings": warnings})


def choose_template(link: Link, inputs: Inputs, first: Template | NotStartedError) -> Template:
    """Return the template that fits; raises NotStartedError."""
    if inputs.cancelled:
        raise NotStartedError("cancelled", "cancelled before it started")
    if isinstance(first, NotStartedError):
        raise first
    if not inputs.order().egress:
        return first
    first.control.close()
    return start_template(link, egress=True)
