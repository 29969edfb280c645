"""What one run gets, and how it travels from the supervisor to the template: over a socket pair, with the pipes."""

import json
import socket
from typing import Any, Final, NamedTuple

LENGTH_BYTES: Final = 4
DESCRIPTORS: Final = 5  # stdin, stdout, stderr, report, gate


class Order(NamedTuple):
    """A script, its words and its bounds."""

    code: bytes
    arguments: list[str]
    environment: dict[str, str]
    limits: dict[str, int]
    egress: bool


def send_order(control: socket.socket, order: Order, descriptors: list[int]) -> None:
    """Send an order and the run's own ends of its pipes."""
    head = {
        "arguments": order.arguments,
        "environment": order.environment,
        "limits": order.limits,
        "egress": order.egress,
        "codeBytes": len(order.code),
    }
    send(control, head, descriptors)
    control.sendall(order.code)


def receive_order(control: socket.socket) -> tuple[Order, list[int]] | None:
    """Return the next order and its pipes, or None when the supervisor is gone."""
    length, descriptors, _, _ = socket.recv_fds(control, LENGTH_BYTES, DESCRIPTORS)
    if len(length) < LENGTH_BYTES:
        return None
    head = json.loads(_exactly(control, int.from_bytes(length, "big")))
    return Order(_exactly(control, head.pop("codeBytes")), **head), descriptors


def send(control: socket.socket, message: dict[str, Any], descriptors: list[int] | None = None) -> None:
    """Send one message, with descriptors where given."""
    raw = json.dumps(message).encode()
    socket.send_fds(control, [len(raw).to_bytes(LENGTH_BYTES, "big")], descriptors or [])
    control.sendall(raw)


def receive(control: socket.socket) -> dict[str, Any]:
    """Return one message; empty when the other side is gone."""
    length = _exactly(control, LENGTH_BYTES)
    message = json.loads(_exactly(control, int.from_bytes(length, "big")) or b"{}")
    return message if isinstance(message, dict) else {}


def _exactly(control: socket.socket, size: int) -> bytes:
    """Read this many bytes; none where the other side ended before."""
    data = bytearray()
    while len(data) < size:
        piece = control.recv(size - len(data))
        if not piece:
            return b""
        data += piece
    return bytes(data)
