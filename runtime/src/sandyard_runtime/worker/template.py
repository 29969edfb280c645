"""The template: a locked process without a user's code, that forks the run.

Forked by the supervisor, it locks itself down and says so; on an order it takes the run's pipes and forks twice,
so that PID 1 becomes the run's parent and gets its true status. It never runs user code itself.
"""

import gc
import os
import signal
import socket
from typing import Final

from sandyard_runtime.worker import environment, landlock, lockdown, script
from sandyard_runtime.worker.order import DESCRIPTORS, Order, receive_order, send

FIRST_FREE: Final = 3  # below are stdin, stdout and stderr
OPEN_FILES: Final = 4096  # nothing of ours has a descriptor above
WORKSPACE: Final = "/workspace"
GO: Final = b"g"
NO_CHILD: Final = -1  # in place of a pid: the kernel refused


def main(control: socket.socket, *, egress: bool) -> int:
    """Lock down, report, then fork a run for each order until the supervisor is gone; returns an exit code."""
    try:
        isolation = lockdown.enter(egress=egress)
    except OSError as error:
        send(control, {"error": f"lock-down failed: {error.strerror or error}"})
        return 1
    send(control, isolation.told())
    gc.freeze()  # what is here is never garbage: a run's collections and its end need not look at it
    while (received := receive_order(control)) is not None:
        order, descriptors = received
        pid = fork_twice()
        if pid == 0:
            control.close()
            return become_run(order, descriptors, isolation)
        for descriptor in descriptors:
            os.close(descriptor)
        send(control, {"pid": pid})
    return 0


def fork_twice() -> int:
    """Fork a child of PID 1's; returns its pid or NO_CHILD, and 0 in the child itself."""
    reader, writer = os.pipe()
    try:
        middle = os.fork()
        if middle == 0:
            os.close(reader)
            return fork_once(writer)
    except OSError:
        os.close(reader)
        os.close(writer)
        return NO_CHILD
    os.close(writer)
    pid = int(os.read(reader, 32) or NO_CHILD)
    os.close(reader)
    os.waitpid(middle, 0)
    return pid


def fork_once(writer: int) -> int:
    """Fork, tell the pid and be gone, so that the child is PID 1's; returns in the child alone."""
    try:
        inner = os.fork()
    except OSError:
        os._exit(1)
    if inner:
        os.write(writer, b"%d" % inner)
        os._exit(0)
    os.close(writer)
    return 0


def become_run(order: Order, descriptors: list[int], isolation: lockdown.Isolation) -> int:
    """Turn this process into the run, wait at the gate and return the script's exit code."""
    report, gate_descriptor = take_descriptors(descriptors)
    with socket.socket(fileno=gate_descriptor) as gate:
        try:
            settle(order)
            lockdown.show_files()
            seen = lockdown.probe(egress=isolation.egress, landlock_abi=isolation.landlock_abi)
        except OSError as error:
            send(gate, {"error": f"lock-down failed: {error}"})
            return 1
        send(gate, seen.told())
        if gate.recv(len(GO)) != GO:
            return 1
    return script.run(order.code, order.arguments, report=report)


def take_descriptors(descriptors: list[int]) -> tuple[int, int]:
    """Put the run's ends where they belong, close all else and return those of the report and the gate."""
    above = max(*descriptors, FIRST_FREE + DESCRIPTORS) + 1
    for offset, descriptor in enumerate(descriptors):
        os.dup2(descriptor, above + offset)
    for target in range(DESCRIPTORS):
        os.dup2(above + target, target, inheritable=target < FIRST_FREE)
    os.closerange(DESCRIPTORS, OPEN_FILES)
    return FIRST_FREE, FIRST_FREE + 1


def settle(order: Order) -> None:
    """Give the run its session, signals, environment, folders and limits."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as every Python program starts
    landlock.scope_signals()
    environment.replace(order.environment)
    environment.lend_fonts()
    os.umask(0o022)
    os.makedirs(environment.OUTPUT, exist_ok=True)  # noqa: PTH103 - no pathlib before a run
    os.chdir(WORKSPACE)
    lockdown.limit(
        open_files=order.limits["openFiles"],
        processes=order.limits["processes"],
        file_bytes=order.limits["diskBytes"],
    )
