"""The template: a locked process without a user's code, that forks the run.

Forked by the supervisor, it locks itself down and says so; on a word from the supervisor it takes the run's pipes
and forks twice, so that PID 1 becomes the run's parent and gets its true status. It never runs user code itself.
"""

import array
import json
import os
import signal
import socket
import sys
from dataclasses import dataclass
from typing import Any, Final

from sandyard_runtime.worker import lockdown, script

PIPES: Final = 5  # stdin, stdout, stderr, report, go
MAX_ORDER_BYTES: Final = 4 * 1024 * 1024  # code, arguments and environment of one run


@dataclass(frozen=True, slots=True)
class Order:
    """What one run gets."""

    code: bytes
    arguments: list[str]
    environment: dict[str, str]
    limits: dict[str, int]
    egress: bool


def main(control: socket.socket, *, egress: bool) -> int:
    """Lock down, report, then fork a run for each order until the supervisor is gone; returns an exit code."""
    try:
        applied = lockdown.enter(egress=egress)
        answer: dict[str, Any] = {"seccomp": applied.seccomp, "landlockABI": applied.landlock_abi}
        answer["userNamespace"] = lockdown.user_namespace()
    except OSError as error:
        answer = {"error": f"lock-down failed: {error.strerror or error}"}
    send(control, answer)
    if "error" in answer:
        return 1
    while True:
        received = receive(control)
        if received is None:
            return 0
        order, descriptors = received
        pid, code = fork_run(order, descriptors, control)
        if pid == 0:
            return code
        send(control, {"pid": pid})


def fork_run(order: Order, descriptors: list[int], control: socket.socket) -> tuple[int, int]:
    """Return the run's pid in the template, or 0 and the exit code in the run itself."""
    reader, writer = os.pipe()
    middle = os.fork()
    if middle == 0:
        inner = os.fork()
        if inner:
            os.write(writer, b"%d" % inner)
            os._exit(0)
        os.close(reader)
        os.close(writer)
        control.close()
        return 0, become_run(order, descriptors)
    os.close(writer)
    pid = int(os.read(reader, 32) or b"0")
    os.close(reader)
    os.waitpid(middle, 0)
    for descriptor in descriptors:
        os.close(descriptor)
    return pid, 0


def become_run(order: Order, descriptors: list[int]) -> int:
    """Turn this process into the run and return the script's exit code."""
    stdin, stdout, stderr, report, go = descriptors
    os.setsid()
    for source, target in ((stdin, 0), (stdout, 1), (stderr, 2)):
        os.dup2(source, target)
    lowest = 3
    report, go = os.dup2(report, max(descriptors) + 1), os.dup2(go, max(descriptors) + 2)
    report, go = os.dup2(report, lowest, inheritable=False), os.dup2(go, lowest + 1, inheritable=False)
    os.closerange(lowest + 2, 4096)
    try:
        lockdown.environment(order.environment, output="/workspace/output")
        os.makedirs("/workspace/output", exist_ok=True)  # noqa: PTH103
        os.chdir("/workspace")
        os.umask(0o022)
        for number in (signal.SIGINT, signal.SIGPIPE):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_IGN)
        lockdown.narrow(egress=order.egress)
        lockdown.limit(
            open_files=order.limits["openFiles"],
            processes=order.limits["processes"],
            file_bytes=order.limits["diskBytes"],
        )
    except OSError as error:
        os.write(report, json.dumps({"lockdown": str(error)}).encode())
        return 1
    if os.read(go, 1) != b"g":
        return 1
    os.close(go)
    return script.run(order.code, order.arguments, report=report)


def send(control: socket.socket, answer: dict[str, Any], descriptors: list[int] | None = None) -> None:
    """Send one message, with descriptors where given."""
    raw = json.dumps(answer).encode()
    ancillary = []
    if descriptors:
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
    control.sendmsg([len(raw).to_bytes(4, "big")], ancillary)
    control.sendall(raw)


def read_exactly(control: socket.socket, size: int) -> bytes:
    """Read this many bytes; fewer at the end."""
    data = bytearray()
    while len(data) < size:
        piece = control.recv(size - len(data))
        if not piece:
            break
        data += piece
    return bytes(data)


def receive(control: socket.socket) -> tuple[Order, list[int]] | None:
    """Return the next order and its pipes, or None when the supervisor is gone."""
    length, descriptors, _, _ = socket.recv_fds(control, 4, PIPES)
    if len(length) < 4:  # noqa: PLR2004 - the length's own size
        return None
    head = json.loads(read_exactly(control, int.from_bytes(length, "big")))
    code = read_exactly(control, head.pop("codeBytes"))
    order = Order(code, head["args"], head["env"], head["limits"], head["egress"])
    return order, descriptors


def send_order(control: socket.socket, order: Order, descriptors: list[int]) -> None:
    """Send an order from the supervisor's side."""
    head = {
        "args": order.arguments,
        "env": order.environment,
        "limits": order.limits,
        "egress": order.egress,
        "codeBytes": len(order.code),
    }
    send(control, head, descriptors)
    control.sendall(order.code)


def read_answer(control: socket.socket) -> dict[str, Any]:
    """Read one answer of the template; empty when it is gone."""
    length = read_exactly(control, 4)
    if len(length) < 4:  # noqa: PLR2004
        return {}
    answer = json.loads(read_exactly(control, int.from_bytes(length, "big")))
    return answer if isinstance(answer, dict) else {}


if __name__ == "__main__":
    sys.exit("the template is forked by the supervisor, not started")
