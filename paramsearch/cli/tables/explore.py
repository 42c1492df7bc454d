"""``paramsearch explore``: a table as a page, in a file or for a browser on this machine."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from accounting.base.errors import InvalidParameter
from paramsearch.cli import options
from paramsearch.cli.output import check_writable, print_json, progress, show
from paramsearch.files import write_atomically


def explore(
    table: options.TableFolder = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write the page: FILE.html.")
    ] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve it to a browser on this machine, until Ctrl-C.")
    ] = False,
    port: Annotated[int, typer.Option(help="Port of --serve; 0 takes a free one.")] = 8080,
    as_json: options.AsJson = False,
) -> None:
    """Show a table as one page with sliders: costs, errors, other mechanisms, and the files.

    The page is self-contained and needs no network.
    """
    from paramsearch.cli.tables.page_server import PageServer
    from paramsearch.explorer.page import page
    from paramsearch.tables.lookup import Table

    begun = time.monotonic()
    if output is not None:
        check_writable(output, "--output", (".html",))
    elif not serve:
        raise InvalidParameter("no destination: give --output FILE.html, or --serve to see it now")
    server = PageServer(port) if serve else None  # a port that is taken is reported before any work
    try:
        opened = Table.open(table)
        with progress("explore") as say:
            content = page(opened, say).encode("utf-8")
        if output is not None:
            write_atomically(output, content)
        seconds = time.monotonic() - begun
        if as_json:
            print_json(
                {
                    "path": None if output is None else str(output),
                    "files": len(opened.rows),
                    "bytes": len(content),
                    "seconds": round(seconds, 3),
                    "address": None if server is None else server.address,
                }
            )
            sys.stdout.flush()  # whoever starts a server waits for its address
        elif output is not None:
            show(
                [
                    ("page", str(output)),
                    ("files", f"{len(opened.rows):,}"),
                    ("size", f"{len(content):,} bytes"),
                    ("time", f"{seconds:.1f} s"),
                ]
            )
        if server is not None:
            server.run(content)
    finally:
        if server is not None:
            server.server_close()
