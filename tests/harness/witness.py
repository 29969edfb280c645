"""A witness of starts outside the cluster: each script that runs connects to it once and says its name.

It listens on a documentation address in a network namespace of its own, linked to the first node and to nothing else.
"""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.host_operator import node_network

ADDRESS: Final = "198.51.100.7"
PORT: Final = 4000
NAMESPACE: Final = "sandyard-witness"
NODE_SIDE: Final = "witness0"
GATEWAY: Final = "198.51.100.1"  # the node's end
LISTEN_SECONDS: Final = 10
LISTENER: Final = f"""
import socketserver

class Hear(socketserver.StreamRequestHandler):
    def handle(self):
        print(self.rfile.readline().decode().strip(), flush=True)
        self.wfile.write(b"heard\\n")

class Server(socketserver.ThreadingTCPServer):
    request_queue_size = 128

with Server(("{ADDRESS}", {PORT}), Hear) as server:
    print("listening", flush=True)
    server.serve_forever()
"""


def testimony(name: str) -> str:
    """Return the lines of a script that tell the witness that it was started, and wait until it has heard."""
    return (
        "import socket\n"
        f"with socket.create_connection(({ADDRESS!r}, {PORT}), timeout=30) as link:\n"
        f"    link.sendall(b'{name}\\n')\n"
        "    assert link.recv(6) == b'heard\\n'\n"
    )


@dataclass(frozen=True, slots=True)
class Witness:
    """What it heard is in a file."""

    heard: Path

    def starts(self) -> Counter[str]:
        """Return how often each name was told."""
        return Counter(self.heard.read_text().splitlines()[1:])


@contextmanager
def witness(folder: Path) -> Iterator[Witness]:
    """Set it up, and remove it."""
    heard = folder / "witness"
    _remove()
    _run("ip", "netns", "add", NAMESPACE)
    try:
        _link()
        listener = ["ip", "netns", "exec", NAMESPACE, sys.executable, "-c", LISTENER]
        with heard.open("w") as output, subprocess.Popen(listener, stdout=output) as process:
            try:
                _until_it_listens(heard)
                yield Witness(heard)
            finally:
                process.kill()
    finally:
        _remove()


def _link() -> None:
    node, own = [*node_network(), "ip"], ["ip", "-n", NAMESPACE]
    _run(*node, "link", "add", NODE_SIDE, "type", "veth", "peer", "name", "node", "netns", NAMESPACE)
    _run(*node, "addr", "add", f"{GATEWAY}/32", "dev", NODE_SIDE)
    _run(*node, "link", "set", NODE_SIDE, "up")
    _run(*own, "addr", "add", f"{ADDRESS}/32", "dev", "node")
    _run(*own, "link", "set", "node", "up")
    _run(*own, "link", "set", "lo", "up")
    _run(*own, "route", "add", "default", "via", GATEWAY, "dev", "node", "onlink")
    _run(*node, "route", "replace", f"{ADDRESS}/32", "dev", NODE_SIDE)


def _until_it_listens(heard: Path) -> None:
    deadline = time.monotonic() + LISTEN_SECONDS
    while "listening" not in heard.read_text():
        assert time.monotonic() < deadline, "the witness does not listen"
        time.sleep(0.05)


def _remove() -> None:
    """Delete the namespace, and the link with it, if it is there."""
    subprocess.run(["ip", "netns", "delete", NAMESPACE], capture_output=True, check=False)


def _run(*command: str) -> None:
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
