"""The command line: data on stdout, progress and messages on stderr.

Exit codes: 0 done, 1 a configuration violates its claim, 2 bad usage or input, 3 undecided within
the budget, 130 interrupted.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from accounting import AccountingError, Undecided
from paramsearch import profile as profiles

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Parameters for private summation with correlated noise in the shuffle model.",
)


@app.callback()
def _root() -> None:
    """Keeps ``profile`` a subcommand while it is the only one."""


@app.command()
def profile(
    config: Annotated[Path, typer.Argument(help="A configuration file, JSON.")],
    eps: Annotated[
        float | None, typer.Option(help="Evaluate at this eps instead of the file's.")
    ] = None,
    pair: Annotated[
        tuple[int, int] | None,
        typer.Option(metavar="J J2", help="Only the change of one input from J to J2."),
    ] = None,
    releases: Annotated[
        int, typer.Option(help="T releases by the same file, the same change in each.")
    ] = 1,
    gap: Annotated[float, typer.Option(help="Relative gap between the bounds.")] = 0.01,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the profile delta(eps): FILE.png or FILE.svg.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """The exact privacy of a configuration: delta at its eps, from below and from above.

    Adjacency is substitution: one user's input changes from any value to any other.
    """
    raise typer.Exit(
        profiles.run(
            config, eps=eps, pair=pair, releases=releases, gap=gap, plot=plot, as_json=json
        )
    )


def main() -> None:
    """Run the command line; an expected error is one line on stderr and never a traceback."""
    try:
        app()
    except Undecided as error:
        print(f"undecided: {error}", file=sys.stderr)
        sys.exit(3)
    except AccountingError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except MemoryError:
        print("error: out of memory; ask for a wider --gap or a smaller problem", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
