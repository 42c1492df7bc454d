"""``paramsearch generate``: from a problem to a certified parameter file."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from accounting import InvalidParameter
from accounting.checks import positive, probability, whole
from accounting.enclosure import at_least, at_most
from accounting.family import Family
from accounting.proof import Tier
from accounting.protocol import LARGEST_VALUE
from paramsearch.certification import certify, fraction, parameters
from paramsearch.display import Fact, progress, show
from paramsearch.files import check_writable
from paramsearch.parameter_file import ParameterFile, dumps, load, save
from paramsearch.search import central
from paramsearch.search.draft import Draft
from paramsearch.search.engine import Budget, Candidate, Search
from paramsearch.search.finish import Order, finished
from paramsearch.search.local import minimise
from paramsearch.search.optimality import Useless, useless_moves
from paramsearch.search.target import Objective, Target

Say = Callable[[str], None]
Method = Literal["search", "dominance", "theorem"]
_INTERRUPTED = 130
DEFAULT_TRIES = 80


@dataclass(frozen=True)
class Request:
    """What a person asks for; checked when it is made."""

    n: int
    eps: float
    delta: float
    max_value: int
    central_fraction: float | None = None
    max_rmse: float | None = None
    objective: Objective = "messages"
    method: Method = "search"
    releases: int = 1
    honest: float = 1.0
    seed: int = 0
    tries: int = DEFAULT_TRIES
    budget: float = math.inf
    tier: Tier = "auto"

    def __post_init__(self) -> None:
        whole("n", self.n, least=1)
        positive("eps", self.eps)
        probability("delta", self.delta)
        whole("max value", self.max_value, least=1, most=LARGEST_VALUE)
        whole("releases", self.releases, least=1)
        whole("seed", self.seed, least=0)
        whole("tries", self.tries, least=1)
        fraction(self.honest)
        if self.budget <= 0 or math.isnan(self.budget):
            raise InvalidParameter(f"budget = {self.budget:g} seconds must be greater than 0")
        for name, value, known in (
            ("objective", self.objective, get_args(Objective)),
            ("method", self.method, get_args(Method)),
            ("tier", self.tier, get_args(Tier)),
        ):
            if value not in known:
                raise InvalidParameter(f"{name} = {value!r}; known: " + ", ".join(known))
        if self.central_fraction is not None and self.max_rmse is not None:
            raise InvalidParameter("give either a central fraction or a max rmse, not both")

    @property
    def target(self) -> Target:
        largest = central.largest_central(
            eps=self.eps, delta=self.delta, max_value=self.max_value, releases=self.releases
        )
        if self.max_rmse is not None:
            eps_central = central.by_rmse(self.max_rmse, self.max_value, largest)
        else:
            share = 0.9 if self.central_fraction is None else self.central_fraction
            eps_central = central.by_fraction(share, largest)
        return Target(
            self.max_value,
            self.eps,
            self.delta,
            eps_central,
            self.n,
            self.releases,
            self.objective,
        )


@dataclass(frozen=True)
class Generated:
    """``ends`` are the prices at which different starts ended."""

    file: ParameterFile
    useless: Useless | None
    ends: tuple[float, ...]
    interrupted: bool = False
    cut_short: bool = False


def generate(
    request: Request,
    *,
    resume: ParameterFile | None = None,
    say: Say = lambda _: None,
) -> Generated:
    """Search, round and certify.

    A KeyboardInterrupt ends the search and the best candidate so far is certified; a second one is
    passed on.
    """
    target = request.target
    if request.method != "search":
        return _by_the_paper(request, target, say)
    budget = Budget(tries=request.tries, seconds=request.budget)
    search = Search(target, budget=budget, seed=request.seed, report=lambda found: say(str(found)))
    interrupted = False
    try:
        best = search.run(None if resume is None else _draft(resume, target))
    except KeyboardInterrupt:
        if search.best is None:
            raise
        best, interrupted = search.best, True
    say("the last steps")
    if not interrupted:
        best = _polished(best)
    return _finish(request, search, best, interrupted, say)


def _by_the_paper(request: Request, target: Target, say: Say) -> Generated:
    from paramsearch.search import paper

    if request.method == "theorem":
        proposal = paper.theorem(target)
    else:
        proposal = paper.refined(target, report=say)
    say("certifying")
    uncertified = parameters(
        proposal,
        honest=request.honest,
        settings={"method": request.method},
    )
    return Generated(certify(uncertified, tier=request.tier, report=say), None, ())


def _draft(file: ParameterFile, target: Target) -> Draft:
    if file.problem.max_value != target.max_value:
        raise InvalidParameter(
            f"the file to resume has max_value {file.problem.max_value}, not {target.max_value}"
        )
    return Draft.from_family(Family(target.max_value, tuple(entry.atom for entry in file.atoms)))


def _polished(best: Candidate) -> Candidate:
    solution = minimise(best.model, best.solution.x, tolerance=1e-5, steps=30)
    return replace(best, solution=solution) if solution.messages < best.solution.messages else best


def _finish(
    request: Request, search: Search, best: Candidate, interrupted: bool, say: Say
) -> Generated:
    settings: dict[str, Any] = {
        "method": request.method,
        "objective": request.objective,
        "families": search.tries,
    }
    order = Order(request.n, request.honest, request.tier, request.seed, settings)
    say("certifying")
    file, x = finished(best.model, best.solution.x, order, report=say)
    useless = None if interrupted else useless_moves(best.model, x, report=say)
    return Generated(
        file,
        useless,
        tuple(search.ends),
        interrupted,
        search.budget.spent(),
    )


def run_generate(request: Request, *, output: Path | None, resume: bool, as_json: bool) -> int:
    """The command: the file to ``output``, or itself on stdout with ``as_json``."""
    if output is not None:
        check_writable(output, "--output")
    elif not as_json:
        raise InvalidParameter("where to? give --output FILE, or --json for standard output")
    start = None
    if resume:
        if output is None:
            raise InvalidParameter("--resume continues from the file given as --output")
        start = load(output) if output.exists() else None
    begun = time.monotonic()
    with progress("generate") as say:
        made = generate(request, resume=start, say=say)
    if output is not None:
        save(made.file, output)
    if as_json:
        print(dumps(made.file), end="")
    else:
        show(facts(made, output, time.monotonic() - begun))
    return _INTERRUPTED if made.interrupted else 0


def facts(made: Generated, output: Path | None, seconds: float) -> Iterator[Fact]:
    """The result for a person."""
    file = made.file
    certificate, cost, error, problem = file.certificate, file.cost, file.error, file.problem
    assert certificate is not None
    yield (
        "certified",
        f"({problem.eps:.10g}, {problem.delta!r}) for one changed input",
        "bold green",
    )
    lower, upper = at_least(certificate.delta_lower), at_most(certificate.delta_upper)
    bounds = f"between {lower} and {upper}" if certificate.delta_lower else f"at most {upper}"
    yield "delta", f"{bounds} at eps = {problem.eps:.10g}"
    yield (
        "cost",
        f"{cost.noise_messages:,.1f} noise messages in all; {cost.messages_per_user:.6g} messages "
        f"and {cost.bits_per_user:.6g} bits per user (n = {problem.n:,})",
    )
    yield (
        "error",
        f"RMSE {error.rmse:.6g}, {error.rmse_over_central:.4g} times the central one at eps",
    )
    sizes = [len(entry.atom) for entry in file.atoms]
    yield "atoms", f"{len(sizes)} of {min(sizes)} to {max(sizes)} messages"
    if made.useless is not None:
        moves = made.useless
        text = f"{moves.proven:,} of {moves.listed:,} moves of one parameter by 1% proved useless"
        yield "optimum", text
    if len(made.ends) > 1:
        yield "starts", "ended at " + ", ".join(f"{end:,.0f}" for end in made.ends)
    if made.interrupted:
        yield "note", "interrupted: this is the best so far; --resume goes on from it", "yellow"
    elif made.cut_short:
        yield "note", "the budget ended the search; more may give a cheaper file", "yellow"
    yield "time", f"{seconds:.1f} s"
    if output is not None:
        yield "file", str(output)
