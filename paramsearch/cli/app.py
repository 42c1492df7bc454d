"""The command line: data on stdout, progress and messages on stderr."""

from __future__ import annotations

import errno
import os
import select
import sys
from contextlib import suppress
from typing import Annotated

import typer

from accounting.base.errors import AccountingError, Undecided, Violated
from paramsearch.cli.exit_codes import ExitCode
from paramsearch.cli.proving import audit, certify, profile, rescale, schema, sign
from paramsearch.cli.running import analyze, randomize, simulate
from paramsearch.cli.searching import compare, generate, generate_real, generate_sparse, pareto
from paramsearch.cli.tables import audit_table, explore, lookup, table

_LONGEST_LINE = 500
"""Number of characters of an error message after which it is cut off."""
_COMMANDS = (
    profile.profile,
    audit.audit,
    certify.certify,
    generate.generate,
    generate_real.generate_real,
    generate_sparse.generate_sparse,
    pareto.pareto,
    rescale.rescale,
    compare.compare,
    table.table,
    lookup.lookup,
    audit_table.audit_table,
    explore.explore,
    randomize.randomize,
    analyze.analyze,
    simulate.simulate,
    schema.schema,
    sign.sign,
)
"""In the order of ``paramsearch --help``.

Their modules import what a command computes with inside the command, so that help is fast.
"""

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Parameters for private summation with correlated noise in the shuffle model.",
)
for command in _COMMANDS:
    app.command()(command)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"paramsearch {version('paramsearch')}")
        raise typer.Exit


@app.callback()
def _root(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; an expected error is one line on stderr and never a traceback."""
    code: int | str | None = ExitCode.DONE
    for name in ("stdout", "stderr"):  # closed by the parent process
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - open until the process ends
    try:
        app()
    except SystemExit as exit_:
        # an answer that did not arrive is no verdict
        code = ExitCode.BAD_INPUT if _reader_gone() else exit_.code
        if code == ExitCode.INTERRUPTED:
            _fail("interrupted", "", ExitCode.INTERRUPTED)
    except Undecided as error:
        code = _fail("undecided", error, ExitCode.UNDECIDED)
    except Violated as error:
        code = _fail("violated", error, ExitCode.VIOLATED)
    except AccountingError as error:
        code = _fail("error", error)
    except MemoryError:
        code = _fail("error", "out of memory; ask for a wider --gap or a smaller problem")
    except KeyboardInterrupt:
        code = _fail("interrupted", "", ExitCode.INTERRUPTED)
    except OSError as error:
        code = _fail("error", f"{error.filename or 'input or output'}: {error.strerror}")
    except Exception as error:  # a bug: exit code 1 would read as a verdict
        code = _fail("internal error, please report it", f"{type(error).__name__}: {error}")
    try:
        sys.stdout.flush()
    except OSError as error:  # a full disk or a closed pipe: the answer did not arrive
        if error.errno != errno.EPIPE:
            code = _fail("error", f"cannot write the answer: {error.strerror}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _reader_gone() -> bool:
    """Whether stdout is a pipe that nobody reads anymore."""
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _fail(kind: str, cause: object, code: ExitCode = ExitCode.BAD_INPUT) -> ExitCode:
    """Print one line on stderr; returns the exit code."""
    text = " ".join(f"{kind}: {cause}".rstrip(": ").split())
    with suppress(OSError):  # nobody reads it: the exit code must suffice
        print(text if len(text) < _LONGEST_LINE else text[:_LONGEST_LINE] + "...", file=sys.stderr)
    return code
