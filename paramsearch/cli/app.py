"""The command line: data on stdout, progress and messages on stderr."""

from __future__ import annotations

import errno
import os
import re
import sys
from contextlib import suppress
from typing import Annotated, Any

import typer

from accounting.base.errors import AccountingError, Undecided, Violated
from accounting.base.progress import when_compiling
from paramsearch.cli.command import OneValueEach
from paramsearch.cli.exit_codes import ExitCode
from paramsearch.cli.interrupts import Interrupts
from paramsearch.cli.output import answered, ignore_stdout, note, print_json, write
from paramsearch.cli.proving import audit, certify, compose, profile, rescale, schema, sign
from paramsearch.cli.running import analyze, client, randomize, simulate
from paramsearch.cli.searching import compare, generate, generate_real, generate_sparse, pareto
from paramsearch.cli.tables import audit_table, explore, lookup, table

_LONGEST_LINE = 500
"""Number of characters of an error message after which it is cut off."""
_COMMANDS = (
    profile.profile,
    audit.audit,
    compose.compose,
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
    client.client,
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
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Parameters for private summation with correlated noise in the shuffle model.",
)
for command in _COMMANDS:
    # lines of the source are not lines of a terminal
    paragraphs = (" ".join(part.split()) for part in (command.__doc__ or "").split("\n\n"))
    app.command(help="\n\n".join(paragraphs), cls=OneValueEach)(command)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        write(f"paramsearch {version('paramsearch')}\n")
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
    """Run the command line; an expected error is one line on stderr and never a traceback.

    With ``--json`` a command that fails prints one object all the same,
    ``{"failure": {"kind": ..., "message": ..., "exit_code": ...}}``.
    """
    for name in ("stdout", "stderr"):  # closed by the parent process
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - open until the process ends
    interrupts = Interrupts()
    if sys.stderr.isatty():
        when_compiling(note)
    try:
        with interrupts.handled():
            code = app(standalone_mode=False) or ExitCode.DONE
        if code == ExitCode.INTERRUPTED:
            code = _fail("interrupted", "", interrupts.code)
    except KeyboardInterrupt:
        code = _fail("interrupted", "", interrupts.code)
    except SystemExit:  # Typer's answer to a closed pipe, with the exit code of a violation
        ignore_stdout()
        # help that nobody reads is done; a command that met a closed pipe has no verdict
        helped = not {"-h", "--help"}.isdisjoint(sys.argv[1:])
        code = ExitCode.DONE if helped else _fail("error", "a pipe was closed before the answer")
    except Exception as error:  # every kind has its exit code; a bug must not look like a verdict
        code = _failure(error)
    try:
        sys.stdout.flush()
    except OSError as error:  # a full disk: the answer did not arrive
        if error.errno != errno.EPIPE:
            code = _fail("error", f"cannot write the answer: {error.strerror}")
        ignore_stdout()
    sys.exit(code)


def _failure(error: Exception) -> ExitCode:
    """Report an error; returns its exit code."""
    if isinstance(error, Undecided):
        return _fail("undecided", error, ExitCode.UNDECIDED)
    if isinstance(error, Violated):
        return _fail("violated", error, ExitCode.VIOLATED)
    if isinstance(error, AccountingError):
        return _fail("error", error)
    if isinstance(error, MemoryError):
        return _fail("error", "out of memory; ask for a smaller problem, or for a wider --gap")
    if isinstance(error, OSError):
        return _fail("error", f"{error.filename or 'input or output'}: {error.strerror}")
    if hasattr(error, "format_message"):  # of Typer's own copy of click, or of click
        if not error.format_message():  # no arguments: the help is printed
            return ExitCode.BAD_INPUT
        context = getattr(error, "ctx", None)
        if context is not None:
            print(f"{context.get_usage()}\nTry '{context.command_path} --help'.", file=sys.stderr)
        cause = error.format_message() + _where_there_is(getattr(error, "option_name", None))
        return _fail("error", cause, name="UsageError")
    # a bug: exit code 1 would read as a verdict
    return _fail("internal error, please report it", f"{type(error).__name__}: {error}")


