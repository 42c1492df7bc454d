"""``paramsearch generate``, ``pareto`` and ``generate-real``, for people and for machines."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from accounting.base.enclosure import at_least, at_most, exactly
from accounting.base.errors import AccountingError, InvalidParameter
from accounting.base.progress import Progress
from accounting.model.proof_types import LARGEST_VALUE, Tier
from paramsearch.certification.certify import certify
from paramsearch.cli.display import Fact, progress, show
from paramsearch.files import check_writable, destination
from paramsearch.generation.generate import Generated, generate
from paramsearch.generation.real_values import RealTarget, Rounding
from paramsearch.parameters.assembly import consistent
from paramsearch.parameters.parameter_file import ParameterFile, dumps, load, save
from paramsearch.parameters.words import claimed, error_of
from paramsearch.problem import Request
from paramsearch.search.central_noise import by_fraction

_INTERRUPTED = 130


def run_generate(request: Request, *, output: Path | None, resume: bool, as_json: bool) -> int:
    """The command: the file to ``output``, or itself on stdout with ``as_json``."""
    destination(output, as_json)
    start = None
    if resume:
        if output is None:
            raise InvalidParameter("--resume continues from the file given as --output")
        start = _resumable(output, request)
    begun = time.monotonic()
    with progress("generate") as say:
        made = generate(request, resume=start, progress=say)
        if start is not None and _as_good(start, made.file):
            made = _proved(start, made, request.tier, say)
    if output is not None and not made.kept:
        save(made.file, output)
    if as_json:
        print(dumps(made.file), end="")
    else:
        show(facts(made, output, time.monotonic() - begun))
    return _INTERRUPTED if made.interrupted else 0


def _resumable(path: Path, request: Request) -> ParameterFile:
    """The file to go on from: of the same problem."""
    if request.method != "search":
        raise InvalidParameter(f"--resume goes on searching; --method {request.method} has none")
    file = load(path)
    problem = file.problem
    known = {
        **problem.model_dump(),
        "dimension": file.dimension,
        "same_change": problem.same_change,
    }
    names = ("n", "max_value", "eps", "delta", "releases", "same_change", "honest", "dimension")
    for name in names:
        if known[name] != getattr(request, name):
            raise InvalidParameter(
                f"--resume: {path} has {name} = {known[name]}, not {getattr(request, name)}; "
                "give the options it was made with, or another --output"
            )
    return file


def _as_good(old: ParameterFile, new: ParameterFile) -> bool:
    """No more bits and messages, and no more error."""
    return (
        old.cost.noise_messages <= new.cost.noise_messages
        and old.cost.bits_per_user <= new.cost.bits_per_user
        and old.error.rmse <= new.error.rmse * (1 + 1e-9)
    )


def _proved(old: ParameterFile, made: Generated, tier: Tier, say: Progress) -> Generated:
    """The old file if its claim is proved here and now; what it says of itself is not enough."""
    say("proving the old file")
    try:
        consistent(old)
        certify(old, tier=tier, progress=say)
    except AccountingError:
        return made
    return made if old.certificate is None else replace(made, file=old, optimality=None, kept=True)


def facts(made: Generated, output: Path | None, seconds: float) -> Iterator[Fact]:
    """The result for a person."""
    file = made.file
    certificate, cost, problem = file.certificate, file.cost, file.problem
    assert certificate is not None
    yield "certified", claimed(file), "bold green"
    lower, upper = at_least(certificate.delta_lower), at_most(certificate.delta_upper)
    scope = "all" if problem.releases == 1 else "each release"
    bounds = f"between {lower} and {upper}" if certificate.delta_lower else f"at most {upper}"
    yield "delta", f"{bounds} at eps = {exactly(problem.eps)}"
    yield (
        "cost",
        f"{cost.noise_messages:,.1f} noise messages in {scope}; {cost.messages_per_user:.6g} "
        f"messages and {cost.bits_per_user:.6g} bits per user (n = {problem.n:,})",
    )
    yield "error", error_of(file)
    sizes = sorted(len(entry.atom) for entry in file.atoms)
    some = f"{sizes[0]} to {sizes[-1]}" if sizes[0] < sizes[-1] else f"{sizes[0]}"
    atoms = f"{len(sizes)} atom{'s' * (len(sizes) > 1)} of {some} messages"
    yield "noise", f"{atoms}, central eps {file.central.eps_central:.6g}"
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
        others = ", ".join(f"+{100 * (end / best - 1):.2g}%" for end in sorted(made.prices)[1:])
        yield "starts", f"{len(made.prices)} families ended within {others} of the best"
    if made.kept:
        yield "note", "nothing cheaper was found; the file is as it was", "yellow"
    if made.interrupted:
        yield "note", "interrupted: this is the best so far; --resume goes on from it", "yellow"
    elif made.cut_short:
        yield "note", "the budget ended the search; more may give a cheaper file", "yellow"
    yield "time", f"{seconds:.1f} s"
    if output is not None:
        yield "file", str(output)


FRACTIONS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.99)


def run_pareto(
    request: Request,
    *,
    fractions: Sequence[float],
    folder: Path | None,
    plot: Path | None,
    as_json: bool,
) -> int:
    """Messages against error: a certified file per central fraction, each a start for the next."""
    if plot is not None:
        check_writable(plot, "--plot", (".png", ".svg", ".pdf"))
    if folder is not None and not folder.is_dir():
        raise InvalidParameter(f"--output {folder} is no folder; make it first")
    for fraction in fractions:
        by_fraction(fraction, request.eps)
    files: list[ParameterFile] = []
    interrupted = False
    for i, fraction in enumerate(fractions):
        what = f"central fraction {fraction:g} ({i + 1} of {len(fractions)})"
        try:
            with progress(what) as say:
                asked = replace(request, central_fraction=fraction)
                made = generate(asked, resume=files[-1] if files else None, progress=say)
        except KeyboardInterrupt:
            interrupted = True
            break
        files.append(made.file)
        if folder is not None:
            save(made.file, folder / _name(made.file, fraction))
        if made.interrupted:
            interrupted = True
            break
    if not files:
        return _INTERRUPTED
    rows = [_point(fraction, file) for fraction, file in zip(fractions, files, strict=False)]
    if plot is not None:
        from paramsearch.cli.pareto_plot import draw

        draw(plot, files)
    if as_json:
        print(json.dumps(rows, allow_nan=False))
    else:
        print("fraction      RMSE  over central  noise messages  messages per user")
        for row in rows:
            print(
                f"{row['central_fraction']:8.3g}  {row['rmse']:8.5g}  "
                f"{row['rmse_over_central']:12.4g}  {row['noise_messages']:14,.1f}  "
                f"{row['messages_per_user']:17.8g}"
            )
    return _INTERRUPTED if interrupted else 0


def _name(file: ParameterFile, fraction: float) -> str:
    problem = file.problem
    return f"{problem.max_value}-{problem.eps:g}-{problem.delta:g}-central-{exactly(fraction)}.json"


def _point(fraction: float, file: ParameterFile) -> dict[str, float]:
    return {
        "central_fraction": fraction,
        "rmse": file.error.rmse,
        "rmse_over_central": file.error.rmse_over_central,
        "noise_messages": file.cost.noise_messages,
        "messages_per_user": file.cost.messages_per_user,
        "bits_per_user": file.cost.bits_per_user,
    }


def run_real(target: RealTarget, request: Request, *, output: Path | None, as_json: bool) -> int:
    """Choose the rounding, then generate for its integers."""
    destination(output, as_json)
    begun = time.monotonic()
    with progress("generate-real") as say:
        choice = target.choose(say)
        asked = replace(
            request,
            max_value=choice.max_value,
            central_fraction=choice.eps_central / request.eps,
            settings={"values": "real, rounded at random to integers", "mse": target.mse},
        )
        made = generate(asked, progress=say)
        usual = target.paper() if 2 / request.eps**2 < target.mse else None
        other = None
        if usual is not None and usual <= LARGEST_VALUE and usual >= target.coarsest():
            other = target.predicted(usual)
    if output is not None:
        save(made.file, output)
    if as_json:
        print(dumps(made.file), end="")
    else:
        show([*_real_facts(target, choice, other), *facts(made, output, time.monotonic() - begun)])
    return _INTERRUPTED if made.interrupted else 0


def _real_facts(target: RealTarget, choice: Rounding, other: Rounding | None) -> Iterator[Fact]:
    rounding, noise = choice.error(target.problem.n)
    yield (
        "values",
        f"real in [0, 1], rounded at random to multiples of 1/{choice.max_value}: send the integer",
    )
    yield (
        "real error",
        f"RMSE at most {math.sqrt(rounding + noise):.6g} of the sum (rounding "
        f"{math.sqrt(rounding):.4g}, noise {math.sqrt(noise):.4g}); the Laplace mechanism has "
        f"{math.sqrt(2) / target.problem.eps:.4g} at eps",
    )
    if other is not None:
        yield (
            "the paper",
            f"rounds to 1/{other.max_value}: about {other.bits:.5g} bits per user here, against "
            f"{choice.bits:.5g}",
        )
