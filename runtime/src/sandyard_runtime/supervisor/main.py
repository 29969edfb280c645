"""The supervisor's life: connect, template, ready, inputs, one run, artifacts, done.

Ends when the agent goes away. Nothing here waits for a user's process without also watching the channel.
"""

import json
import os
import sys
from dataclasses import dataclass, field
from typing import Any

from sandyard_runtime import wire
from sandyard_runtime.supervisor.forks import ChildDone, Template, start_template
from sandyard_runtime.supervisor.link import Link, LinkLostError, connect
from sandyard_runtime.supervisor.run import Run, kill_everything
from sandyard_runtime.supervisor.workspace import OUTPUT, Placement, collect
from sandyard_runtime.wire import Frame
from sandyard_runtime.worker import landlock, syscalls
from sandyard_runtime.worker.template import Order


def main() -> int:
    """Serve one agent; returns the exit code of whichever process this is in the end."""
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    try:
        serve(connect())
    except ChildDone as done:
        return done.code
    except LinkLostError as error:
        print(f"supervisor: {error}", file=sys.stderr)  # noqa: T201 - PID 1 has no other log
        if os.getpid() == 1:
            kill_everything()
    return 0


@dataclass(slots=True)
class Inputs:
    """What a start has brought so far."""

    head: dict[str, Any]
    blobs: dict[str, bytearray] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)

    def take(self, frame: Frame) -> bool:
        """Take a piece; true when nothing is missing any more."""
        self.blobs.setdefault(frame.kind, bytearray()).extend(frame.payload)
        if frame.header["last"]:
            self.missing.discard(frame.kind)
        return not self.missing

    def order(self) -> Order:
        """Return what the template needs."""
        head = self.head
        return Order(bytes(self.blobs["code"]), head["args"], head["env"], head["limits"], head["egress"])


def serve(link: Link) -> None:
    """Announce what is in force, then do what the agent says; ends by LinkLostError."""
    chosen, problem = try_template(link, egress=False)
    isolation = chosen.isolation if chosen else {}
    link.send({"type": "ready", "python": sys.version.split()[0], "isolation": {**isolation, "network": "None"}})
    placement, inputs = Placement(), Inputs({})
    while True:
        for frame in link.wait():
            match frame.kind:
                case "file":
                    placement.take(frame.header["path"], frame.payload, last=frame.header["last"])
                case "place":
                    place = {"type": "placeFailed", "message": placement.problem[:1000]} if placement.problem else {}
                    link.send(place or {"type": "placed"})
                case "start":
                    inputs = Inputs({**frame.header, **json.loads(frame.payload or b"{}")}, missing={"code", "stdin"})
                case "code" | "stdin":
                    if inputs.take(frame):
                        run(link, inputs, chosen, problem)
                case "cancel":
                    continue  # before a start the agent itself stops; after the end there is nothing to stop
                case _:
                    raise LinkLostError(f"a frame of type {frame.kind}")


def try_template(link: Link, *, egress: bool) -> tuple[Template | None, str]:
    """Return a template, or why there is none."""
    try:
        return start_template(link, egress=egress), ""
    except OSError as error:
        return None, str(error)


def run(link: Link, inputs: Inputs, chosen: Template | None, problem: str) -> None:
    """Carry out the one run and send what it left behind."""
    order = inputs.order()
    if order.egress:
        chosen, problem = try_template(link, egress=True)
    if chosen is None:
        nothing = {"stdoutBytes": 0, "stderrBytes": 0, "runMilliseconds": 0}
        link.send({"type": "exited", "outcome": "isolationUnavailable", "message": problem[:1000], **nothing})
        link.send({"type": "finished"})
        return
    stdin = bytes(inputs.blobs.get("stdin", b""))
    Run(link, order, stdin=stdin, timeout=inputs.head["timeoutSeconds"]).carry_out(chosen)
    link.send({"type": "finished", "warnings": collect_artifacts(link, order)})


def collect_artifacts(link: Link, order: Order) -> list[str]:
    """Have a locked helper send the artifacts; return its warnings."""
    link.flush_all()
    reader, writer = os.pipe()
    helper = os.fork()
    if helper == 0:
        os.close(reader)
        raise ChildDone(help_collect(link, order, writer))
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read(wire.HEADER_BYTES // 2)
    status = os.waitstatus_to_exitcode(os.waitpid(helper, 0)[1])
    if status != 0:
        return ["the artifacts could not be collected"]
    warnings = json.loads(said or b"[]")
    return [str(each) for each in warnings]


def help_collect(link: Link, order: Order, writer: int) -> int:
    """Lock down to reading, send the files, tell the warnings; the helper's exit code."""
    link.connection.setblocking(True)  # noqa: FBT003 - the method's own signature
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    if landlock.abi():
        landlock.restrict(egress=False, writable=(), readable=(OUTPUT,))
    limits = order.limits
    warnings = collect(link.connection.sendall, max_bytes=limits["artifactBytes"], max_count=limits["artifactCount"])
    os.write(writer, json.dumps(warnings).encode())
    return 0
