"""The command line: data on stdout, progress and messages on stderr.

Exit codes: 0 done, 1 a configuration violates its claim, 2 bad usage or input, 3 undecided within
the budget, 130 interrupted.
"""

from __future__ import annotations

import errno
import os
import select
import sys
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from accounting.base.errors import AccountingError, Undecided, Violated
from paramsearch.cli.options import Gap, Machine, SameChange, Tier, check_same_change
from paramsearch.cli.proving import profile as profiles
from paramsearch.cli.running import randomize as cli_deploy
from paramsearch.cli.searching import generate as cli_search
from paramsearch.cli.tables import audit_table as cli_table

if TYPE_CHECKING:
    from accounting.model import proof_types as proof

_LONGEST_LINE = 500
_INTERRUPTED = 130
app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Parameters for private summation with correlated noise in the shuffle model.",
)


Honest = Annotated[float | None, typer.Option(help="Only this fraction of the users adds noise.")]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"paramsearch {metadata.version('paramsearch')}")
        raise typer.Exit


@app.callback()
def _root(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


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
        int, typer.Option(help="T releases together, with any change of one user in each.")
    ] = 1,
    same_change: SameChange = False,
    gap: Gap = 0.01,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the profile delta(eps): FILE.png or FILE.svg.")
    ] = None,
    json: Machine = False,
) -> None:
    """The exact privacy of a configuration: delta at its eps, from below and from above.

    Adjacency is substitution: one user's input changes from any value to any other.
    """
    check_same_change(same_change, releases)
    raise typer.Exit(
        profiles.run(
            config,
            eps=eps,
            pair=pair,
            releases=releases,
            same_change=same_change,
            gap=gap,
            plot=plot,
            as_json=json,
        )
    )


@app.command()
def audit(
    file: Annotated[Path, typer.Argument(help="A parameter file or a bare configuration, JSON.")],
    eps: Annotated[float | None, typer.Option(help="Ask at this eps instead.")] = None,
    delta: Annotated[float | None, typer.Option(help="Ask for this delta instead.")] = None,
    releases: Annotated[
        int | None, typer.Option(help="T releases together, with any change of one user in each.")
    ] = None,
    same_change: SameChange = False,
    honest: Honest = None,
    tier: Tier = "auto",
    gap: Annotated[
        float, typer.Option(help="Relative gap of the bounds at which undecided is final.")
    ] = 1e-4,
    budget: Annotated[
        float | None, typer.Option(help="Seconds after which to answer with what is proved.")
    ] = None,
    public_key: Annotated[
        Path | None, typer.Option(help="Check the signature with this Ed25519 key, PEM.")
    ] = None,
    signature: Annotated[
        Path | None, typer.Option(help="The signature, if it is not FILE.sig.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write a self-contained report: FILE.html.")
    ] = None,
    json: Machine = False,
) -> None:
    """Is a file what it claims?  Trusts nothing in it: certified (0), violated (1), undecided (3).

    Adjacency is substitution: one user's input changes from any value to any other.
    """
    from paramsearch.cli.proving.audit import run_audit

    check_same_change(same_change, releases)
    raise typer.Exit(
        run_audit(
            file,
            eps=eps,
            delta=delta,
            releases=releases,
            same_change=same_change,
            honest=honest,
            tier=cast("proof.Tier", tier),
            gap=gap,
            budget=budget,
            public_key=public_key,
            signature_file=signature,
            report=report,
            as_json=json,
        )
    )


