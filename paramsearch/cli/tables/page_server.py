"""A web server for one page, on this machine."""

from __future__ import annotations

import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from accounting.base.errors import InvalidParameter

_HOST = "127.0.0.1"
_LARGEST_PORT = 65_535


class PageServer(ThreadingHTTPServer):
    """Serves one page, to this machine only."""

    daemon_threads = True
    content = b""

    def __init__(self, port: int) -> None:
        if not 0 <= port <= _LARGEST_PORT:
            raise InvalidParameter(f"--port {port}: a port is a number from 0 to {_LARGEST_PORT:,}")
        try:
            super().__init__((_HOST, port), _Handler)
        except OSError as error:
            raise InvalidParameter(f"--port {port}: {error.strerror}; 0 takes a free one") from None

    @property
    def address(self) -> str:
        return f"http://{_HOST}:{self.server_port}/"

    def run(self, content: bytes) -> None:
        """Serve the page until Ctrl-C."""
        self.content = content
        print(f"{self.address} (Ctrl-C stops it)", file=sys.stderr, flush=True)
        try:
            self.serve_forever()
        except KeyboardInterrupt:
            print(file=sys.stderr)


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    server_version, sys_version = "paramsearch", ""

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        if self.path.split("?")[0] != "/":
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(self.server.content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", "frame-ancestors 'none'")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if body:
            self.wfile.write(self.server.content)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged."""
