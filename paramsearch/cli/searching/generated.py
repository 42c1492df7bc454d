"""Shared by the commands that generate a parameter file."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from accounting.base.enclosure import at_least, at_most, exactly
from accounting.base.errors import AccountingError, InvalidParameter, required
from paramsearch.cli.exit_codes import ExitCode
from paramsearch.cli.interrupts import acknowledged
from paramsearch.cli.output import Fact, check_destination, note, progress, show, write
from paramsearch.cli.proving.certify import warn_of

if TYPE_CHECKING:
    from accounting.base.progress import Progress
    from accounting.model.problem import Problem
    from accounting.model.proof_types import Tier
    from paramsearch.generation.generate import Generated
    from paramsearch.generation.generate_real import RealRequest
    from paramsearch.generation.interruption import Interruption
    from paramsearch.parameters.parameter_file import ParameterFile
    from paramsearch.request import Request

GeneratedKind = TypeVar("GeneratedKind", bound="Generated")
_ALIKE = (
    "n",
    "max_value",
    "eps",
    "delta",
    "releases",
    "same_change",
    "honest",
    "dimension",
    "adjacency",
    "noise",
)
"""What a file to resume must have in common with the request."""
_SAME_ERROR = 1e-9
"""Relative difference below which two errors count as equal."""


def generate_and_deliver(
    request: Request, output: Path | None, *, resume: bool, as_json: bool
) -> None:
    """Search, continuing from the file ``output`` with ``resume``, and deliver the file."""
    from paramsearch.generation.generate import generate

    check_destination(output, as_json)
    start = file_to_resume(output, request) if resume else None
    begun = time.monotonic()
    announce(request)
    with progress("generate") as say, keeping(output) as interruption:
        made = generate(request, resume=start, interruption=interruption, progress=say)
        made = better(made, start, request.tier, say)
    paper = _paper_for_vectors(request.problem, made.file)
    about = facts(made, output, time.monotonic() - begun, paper)
    deliver(made, output, about, as_json=as_json, resumed=resume)


def _paper_for_vectors(problem: Problem, file: ParameterFile) -> Iterator[Fact]:
    """Return facts about the cost of the paper's theorem for the same vectors and the same
    error."""
    from paramsearch.comparison import published_noise

    if problem.dimension == 1 or problem.releases > 1:  # it has nothing for several releases
        return
    fraction = file.central.eps_central * problem.changed_coordinates / problem.eps
    try:
        theorem = next(published_noise(problem, central_fraction=fraction))
    except AccountingError:  # there is hardly any eps left for the atoms
        return
    parts = " with eps / 2 and delta / 2" if problem.changed_coordinates > 1 else ""
    yield (
        "the paper",
        f"its theorem{parts} in each coordinate: {theorem.messages:,.5g} "
        f"messages and {theorem.bits:,.5g} bits per user, against {file.cost.bits_per_user:.5g}",
    )


def uncertified_beside(output: Path) -> Path:
    """Return the path that keeps the result of a search whose proof was interrupted."""
    return output.with_name(f"{output.stem}.uncertified{output.suffix or '.json'}")


@contextmanager
def keeping(output: Path | None) -> Iterator[Interruption]:
    """An interrupt is acknowledged at once, with what it does according to the value of the block.
    That of a proof leaves the result of the search behind, and says where; one that leaves nothing
    behind says why."""
    from paramsearch.generation.generate import ProofInterrupted
    from paramsearch.generation.interruption import Interruption
    from paramsearch.parameters.parameter_file import save

    interruption = Interruption()
    try:
        with acknowledged(interruption.consequence):
            yield interruption
    except ProofInterrupted as ended:
        if output is None:
            note("the proof was interrupted, and nothing kept: --output names a place for it")
        else:
            kept = uncertified_beside(output)
            save(ended.found, kept)
            note(
                f"the proof was interrupted: what the search found, without a certificate, is in "
                f"{kept}; the same command with --resume goes on from there"
            )
        raise
    except KeyboardInterrupt:
        note("no file was written: there was nothing to certify yet")
        raise


def announce(request: Request) -> None:
    """Say on standard error how the budget of a search will be divided."""
    from paramsearch.generation.time_plan import TimePlan

    if request.method == "search":
        plan = TimePlan.of(request)
        plan.check()
        plan.announce(note)


def deliver(
    made: Generated, output: Path | None, about: Iterable[Fact], *, as_json: bool, resumed: bool
) -> None:
    """Write the file, and print it or the facts about it; exits if the search was interrupted."""
    from paramsearch.parameters.parameter_file import dumps, save

    if output is not None and not made.kept:
        save(made.file, output)
    if output is not None and resumed:  # from what an interrupted proof had left, if anything
        uncertified_beside(output).unlink(missing_ok=True)
    if as_json:
        write(dumps(made.file))
        warn_of(made.file)
    else:
        show(about)
    if made.interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)


def file_to_resume(path: Path | None, request: Request | RealRequest) -> ParameterFile:
    """The file to continue from, which must be for the same problem."""
    from paramsearch.parameters.parameter_file import load

    if path is None:
        raise InvalidParameter("--resume continues from the file given as --output")
    method = getattr(request, "method", "search")
    if method != "search":
        raise InvalidParameter(f"--resume continues a search; --method {method} has none")
    kept = uncertified_beside(path)
    if kept.exists() and not (path.exists() and _as_good(load(path), load(kept))):
        path = kept
    file = load(path)
    for name in _ALIKE:
        if not hasattr(request, name):  # real values are rounded as in the file
            continue
        known, asked = _stated(file, name), getattr(request, name)
        if known != asked:
            raise InvalidParameter(
                f"--resume: {path} has {name} = {known}, not {asked}; give the options it was made "
                "with, or another --output without --resume"
            )
    return file


def _stated(file: ParameterFile, name: str) -> Any:
    """Return what a file says about an entry of a request."""
    if name == "dimension":
        return file.dimension
    return file.noise if name == "noise" else getattr(file.problem, name)


def better(
    made: GeneratedKind, start: ParameterFile | None, tier: Tier, say: Progress
) -> GeneratedKind:
    """Return the new file, or the file that the search started from if that is as good."""
    if start is None or start.certificate is None or not _as_good(start, made.file):
        return made
    try:
        return _proved(start, made, tier, say)
    except KeyboardInterrupt:  # what was made is certified
        return replace(made, interrupted=True)


def _as_good(old: ParameterFile, new: ParameterFile) -> bool:
    """Tell whether the old file has no more messages, bits and error than the new one."""
    return (
        old.cost.noise_messages <= new.cost.noise_messages
        and old.cost.bits_per_user <= new.cost.bits_per_user
        and old.error.rmse <= new.error.rmse * (1 + _SAME_ERROR)
    )


def _proved(old: ParameterFile, made: GeneratedKind, tier: Tier, say: Progress) -> GeneratedKind:
    """Keep the old file if its claim is proved again here; its own certificate is not trusted."""
    from paramsearch.certification.certify import certify
    from paramsearch.parameters.assembly import consistent

    say("proving the old file")
    try:
        consistent(old)
        certify(old, tier=tier, progress=say)
    except AccountingError:
        return made
    return replace(made, file=old, optimality=None, kept=True)


def facts(
    made: Generated, output: Path | None, seconds: float, beside: Iterable[Fact] = ()
) -> Iterator[Fact]:
    """The result in words, with what else there is to say of it."""
    from paramsearch.certification.remarks import cost_remark, warnings_about
    from paramsearch.parameters.expected_cost import ExpectedCost
    from paramsearch.parameters.words import file_claim_in_words, noise_in_words, values_of

    file = made.file
    cost, problem = file.cost, file.problem
    certificate = required(file.certificate, "the certificate of a file that was made")
    yield "certified", file_claim_in_words(file), "bold green"
    lower, upper = at_least(certificate.delta_lower), at_most(certificate.delta_upper)
    scope = "all" if problem.releases == 1 else "each release"
    bounds = f"between {lower} and {upper}" if certificate.delta_lower else f"at most {upper}"
    yield "delta", f"{bounds} at eps = {exactly(problem.eps)}"
    for warning in warnings_about(file):
        yield "warning", warning, "yellow"
    if (values := values_of(file)) is not None:
        yield "values", f"{values}; randomize and analyze take the range from the file"
    yield (
        "cost",
        f"{cost.noise_messages:,.1f} noise messages in {scope}; {cost.messages_per_user:.6g} "
        f"messages and {cost.bits_per_user:.6g} bits per user (n = {problem.n:,})",
    )
    expected = ExpectedCost.of_file(file)
    yield "events", expected.events_in_words()
    if (remark := cost_remark(expected)) is not None:
        yield "remark", remark
    if (more := made.more_error) is not None:
        times = more.rmse / file.error.rmse
        yield (
            "cheaper",
            f"--central-fraction {more.central_fraction:g} would cost about "
            f"{more.messages_per_user:,.4g} messages per user, with {times:.3g} times the error",
        )
    if made.fewer_bits is not None:
        yield (
            "bits",
            f"--objective bits would cost about {made.fewer_bits:.3g} bits per user: "
            f"more messages, but shorter than {cost.bits_per_message} bits",
        )
    yield "error", expected.error_in_words()
    yield "noise", noise_in_words(file)
    if file.dimension > 1:
        yield "message", f"a coordinate and a value: {cost.bits_per_message} bits"
    if made.optimality is not None:
        moves = made.optimality
        rest = moves.listed - moves.proven
        undecided = f"; {rest} undecided" if rest else ""
        yield (
            "optimum",
            f"1% less of any one parameter breaks delta: proved for {moves.proven:,} of "
            f"{moves.listed:,}{undecided}",
        )
    if len(made.prices) > 1:
        best = min(made.prices)
        above = [f"{100 * (end / best - 1):.2g}%" for end in sorted(made.prices)[1:]]
        others = "the others" if len(above) > 1 else "the other"
        yield (
            "starts",
            f"{len(made.prices)} starts; {others} ended {' and '.join(above)} above the best",
        )
    yield from beside
    if made.kept:
        yield "note", "nothing cheaper was found; the file is unchanged", "yellow"
    if made.interrupted:
        yield "note", "interrupted: this is the best so far; --resume continues from it", "yellow"
    elif made.cut_short:
        yield "note", "the budget ended the search; a larger one may give a cheaper file", "yellow"
    yield "time", f"{seconds:.1f} s"
    if output is not None:
        yield "file", str(output)
