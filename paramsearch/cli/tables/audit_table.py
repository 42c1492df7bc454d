"""The commands for tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from paramsearch.cli.options import Machine, Tier

if TYPE_CHECKING:
    from accounting.model import proof_types as proof

Folder = Annotated[
    Path | None,
    typer.Argument(metavar="TABLE", help="A table's folder; by default this package's own."),
]


def table(
    grid: Annotated[
        Path, typer.Argument(help="TOML: eps, delta, max_value, central_fraction, n as lists.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of the table.")],
    workers: Annotated[
        int | None, typer.Option(help="Processes on this machine, by default one for each core.")
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

    Files are for one release; several runs may share a folder.
    """
    from paramsearch.cli.tables.table import run_table

    raise typer.Exit(
        run_table(
            grid, output=output, workers=workers, scheduler=scheduler, retry=retry, as_json=json
        )
    )


def lookup(
    n: Annotated[int, typer.Option(help="Users.")],
    eps: Annotated[float, typer.Option(help="The guarantee's eps.")],
    delta: Annotated[float, typer.Option(help="The guarantee's delta.")],
    max_value: Annotated[int, typer.Option(help="Inputs are the integers 0..K.", metavar="K")],
    table: Folder = None,
    max_rmse: Annotated[
        float | None, typer.Option(help="Allow at most this error of the sum.")
    ] = None,
    objective: Annotated[str, typer.Option(help="Cheapest in messages or bits.")] = "messages",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write the parameter file.")
    ] = None,
    json: Machine = False,
) -> None:
    """The cheapest certified file of a table that serves a request, for any number of users.

    A file for a smaller eps or delta, or for larger inputs, serves, too. Files are for one release.
    """
    from paramsearch.cli.tables.lookup import run_lookup
    from paramsearch.problem import Objective
    from paramsearch.tables.lookup import Query

    query = Query(
        n=n,
        eps=eps,
        delta=delta,
        max_value=max_value,
        max_rmse=max_rmse,
        objective=cast("Objective", objective),
    )
    raise typer.Exit(run_lookup(table, query, output=output, as_json=json))


def audit_table(
    table: Folder = None,
    sample: Annotated[int | None, typer.Option(help="Only so many files, by chance.")] = None,
    seed: Annotated[int, typer.Option(help="Of the sample.")] = 0,
    tier: Tier = "fast",
    json: Machine = False,
) -> None:
    """Prove the files of a table anew, and check that no problem is dearer than a harder one.

    Exit code 1 if a claim is violated or a file is not the one of the index, 3 if one is undecided.
    """
    from paramsearch.cli.tables.lookup import run_audit_table

    raise typer.Exit(
        run_audit_table(
            table, sample=sample, seed=seed, tier=cast("proof.Tier", tier), as_json=json
        )
    )


def explore(
    table: Folder = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write the page: FILE.html.")
    ] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Show it to a browser on this machine, until Ctrl-C.")
    ] = False,
    port: Annotated[int, typer.Option(help="Of --serve; 0 takes one that is free.")] = 8080,
    json: Machine = False,
) -> None:
    """A table as one page with sliders: costs, errors, other mechanisms, and the files themselves.

    The page needs no network and nothing beside it.
    """
    from paramsearch.cli.tables.explore import run_explore

    raise typer.Exit(run_explore(table, output=output, serve=serve, port=port, as_json=json))
