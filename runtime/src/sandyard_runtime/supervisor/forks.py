"""Forking the template and talking to it, from PID 1's side."""

import os
import socket
import sys
from typing import Any, Final, NamedTuple

from sandyard_runtime.supervisor.link import Link
from sandyard_runtime.supervisor.streams import Pipes
from sandyard_runtime.worker import order as orders
from sandyard_runtime.worker import template

LOCKDOWN_SECONDS: Final = 20.0  # a starved node's, not what it takes


class NotStartedError(Exception):
    """No user byte ran; says as which outcome that is told."""

    def __init__(self, outcome: str, message: str) -> None:
        super().__init__(message)
        self.outcome = outcome


class Template(NamedTuple):
    """A locked process that waits to fork a run, and what it found in force."""

    control: socket.socket
    isolation: dict[str, Any]


def start_template(link: Link, *, egress: bool) -> Template:
    """Fork a template and wait until it has locked itself down; raises NotStartedError."""
    try:
        ours, theirs = socket.socketpair()
        child = os.fork()
    except OSError as error:
        raise NotStartedError("startFailed", f"no template could be forked: {error.strerror}") from error
    if child == 0:
        # A descriptor's number will be another file's; an object that still held it would close that one at the end.
        link.connection.detach()
        ours.detach()
        os.closerange(3, theirs.fileno())
        os.closerange(theirs.fileno() + 1, template.OPEN_FILES)
        sys.exit(template.main(theirs, egress=egress))
    theirs.close()
    ours.settimeout(LOCKDOWN_SECONDS)
    return Template(ours, hear(ours, otherwise="the template died during its lock-down"))


def fork_run(chosen: Template, order: orders.Order, pipes: Pipes) -> tuple[int, dict[str, Any]]:
    """Have a run forked that waits at its gate; return its pidfd and what it found in force, or NotStartedError."""
    try:
        orders.send_order(chosen.control, order, pipes.handed_over)
        pipes.hand_over()
        pid = orders.receive(chosen.control).get("pid", template.NO_CHILD)
        if pid == template.NO_CHILD:
            raise NotStartedError("startFailed", "the kernel refused another process for the run")
        pidfd = os.pidfd_open(pid)
    except OSError as error:
        raise NotStartedError("startFailed", f"the run could not be forked: {error.strerror or error}") from error
    pipes.gate.settimeout(LOCKDOWN_SECONDS)
    return pidfd, hear(pipes.gate, otherwise="the run died during its lock-down")


def open_gate(pipes: Pipes) -> None:
    """Let the run go on to the user's code; from here on nothing it says counts for more than data."""
    pipes.gate.sendall(template.GO)
    pipes.gate.close()


def hear(channel: socket.socket, *, otherwise: str) -> dict[str, Any]:
    """Return what a process found in force; raises NotStartedError with its reason or ours."""
    try:
        told = orders.receive(channel)
    except OSError as error:
        raise NotStartedError("isolationUnavailable", f"{otherwise}: {error}") from error
    if "network" not in told:
        raise NotStartedError("isolationUnavailable", str(told.get("error", otherwise)))
    return told