@app.command()
def certify(
    config: Annotated[Path, typer.Argument(help="A configuration or parameter file, JSON.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write the parameter file.")
    ] = None,
    n: Annotated[int | None, typer.Option(help="Users, if not as in the configuration.")] = None,
    eps: Annotated[float | None, typer.Option(help="eps, if not as configured.")] = None,
    delta: Annotated[float | None, typer.Option(help="delta, if not as configured.")] = None,
    releases: Annotated[
        int | None,
        typer.Option(help="Certify T releases together, with any change of one user in each."),
    ] = None,
    same_change: SameChange = False,
    honest: Annotated[
        float | None,
        typer.Option(help="Certify when only this fraction adds noise; everybody adds more."),
    ] = None,
    tier: Tier = "auto",
    gap: Gap = 1e-4,
    json: Annotated[bool, typer.Option("--json", help="The file itself on stdout.")] = False,
) -> None:
    """Turn a configuration into a certified parameter file: exact rationals and a proof.

    Noise is rounded up, never down.  A claim that does not hold is refused and nothing is written.
    """
    from paramsearch.cli.proving.audit import run_certify

    check_same_change(same_change, 1 if releases is None else releases)
    raise typer.Exit(
        run_certify(
            config,
            output=output,
            n=n,
            eps=eps,
            delta=delta,
            releases=releases,
            same_change=same_change,
            honest=honest,
            tier=cast("proof.Tier", tier),
            gap=gap,
            as_json=json,
        )
    )


for command in (
    cli_search.generate,
    cli_search.generate_real,
    cli_search.generate_sparse,
    cli_search.pareto,
    cli_search.rescale,
    cli_search.compare,
    cli_table.table,
    cli_table.lookup,
    cli_table.audit_table,
    cli_table.explore,
    cli_deploy.randomize,
    cli_deploy.analyze,
    cli_deploy.simulate,
):
    app.command()(command)


@app.command()
def schema() -> None:
    """Print the JSON Schema of the parameter file."""
    from importlib import resources

    text = (
        resources.files("paramsearch")
        .joinpath("parameters", "parameter_file.schema.json")
        .read_text("utf-8")
    )
    print(text, end="")


@app.command()
def sign(
    file: Annotated[Path, typer.Argument(help="A parameter file.")],
    key: Annotated[Path, typer.Option(help="The Ed25519 private key, PEM.")],
    create_key: Annotated[
        bool, typer.Option("--create-key", help="Make the key first, and KEY.pub beside it.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The signature, by default FILE.sig.")
    ] = None,
    json: Machine = False,
) -> None:
    """Sign a parameter file; `paramsearch audit --public-key` checks the signature."""
    from paramsearch.cli.proving.audit import run_sign

    raise typer.Exit(run_sign(file, key=key, create=create_key, output=output, as_json=json))


def main() -> None:
    """Run the command line; an expected error is one line on stderr and never a traceback."""
    code: int | str | None = 0
    for name in ("stdout", "stderr"):  # closed by whoever started us
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - until the process ends
    try:
        app()
    except SystemExit as exit_:
        code = 2 if _reader_gone() else exit_.code  # an answer that did not arrive is no verdict
        if code == _INTERRUPTED:
            _fail("interrupted", "", _INTERRUPTED)
    except Undecided as error:
        code = _fail("undecided", error, 3)
    except Violated as error:
        code = _fail("violated", error, 1)
    except AccountingError as error:
        code = _fail("error", error, 2)
    except MemoryError:
        code = _fail("error", "out of memory; ask for a wider --gap or a smaller problem", 2)
    except KeyboardInterrupt:
        code = _fail("interrupted", "", _INTERRUPTED)
    except OSError as error:
        code = _fail("error", f"{error.filename or 'input or output'}: {error.strerror}", 2)
    except Exception as error:  # a mistake of ours: exit code 1 would read as a verdict
        code = _fail("internal error, please report it", f"{type(error).__name__}: {error}", 2)
    try:
        sys.stdout.flush()
    except OSError as error:  # a full disk or a closed pipe: the answer did not arrive
        if error.errno != errno.EPIPE:
            code = _fail("error", f"cannot write the answer: {error.strerror}", 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _reader_gone() -> bool:
    """Whether stdout is a pipe that nobody reads any more."""
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _fail(kind: str, cause: object, code: int) -> int:
    text = " ".join(f"{kind}: {cause}".rstrip(": ").split())
    with suppress(OSError):  # nobody reads it: the code has to do
        print(text if len(text) < _LONGEST_LINE else text[:_LONGEST_LINE] + "...", file=sys.stderr)
    return code