def _fail(
    kind: str, cause: object, code: ExitCode = ExitCode.BAD_INPUT, name: str | None = None
) -> ExitCode:
    """Print one line on stderr, and an object on stdout if JSON was asked for and nothing was
    printed yet; returns the exit code.

    ``name`` is the kind of error in that object, by default the type of the ``cause``.
    """
    cause_in_words = _without_dead_ends(_as_typed(" ".join(str(cause).split())))
    text = f"{kind}: {cause_in_words}".rstrip(": ")
    text = text if len(text) < _LONGEST_LINE else text[:_LONGEST_LINE] + "..."
    note(text)
    if "--json" in sys.argv[1:] and not answered():
        with suppress(OSError):
            message = cause_in_words or kind
            name = name or (type(cause).__name__ if isinstance(cause, Exception) else kind)
            print_json({"failure": {"kind": name, "message": message, "exit_code": int(code)}})
    return code


def _commands() -> dict[str, Any]:
    """The commands by their names."""
    found: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return found


def _where_there_is(option: str | None) -> str:
    """Name the command that has an option that ``lookup`` was given and does not have."""
    if option is None or "lookup" not in sys.argv[1:]:
        return ""
    words = sys.argv[sys.argv.index("lookup") + 1 :]
    command = lookup.search_instead(option, words, _commands())
    return "" if command is None else f": no table has such files; a search makes one: {command}"


def _without_dead_ends(text: str) -> str:
    """The text of an error; if it advises an option that this command does not have, with a remark
    that says so."""
    from paramsearch.cli.output import COMMAND

    commands = _commands()
    asked = next((word for word in sys.argv[1:] if word in commands), None)
    if asked is None:
        return text
    known = {option for parameter in commands[asked].params for option in parameter.opts}
    of_others = "|".join(map(re.escape, commands))
    rest = re.sub(rf"`[^`]*`|({of_others}) --[a-z-]+", "", COMMAND.sub("", text))
    advised = re.findall(r"(?<![\w-])--[a-z][a-z-]*", rest)
    unknown = [option for option in dict.fromkeys(advised) if option not in known]
    if not unknown or any(word.partition("=")[0] in unknown for word in sys.argv[1:]):
        return text  # the error may be about the option itself
    return f"{text} ({asked} has no {' and no '.join(unknown)})"


def _as_typed(text: str) -> str:
    """The text of an error with the names of options as they are typed: --max-value for max_value.

    It begins with such a name and its value, perhaps after the name of a file whose own value the
    option replaces, or it says which of several options to give.
    """
    words = sys.argv[1:]
    for i, word in enumerate(words):
        option, _, given = word.partition("=")
        if not option.startswith("--"):
            continue
        value = given or (words[i + 1] if i + 1 < len(words) else "")
        text = re.sub(rf"^{_name(option)} = ", f"{option} = ", text)
        found = re.match(rf"(?P<file>.+?): {_name(option)} = (?P<value>[^\s;]+)", text)
        if found and found["file"] in words and _same_value(found["value"], value):
            text = f"{option} = {text[found.start('value') :]}"
    if text.startswith("give one of "):
        asked = next((word for word in words if word in _commands()), None)
        for parameter in _commands()[asked].params if asked else ():
            for option in parameter.opts:
                text = re.sub(rf"(?<![\w-]){_name(option)}(?![\w-])", option, text)
    return text


def _name(option: str) -> str:
    """A pattern for what an option is called elsewhere."""
    return re.escape(option.lstrip("-")).replace(r"\-", "[_ -]")


def _same_value(shown: str, typed: str) -> bool:
    """Tell whether an error shows a value that was typed, perhaps in another notation."""
    try:
        return float(shown.replace(",", "")) == float(typed)
    except ValueError:
        return shown.strip("'\"") == typed
