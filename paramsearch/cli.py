"""The command line: data on stdout, progress and messages on stderr.

Exit codes: 0 done, 1 a configuration violates its claim, 2 bad usage or input, 3 undecided within
the budget, 130 interrupted.
"""

from __future__ import annotations

import errno
import math
import os
import select
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from accounting import AccountingError, Undecided, Violated
from paramsearch import profile as profiles

if TYPE_CHECKING:
    from accounting import proof

_LONGEST_LINE = 500
_INTERRUPTED = 130
app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Parameters for private summation with correlated noise in the shuffle model.",
)


Gap = Annotated[float, typer.Option(help="Relative gap between the bounds.")]
Tier = Annotated[
    str,
    typer.Option(
        help="ball: every pair in ball arithmetic; fast: floating point with error bounds; mixed: "
        "ball for the worst pairs, fast for the others; auto: ball up to max_value 256, then "
        "mixed, and fast for more than 4 releases; light: an upper bound "
        "for less noise, where there is far more than needed."
    ),
]
Machine = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
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
        int, typer.Option(help="T releases by the same file, the same change in each.")
    ] = 1,
    gap: Gap = 0.01,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the profile delta(eps): FILE.png or FILE.svg.")
    ] = None,
    json: Machine = False,
) -> None:
    """The exact privacy of a configuration: delta at its eps, from below and from above.

    Adjacency is substitution: one user's input changes from any value to any other.
    """
    raise typer.Exit(
        profiles.run(
            config, eps=eps, pair=pair, releases=releases, gap=gap, plot=plot, as_json=json
        )
    )


@app.command()
def audit(
    file: Annotated[Path, typer.Argument(help="A parameter file or a bare configuration, JSON.")],
    eps: Annotated[float | None, typer.Option(help="Ask at this eps instead.")] = None,
    delta: Annotated[float | None, typer.Option(help="Ask for this delta instead.")] = None,
    releases: Annotated[
        int | None, typer.Option(help="T releases by the same file, the same change in each.")
    ] = None,
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
    from paramsearch.audit_command import run_audit

    raise typer.Exit(
        run_audit(
            file,
            eps=eps,
            delta=delta,
            releases=releases,
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
        int | None, typer.Option(help="Certify T releases, the same change in each.")
    ] = None,
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
    from paramsearch.audit_command import run_certify

    raise typer.Exit(
        run_certify(
            config,
            output=output,
            n=n,
            eps=eps,
            delta=delta,
            releases=releases,
            honest=honest,
            tier=cast("proof.Tier", tier),
            gap=gap,
            as_json=json,
        )
    )


@app.command()
def generate(
    n: Annotated[int, typer.Option(help="Users.")],
    eps: Annotated[float, typer.Option(help="The guarantee's eps.")],
    delta: Annotated[float, typer.Option(help="The guarantee's delta.")],
    max_value: Annotated[int, typer.Option(help="Inputs are the integers 0..K.", metavar="K")],
    central_fraction: Annotated[
        float | None,
        typer.Option(help="eps of the central noise over eps: error against messages. [0.9]"),
    ] = None,
    max_rmse: Annotated[
        float | None, typer.Option(help="Allow this error of the sum, instead of the fraction.")
    ] = None,
    objective: Annotated[str, typer.Option(help="messages or bits.")] = "messages",
    method: Annotated[
        str,
        typer.Option(help="search; or what the paper has: dominance (its program), theorem."),
    ] = "search",
    releases: Annotated[int, typer.Option(help="Certify T releases, the same change in each.")] = 1,
    honest: Annotated[
        float, typer.Option(help="Certify when only this fraction of the users adds noise.")
    ] = 1.0,
    tries: Annotated[int, typer.Option(help="Families to try; fixes the result with --seed.")] = 80,
    budget: Annotated[
        float | None, typer.Option(help="Seconds after which no further family is tried.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the search.")] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write the parameter file.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the file that --output names.")
    ] = False,
    tier: Tier = "auto",
    json: Annotated[bool, typer.Option("--json", help="The file itself on stdout.")] = False,
) -> None:
    """Find the cheapest configuration for a problem and write it as a certified parameter file.

    Adjacency is substitution: one user's input changes from any value to any other.
    """
    from paramsearch.generate_command import run_generate
    from paramsearch.generation import Method, Request
    from paramsearch.search.target import Objective

    request = Request(
        n=n,
        eps=eps,
        delta=delta,
        max_value=max_value,
        central_fraction=central_fraction,
        max_rmse=max_rmse,
        objective=cast("Objective", objective),
        method=cast("Method", method),
        releases=releases,
        honest=honest,
        seed=seed,
        tries=tries,
        budget=math.inf if budget is None else budget,
        tier=cast("proof.Tier", tier),
    )
    raise typer.Exit(run_generate(request, output=output, resume=resume, as_json=json))


@app.command()
def pareto(
    n: Annotated[int, typer.Option(help="Users.")],
    eps: Annotated[float, typer.Option(help="The guarantee's eps.")],
    delta: Annotated[float, typer.Option(help="The guarantee's delta.")],
    max_value: Annotated[int, typer.Option(help="Inputs are the integers 0..K.", metavar="K")],
    fraction: Annotated[
        list[float] | None,
        typer.Option(help="A central fraction; may be repeated. [0.05 ... 0.99]"),
    ] = None,
    tries: Annotated[int, typer.Option(help="Families to try for each point.")] = 20,
    seed: Annotated[int, typer.Option(help="Of the search.")] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A folder for the parameter files.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the front: FILE.png, .svg or .pdf.")
    ] = None,
    json: Machine = False,
) -> None:
    """Messages against error: a certified file for each central fraction from 0.05 to 0.99."""
    from paramsearch.generate_command import FRACTIONS, run_pareto
    from paramsearch.generation import Request

    request = Request(n=n, eps=eps, delta=delta, max_value=max_value, tries=tries, seed=seed)
    fractions = sorted(set(fraction or FRACTIONS))
    raise typer.Exit(
        run_pareto(request, fractions=fractions, folder=output, plot=plot, as_json=json)
    )


