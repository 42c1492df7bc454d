"""The commands for tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from paramsearch.cli_options import Machine


def table(
    grid: Annotated[
        Path, typer.Argument(help="TOML: eps, delta, max_value, central_fraction, n as lists.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of the table.")],
    workers: Annotated[
        int | None, typer.Option(help="Processes on this machine. [as many as cores]")
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Run on a Dask cluster, e.g. tcp://host:8786."),
    ] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Try the problems that failed before again.")
    ] = False,
    json: Machine = False,
) -> None:
    """Make certified parameter files for a grid of problems; run it again to go on or to extend it.

    Several runs may share a folder.
    """
    from paramsearch.table_command import run_table

    raise typer.Exit(
        run_table(
            grid, output=output, workers=workers, scheduler=scheduler, retry=retry, as_json=json
        )
    )
