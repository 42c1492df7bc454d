"""From a problem to a certified parameter file: search, rounding, proof."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

from accounting.base.errors import InvalidConfiguration, InvalidParameter, TooLarge, Undecided
from accounting.base.progress import Progress, silent
from accounting.composition.any_sequence import kinds_of_changes, sequence_bounds
from accounting.model.family import Family
from accounting.protocol import Protocol
from paramsearch.certification.certify import certify
from paramsearch.generation.finish import finished
from paramsearch.generation.optimality import Useless, useless_moves
from paramsearch.parameters.assembly import uncertified
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.problem import Request
from paramsearch.search import central_noise
from paramsearch.search.families import hub_families
from paramsearch.search.families.family_draft import Draft
from paramsearch.search.family_search import Budget, Candidate, Search, Start
from paramsearch.search.noise.noise_model import Model
from paramsearch.search.noise.noise_optimizer import minimise
from paramsearch.search.noise.sequence_noise import descended
from paramsearch.search.target import Target

_MIXINGS, _ROUGH = 3, 0.02
"""How often the changes that may follow each other are chosen anew, and the gap of the bounds that
says by how much adaptive sequences exceed fixed ones."""
_FEW = 3
"""Releases up to which fixed sequences of changes guide the last steps as well."""
_SECONDS = 120.0
"""For lowering the bound of any sequence at the end of a search."""
_SMALL = 24
"""max_value of the problems by which a central noise is judged."""


def target_of(request: Request) -> Target:
    """The target of the search; finding its central noise may need small searches itself."""
    # a value that moves to another coordinate is two changes at once
    changes = request.releases * request.changed_coordinates
    largest = central_noise.largest_central(
        eps=request.eps, delta=request.delta, max_value=request.max_value, changes=changes
    )
    fraction = 0.9 if request.central_fraction is None else request.central_fraction
    target = Target(request, central_noise.by_fraction(fraction, largest), request.objective)
    if request.max_rmse is None:
        return target
    least = central_noise.by_rmse(request.max_rmse, request.max_value, largest, request.honest)
    return replace(target, eps_central=_cheapest_central(target, least, largest))


def _cheapest_central(target: Target, least: float, largest: float) -> float:
    """Of the central noises with no more error, that with the fewest messages, judged by small
    problems: less error can be cheaper, since large central noise is messages, too."""
    sizes = [least]
    while sizes[-1] * 1.4 < 0.6 * largest:
        sizes.append(sizes[-1] * 1.4)
    small = target.at(min(target.problem.max_value, _SMALL))
    return min(sizes, key=lambda size: hub_families.foretold(replace(small, eps_central=size)))


@dataclass(frozen=True)
class Generated:
    """``ends`` are the prices at which different starts ended, before the last steps."""

    file: ParameterFile
    useless: Useless | None
    ends: tuple[float, ...]
    interrupted: bool = False
    cut_short: bool = False
    kept: bool = False
    """Whether an earlier file was not beaten."""


def generate(
    request: Request,
    *,
    resume: ParameterFile | None = None,
    near: bool = False,
    progress: Progress = silent,
) -> Generated:
    """Search, round and certify.

    The search begins from ``resume``, a file of the same max_value or a larger one, or else from
    the most similar file of this package's table, besides its own ideas.  With ``near`` it has none
    and only changes single atoms of that file, which is many times faster, and proves nothing about
    moves.

    A KeyboardInterrupt ends the search and the best candidate so far is certified; a second one is
    passed on.
    """
    try:
        return _generate(request, resume, near, progress)
    except TooLarge as error:
        raise Undecided(str(error)) from error


def _generate(
    request: Request, resume: ParameterFile | None, near: bool, progress: Progress
) -> Generated:
    target = target_of(request)
    if request.method != "search":
        return _by_the_paper(request, target, progress)
    if resume is None and not request.cold:
        resume = _similar(request, target, progress)
        if resume is not None:
            settings = {**request.settings, "start": resume.sha256}
            request = replace(request, settings=settings)
    budget = Budget(tries=request.tries, seconds=request.budget)
    search = Search(target, budget=budget, seed=request.seed, progress=progress)
    interrupted = False
    try:
        start = None if resume is None else _start(resume, target)
        best = search.near(start) if near and start is not None else search.run(start)
    except KeyboardInterrupt:
        if search.best is None:
            raise
        best, interrupted = search.best, True
    if not interrupted and not budget.spent():
        progress("the last steps")
        best = _polished(best)
    return _finish(request, search, best, near=near, interrupted=interrupted, progress=progress)


def _similar(request: Request, target: Target, progress: Progress) -> ParameterFile | None:
    from paramsearch.tables.lookup import Table

    try:
        return Table.open().nearest(
            eps=target.problem.eps,
            delta=target.problem.delta,
            max_value=target.problem.max_value,
            central_fraction=target.eps_central / target.problem.eps * min(request.dimension, 2),
        )
    except (InvalidConfiguration, OSError) as error:
        progress(f"without the package's table: {error}")
        return None


def _by_the_paper(request: Request, target: Target, progress: Progress) -> Generated:
    from paramsearch.search import paper_parameters as paper

    if request.method == "theorem":
        proposal = paper.theorem(target)
    else:
        proposal = paper.refined(target, progress=progress)
    progress("certifying")
    file = uncertified(
        proposal,
        honest=request.honest,
        settings={"method": request.method},
    )
    tier = "light" if request.tier == "auto" else request.tier
    return Generated(certify(file, tier=tier, progress=progress), None, ())


def _start(file: ParameterFile, target: Target) -> Start:
    """The family and noise of a file, without what only larger values need."""
    top, wanted = file.problem.max_value, target.problem.max_value
    if top < wanted:
        raise InvalidParameter(f"the file to resume has max_value {top}, not {wanted}")
    atoms = tuple(entry.atom for entry in file.atoms)
    if len(set(atoms)) < len(atoms):
        raise InvalidParameter(
            "the file to resume has several noises on one atom, as the paper's parameters do; only "
            "files of --method search can be resumed"
        )
    family = Family(top, atoms)
    value_of = {index: value for value, index in family.basis.items()}
    noise = {
        value_of[index]: (math.log(entry.mean), math.log(entry.r))
        for index, entry in enumerate(file.atoms)
    }
    draft = Draft.of(target.problem.max_value, Draft.from_family(family).parts)
    assert draft is not None
    return Start(draft, noise)


def _polished(best: Candidate) -> Candidate:
    """More steps for the noise.

    Where any changes may follow each other, with those that are worst together at the best noise so
    far, and with so much less for fixed sequences as adaptive ones exceed them there.
    """
    target = best.model.target
    problem = target.problem
    for _ in range(_MIXINGS if problem.any_sequence and problem.releases <= _FEW else 0):
        one = Protocol(best.model.configuration(best.solution.x))
        question = (problem.eps, problem.releases)
        kinds = kinds_of_changes(one.view_pairs, *question)
        reached = sequence_bounds(one.view_pairs, one.view_pairs, *question, gap=_ROUGH).upper
        target = replace(
            target,
            mixed=tuple(one.changes[q] for q in kinds),
            share=target.share * min(1.0, max(0.01, target.problem.delta / reached)),
        )
        model = Model(best.model.family, target)
        solution = minimise(model, best.solution.x, tolerance=1e-4, steps=30)
        best = replace(best, model=model, solution=solution)
    if target.problem.any_sequence:
        return _against_any(best)
    solution = minimise(best.model, best.solution.x, tolerance=1e-5, steps=30)
    return replace(best, solution=solution) if solution.messages < best.solution.messages else best


def _against_any(best: Candidate) -> Candidate:
    """The bound of any sequence itself is lowered."""
    deadline = time.monotonic() + _SECONDS
    x = descended(best.model, best.solution.x, deadline=deadline)
    return replace(best, solution=replace(best.solution, x=x, messages=best.model.messages(x)))


def _finish(
    request: Request,
    search: Search,
    best: Candidate,
    *,
    near: bool,
    interrupted: bool,
    progress: Progress,
) -> Generated:
    cut_short = search.budget.spent()
    settings: dict[str, Any] = {
        "method": request.method,
        "objective": request.objective,
        "tries": request.tries,
        "families": search.tries,
        **request.settings,
    }
    if interrupted or cut_short:
        settings["ended_by"] = "interrupt" if interrupted else "budget"
    request = replace(request, settings=settings)
    progress("certifying")
    try:
        file, x = finished(best.model, best.solution.x, request, progress=progress)
    except InvalidParameter as error:
        raise Undecided(
            f"the search ended outside the range of the evaluators ({error}); take a larger eps or "
            "a smaller fraction of it"
        ) from error
    hurried = near or interrupted or cut_short
    useless = None if hurried else useless_moves(best.model, x, request, progress=progress)
    return Generated(file, useless, tuple(search.ends), interrupted, cut_short)