@app.command()
def generate_real(
    n: Annotated[int, typer.Option(help="Users.")],
    eps: Annotated[float, typer.Option(help="The guarantee's eps.")],
    delta: Annotated[float, typer.Option(help="The guarantee's delta.")],
    zeta: Annotated[
        float | None,
        typer.Option(help="Allow the error of the Laplace mechanism with (1 - zeta) eps."),
    ] = None,
    max_rmse: Annotated[
        float | None, typer.Option(help="Allow this error of the sum of values in [0, 1].")
    ] = None,
    tries: Annotated[int, typer.Option(help="Families to try; fixes the result with --seed.")] = 40,
    budget: Annotated[
        float | None, typer.Option(help="Seconds after which no further family is tried.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the search.")] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write the parameter file.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The file itself on stdout.")] = False,
) -> None:
    """For real values in [0, 1]: choose the rounding and the central noise for the fewest bits."""
    from paramsearch.generate_command import run_real
    from paramsearch.generation import Request
    from paramsearch.real import RealProblem

    request = Request(
        n=n,
        eps=eps,
        delta=delta,
        max_value=1,
        objective="bits",
        seed=seed,
        tries=tries,
        budget=math.inf if budget is None else budget,
    )
    problem = RealProblem.of(n=n, eps=eps, delta=delta, zeta=zeta, max_rmse=max_rmse)
    raise typer.Exit(run_real(problem, request, output=output, as_json=json))


@app.command()
def rescale(
    file: Annotated[Path, typer.Argument(help="A parameter file.")],
    n: Annotated[int, typer.Option(help="The new number of users.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write the parameter file.")
    ] = None,
    tier: Tier = "auto",
    json: Annotated[bool, typer.Option("--json", help="The file itself on stdout.")] = False,
) -> None:
    """The same noise for another number of users: no search, certified again."""
    from paramsearch.audit_command import run_rescale

    raise typer.Exit(
        run_rescale(file, n=n, output=output, tier=cast("proof.Tier", tier), as_json=json)
    )


@app.command()
def schema() -> None:
    """Print the JSON Schema of the parameter file."""
    from importlib import resources

    text = resources.files("paramsearch").joinpath("parameter_file.schema.json").read_text("utf-8")
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
    from paramsearch.audit_command import run_sign

    raise typer.Exit(run_sign(file, key=key, create=create_key, output=output, as_json=json))


def main() -> None:
    """Run the command line; an expected error is one line on stderr and never a traceback."""
    code: int | str | None = 0
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
    print(text if len(text) < _LONGEST_LINE else text[:_LONGEST_LINE] + "...", file=sys.stderr)
    return code
