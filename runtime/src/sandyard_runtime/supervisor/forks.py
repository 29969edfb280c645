"""Forking the template and talking to it, from PID 1's side."""

import os
import socket
from dataclasses import dataclass
from typing import Any, Final

from sandyard_runtime.supervisor.link import Link
from sandyard_runtime.worker import template

OPEN_FILES: Final = 4096  # PID 1 never has a descriptor above


@dataclass(frozen=True, slots=True)
class Template:
    """A locked process that waits to fork a run; ``isolation`` is what it found in force."""

    pid: int
    control: socket.socket
    isolation: dict[str, Any]
    egress: bool


class ChildDone(BaseException):
    """Carries a child's exit code up to the interpreter's own end."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def start_template(link: Link, *, egress: bool) -> Template:
    """Fork a template and wait until it has locked itself down; raises OSError with why it could not."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        link.connection.detach()
        os.closerange(3, theirs.fileno())
        os.closerange(theirs.fileno() + 1, OPEN_FILES)
        raise ChildDone(template.main(theirs, egress=egress))
    theirs.close()
    answer = template.read_answer(ours)
    if "error" in answer or not answer:
        ours.close()
        raise OSError(answer.get("error", "the template died during lock-down"))
    return Template(pid, ours, answer, egress)


def fork_run(chosen: Template, order: template.Order, descriptors: list[int]) -> int:
    """Have the template fork a run with these pipes and return its pid; raises OSError."""
    template.send_order(chosen.control, order, descriptors)
    pid = template.read_answer(chosen.control).get("pid")
    if not isinstance(pid, int) or pid <= 1:
        raise OSError("the template could not fork the run")
    return pid
