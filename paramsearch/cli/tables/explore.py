"""``paramsearch explore``: the page of a table, to a file or to a browser on this machine."""

from __future__ import annotations

import json
import sys
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from accounting.base.errors import InvalidParameter
from paramsearch.cli.output import progress, show
from paramsearch.explorer.page import page
from paramsearch.files import check_writable, write_atomically
from paramsearch.tables.lookup import Table

_HOST = "127.0.0.1"
_LARGEST_PORT = 65_535


def run_explore(
    table: Path | None, *, output: Path | None, serve: bool, port: int, as_json: bool
) -> int:
    """What was made on stdout, the address of a server on stderr."""
    begun = time.monotonic()
    if output is not None:
        check_writable(output, "--output", (".html",))
    elif not serve:
        raise InvalidParameter("where to? give --output FILE.html, or --serve to look at it now")
    server = Server(port) if serve else None  # a port that is taken is told before any work
    try:
        opened = Table.open(table)
        with progress("explore") as say:
            content = page(opened, say).encode("utf-8")
        if output is not None:
            write_atomically(output, content)
        facts = {
            "path": None if output is None else str(output),
            "files": len(opened.rows),
            "bytes": len(content),
            "seconds": round(time.monotonic() - begun, 3),
        }
        if as_json:
            print(json.dumps({**facts, "address": server and server.address}), flush=True)
        elif output is not None:
            show(
                [
                    ("page", str(output)),
                    ("files", f"{len(opened.rows):,}"),
                    ("size", f"{len(content):,} bytes"),
                    ("time", f"{facts['seconds']:.1f} s"),
                ]
            )
        if server is not None:
            server.run(content)
    finally:
        if server is not None:
            server.server_close()
    return 0


class Server(ThreadingHTTPServer):
    """One page, for this machine alone."""

    daemon_threads = True
    content = b""

    def __init__(self, port: int) -> None:
        if not 0 <= port <= _LARGEST_PORT:
            raise InvalidParameter(f"--port {port}: a port is a number from 0 to {_LARGEST_PORT:,}")
        try:
            super().__init__((_HOST, port), _Handler)
        except OSError as error:
            raise InvalidParameter(
                f"--port {port}: {error.strerror}; 0 takes one that is free"
            ) from None

    @property
    def address(self) -> str:
        return f"http://{_HOST}:{self.server_port}/"

    def run(self, content: bytes) -> None:
        """Until Ctrl-C."""
        self.content = content
        print(f"{self.address} (Ctrl-C ends it)", file=sys.stderr, flush=True)
        try:
            self.serve_forever()
        except KeyboardInterrupt:
            print(file=sys.stderr)


class _Handler(BaseHTTPRequestHandler):
    server: Server
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
        """Requests are not worth a line."""
