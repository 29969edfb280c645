"""A proxy in front of a real index that spoils chosen answers on their way."""

import http.client
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

from harness.index import HOST

PASSED_ON: Final = ("authorization", "range", "accept")


@dataclass(slots=True)
class Reply:
    """An answer of the index, to be spoiled or let through."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    stall: threading.Event | None = None  # set: the body stops half-way until then


Spoil = Callable[[str, Reply], Reply]


@contextmanager
def fault_proxy(port: int, spoil: Spoil, *, tls: Path | None = None) -> Iterator[int]:
    """Serve the index at ``port`` through ``spoil(path, reply)``; yields the proxy's port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            reply = spoil(self.path, _fetch(port, self.path, dict(self.headers)))
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(reply.body)))
            self.end_headers()
            half = len(reply.body) // 2 if reply.stall else len(reply.body)
            self.wfile.write(reply.body[:half])
            self.wfile.flush()
            if reply.stall:
                reply.stall.wait()
                self.close_connection = True

        def do_HEAD(self) -> None:
            self.send_error(405)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((HOST, 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls / "tls.crt", tls / "tls.key")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _fetch(port: int, path: str, headers: dict[str, str]) -> Reply:
    connection = http.client.HTTPConnection(HOST, port, timeout=20)
    try:
        passed = {name: value for name, value in headers.items() if name.lower() in PASSED_ON}
        connection.request("GET", path, headers=passed)
        response = connection.getresponse()
        kept = {
            name: value
            for name, value in response.getheaders()
            if name.lower() in {"content-type", "content-range", "accept-ranges", "www-authenticate"}
        }
        return Reply(status=response.status, body=response.read(), headers=kept)
    finally:
        connection.close()
