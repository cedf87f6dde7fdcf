"""The process that answers Prometheus. It has no rights: its parent, which may ask the lab, writes it the text.

Standard input brings one JSON string per line, each the whole text from then on. The process ends when the parent does,
because standard input ends. It answers on the loopback address only, and asks nothing of the lab.
"""

import json
import os
import sys
import threading
from collections import OrderedDict
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR, socket
from typing import Any, ClassVar

from cli.metrics.exposition import CONTENT_TYPE
from common.linux.rights import allow_many_files, drop_rights

SILENT_S = 5.0  # in which a connection must have asked for something
CONNECTIONS_MAX = 256  # or half of the descriptors if those are fewer
PATH = "/metrics"
LOOPBACK = "127.0.0.1"


class Handler(BaseHTTPRequestHandler):
    """A request. Only loopback names are answered, so that a web page cannot read the text by DNS rebinding.

    Each connection has a thread: one that asks for nothing keeps no scrape waiting. All threads read the same `text`.
    """

    timeout = SILENT_S
    server_version, sys_version = "mrclab", ""
    text = ""

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def _answer(self) -> None:
        """The text, with or without a scrape job's parameters; without its body for HEAD."""
        host = self.headers.get("Host", "").partition(":")[0]
        if self.path.partition("?")[0] != PATH or host not in (LOOPBACK, "localhost"):
            self.send_error(HTTPStatus.NOT_FOUND if host else HTTPStatus.BAD_REQUEST)
            return
        body = type(self).text.encode(errors="replace")
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *_: object) -> None:
        """Logs nothing: Prometheus asks every few seconds."""


class MetricsServer(ThreadingHTTPServer):
    """Of too many connections the oldest is closed. A client that goes before it has its answer is no error."""

    request_queue_size = 32
    connections_max = CONNECTIONS_MAX
    _connections: ClassVar[OrderedDict[socket, None]] = OrderedDict()  # the oldest first; of all threads

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections[request] = None
        if len(self._connections) > self.connections_max:
            with suppress(KeyError, OSError):  # it has just ended by itself
                self._connections.popitem(last=False)[0].shutdown(SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def main() -> None:
    """Serves on the port given as the first argument, as the user and group given as the second and third, if any."""
    port, *user = (int(word) for word in sys.argv[1:])
    MetricsServer.connections_max = min(CONNECTIONS_MAX, allow_many_files() // 2)
    try:
        server = MetricsServer((LOOPBACK, port), Handler)
    except OSError as error:
        sys.stdout.write(f"{error.strerror}\n")
        return
    if user:
        drop_rights(user[0], user[1])
    os.chdir("/")
    sys.stdout.write(f"ready {server.server_port}\n")
    sys.stdout.flush()
    Handler.text = json.loads(sys.stdin.readline() or '""')
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for line in sys.stdin:
        Handler.text = json.loads(line)


if __name__ == "__main__":
    main()
