"""From a request to a certified parameter file: target, start, search, polish, finish."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from accounting.base.enclosure import Summarized
from accounting.base.errors import (
    InvalidConfiguration,
    InvalidParameter,
    TooLarge,
    Undecided,
    required,
)
from accounting.base.progress import Progress, silent
from accounting.base.validation import instance
from accounting.model.costs import (
    central_by_fraction,
    discrete_laplace_deviation,
    largest_central_of,
)
from accounting.model.family import Family
from paramsearch.certification.certify import certify
from paramsearch.certification.remarks import MANY_MESSAGES
from paramsearch.generation.finish import finish
from paramsearch.generation.interruption import Interruption
from paramsearch.generation.optimality import LocalOptimality, prove_local_optimality
from paramsearch.generation.pair_bounds import proposed_file
from paramsearch.generation.polish import polished
from paramsearch.generation.time_plan import TimePlan
from paramsearch.parameters.assembly import uncertified
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.parameters.real_range import stated_range
from paramsearch.request import Request
from paramsearch.search.budget import Budget, never
from paramsearch.search.candidate import Candidate, Start
from paramsearch.search.families.family_draft import FamilyDraft
from paramsearch.search.family_screening import predicted
from paramsearch.search.family_search import Search
from paramsearch.search.target import Target, usual_m

_SMALL_PROBLEM = 24
"""Largest max_value at which different eps* are compared."""
_PREDICTION_SECONDS = 3.0
"""Longest time for the prediction of what shorter messages would cost."""
_MORE_ERROR = 0.5
"""The central fraction that is mentioned where users send many messages."""
_FEWER_MESSAGES = 0.8
"""Ratio of messages per user from which on that fraction is worth mentioning."""
_FEWER_BITS = 0.995
"""Ratio of bits per user from which on shorter messages are worth mentioning."""


class ProofInterrupted(KeyboardInterrupt):
    """An interrupt while the result of a search was being certified.

    Attributes:
        found: That result, not certified: delta is met according to estimates alone.
    """

    def __init__(self, found: ParameterFile) -> None:
        super().__init__()
        self.found = found


@dataclass(frozen=True)
class MoreError:
    """About what the same problem costs if more error is allowed.

    Attributes:
        central_fraction: The smaller share of eps for the central noise.
        messages_per_user: The messages that a user then sends, about.
        rmse: The error of the sum, or of each coordinate.
    """

    central_fraction: float
    messages_per_user: float
    rmse: float


@dataclass(frozen=True, repr=False)
class Generated(Summarized):
    """The result of ``generate``.

    Attributes:
        file: The certified parameter file.
        optimality: How far it is proved that no single parameter can be lowered by 1%; None
            if that was not tried.
        prices: Prices that different starts of the search reached before its last steps.
        interrupted: Whether an interrupt ended the search.
        cut_short: Whether the budget in seconds ended the search.
        kept: Whether ``file`` is an earlier file that the search did not improve on.
        fewer_bits: About the bits per user with the objective "bits", if these are fewer: a family
            with a smaller alphabet has more messages, but shorter ones.
        more_error: If a user sends more than two messages, about how many fewer they are with more
            error, if that helps much.

    >>> generate(Request(n=1000, eps=1.0, delta=1e-6, max_value=1, tries=1))
    <Generated (1, 1e-06) for n = 1,000, max_value = 1; 1 atom, certified
     599.8 noise messages, ... 1.59984 bits per user; RMSE 1.51...; delta in [9.995...e-07, ...]>
    """

    file: ParameterFile
    optimality: LocalOptimality | None
    prices: tuple[float, ...]
    interrupted: bool = False
    cut_short: bool = False
    kept: bool = False
    fewer_bits: float | None = None
    more_error: MoreError | None = None

    def summary(self) -> tuple[str, str]:
        """Return the file's summary, and how the search ended."""
        problem, numbers = self.file.summary()
        ends = {
            "interrupted": self.interrupted,
            "cut short by its budget": self.cut_short,
            "an earlier file, not improved on": self.kept,
        }
        return problem, "; ".join([numbers, *(end for end, true in ends.items() if true)])


def generate(
    request: Request,
    *,
    resume: ParameterFile | None = None,
    draft: FamilyDraft | None = None,
    refine_only: bool = False,
    stop: Callable[[], bool] = never,
    interruption: Interruption | None = None,
    progress: Progress = silent,
) -> Generated:
    """Search for the cheapest parameters of a request, and certify them.

    A KeyboardInterrupt ends the search, and the best candidate so far is certified; a second one,
    or one that comes when the search has ended, is passed on as ProofInterrupted, with what was
    found.  One that comes after the certificate only leaves the proof of local optimality out.

    Args:
        request: The problem, and how to solve it.
        resume: A file of the same max_value or a larger one.  The search starts from it as well as
            from its own families; by default, from the most similar file of the package's table.
        draft: A family from which the search starts as well.
        refine_only: Whether to start only from that file, and to change only single atoms.  This is
            many times faster; local optimality is not proved.
        stop: Asked now and then; once it is true, the search ends as if interrupted.
        interruption: Is told what an interrupt would do, whenever that changes.
        progress: Called with one line of text now and then.

    Returns:
        The certified file, and how the search ended.

    Raises:
        InvalidParameter: If the error is out of reach, or ``resume`` cannot be resumed.
        Undecided: If no file could be certified.

    >>> found = generate(Request(n=1000, eps=1.0, delta=1e-6, max_value=2, tries=1))
    >>> found.file.certificate.delta_upper <= 1e-6
    True
    >>> found.optimality.proven, found.optimality.listed
    (4, 4)
    """
    instance("request", request, Request, "give a Request, or use generate_real")
    try:
        about = Interruption() if interruption is None else interruption
        return _generate(request, resume, draft, refine_only, stop, about, progress)
    except TooLarge as error:
        raise Undecided(str(error)) from error


def _generate(
    request: Request,
    resume: ParameterFile | None,
    draft: FamilyDraft | None,
    refine_only: bool,
    stop: Callable[[], bool],
    interruption: Interruption,
    progress: Progress,
) -> Generated:
    target = _target(request)
    if request.method != "search":
        return _with_paper_parameters(request, target, progress)
    if resume is None and not request.cold:
        resume = _similar_file(request, target, progress)
        if resume is not None:
            settings = {**request.settings, "start": resume.sha256}
            request = replace(request, settings=settings)
    plan = TimePlan.of(request)
    plan.check()
    plan.announce(progress)
    request = replace(request, tier=plan.tier)
    budget = Budget(tries=request.tries, seconds=plan.search_seconds, stop=stop)
    search = Search(target, budget=budget, seed=request.seed, progress=progress)
    interrupted = False
    interruption.becomes(
        lambda: (
            ""
            if search.best is None
            else f"the best so far is being certified, about {plan.proof_in_words}; again to leave "
            "it uncertified"
        )
    )
    try:
        start = None if resume is None else _start(resume, target)
        drafts = [] if draft is None else [draft]
        if start is not None and resume is not None and resume.noise != request.noise:
            # noise of another law is no good beginning, and may lead to noise without bound
            drafts, start = [*drafts, start.draft], None
        if refine_only and start is not None:
            best = search.refine(start)
        else:
            best = search.run(start, drafts)
        if not budget.spent():
            progress(f"the last steps, best {search.best_in_words()}")
            best = polished(best, deadline=budget.at(1.0))
    except KeyboardInterrupt:
        if search.best is None:
            raise
        best, interrupted = search.best, True
    if refine_only or interrupted or budget.spent():
        plan = replace(plan, proves_optimality=False)
    return _finished(request, search, best, plan, interruption, interrupted=interrupted)


def _target(request: Request) -> Target:
    """Choose the target of the search; choosing its central noise may take small searches."""
    sizes = request.central_choices(largest_central_of(request))
    target = Target(request.problem, sizes[0], request.objective, m=usual_m(request.noise))
    if len(sizes) == 1:
        return target
    small = target.at(min(request.max_value, _SMALL_PROBLEM))
    cheapest = min(sizes, key=lambda size: _predicted_messages(replace(small, eps_central=size)))
    return replace(target, eps_central=cheapest)


def _predicted_messages(target: Target) -> float:
    """Return the prediction of stage 1; if max_value is 1, the result of stage 2 for the only
    family."""
    if target.problem.max_value == 1:
        return Search(target, Budget()).solve(FamilyDraft(1, {})).solution.messages
    return predicted(target).messages


def _with_paper_parameters(request: Request, target: Target, progress: Progress) -> Generated:
    from paramsearch.search import paper_parameters as paper

    if request.method == "theorem":
        proposal = paper.theorem(target)
    else:
        proposal = paper.refined(target, progress=progress)
    progress("certifying")
    file = uncertified(proposal, honest=request.honest, settings={"method": request.method})
    tier = "light" if request.tier == "auto" else request.tier
    return Generated(certify(file, tier=tier, progress=progress), None, ())


def _similar_file(request: Request, target: Target, progress: Progress) -> ParameterFile | None:
    """Return the file of the package's table for the most similar problem, if there is one."""
    from paramsearch.tables.lookup import Table

    try:
        return Table.open().nearest(
            eps=target.problem.eps,
            delta=target.problem.delta,
            max_value=target.problem.max_value,
            central_fraction=target.eps_central / target.problem.eps * request.changed_coordinates,
            objective=request.objective,
            noise=request.noise,
        )
    except (InvalidConfiguration, OSError) as error:
        progress(f"without the package's table: {error}")
        return None


def _start(file: ParameterFile, target: Target) -> Start:
    """Return the family and noise of a file, without the values that only larger ones need."""
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
        value_of[index]: (math.log(entry.mean), math.log(entry.rounded().r))
        for index, entry in enumerate(file.atoms)
    }
    draft = FamilyDraft.of(wanted, FamilyDraft.from_family(family).parts)
    return Start(required(draft, "the family of the file to resume"), noise)


def _finished(
    request: Request,
    search: Search,
    best: Candidate,
    plan: TimePlan,
    interruption: Interruption,
    *,
    interrupted: bool,
) -> Generated:
    progress = search.progress
    cut_short = search.budget.cut or search.budget.spent()
    interrupted = interrupted or (cut_short and search.budget.stop())
    settings: dict[str, Any] = {
        "method": request.method,
        "objective": request.objective,
        **({"noise": request.noise} if request.noise == "burst" else {}),
        "tries": request.tries,
        **search.findings(),
        **request.settings,
    }
    if interrupted or cut_short:
        settings["ended_by"] = "interrupt" if interrupted else "budget"
    request = replace(request, settings=settings)
    progress(f"certifying, about {plan.proof_in_words}")
    interruption.becomes(lambda: "what was found is left uncertified")
    try:
        file, x = finish(
            best.model,
            best.solution.x,
            request,
            deadline=plan.end,
            progress=lambda text: progress(f"certifying: {text}"),
        )
    except KeyboardInterrupt as signal:
        raise ProofInterrupted(proposed_file(best.model, best.solution.x, request)) from signal
    except InvalidParameter as error:
        raise Undecided(
            f"the search ended outside the range of the evaluators ({error}); take a larger eps or "
            "a smaller fraction of it"
        ) from error
    interruption.becomes(lambda: "the file is certified, and nothing else is proved about it")
    optimality = fewer_bits = more_error = None
    try:
        if plan.proves_optimality:
            optimality = prove_local_optimality(
                best.model, x, request, deadline=plan.end, progress=progress
            )
        if not interrupted and time.monotonic() + _PREDICTION_SECONDS <= plan.end:
            fewer_bits = _fewer_bits(search, best, file.cost.bits_per_user)
        if not interrupted and time.monotonic() + _PREDICTION_SECONDS <= plan.end:
            more_error = _more_error(search, best, file)
    except KeyboardInterrupt:  # the file is certified
        interrupted = True
    return Generated(
        file,
        optimality,
        tuple(search.prices),
        interrupted=interrupted,
        cut_short=cut_short,
        fewer_bits=fewer_bits,
        more_error=more_error,
    )


def _more_error(search: Search, best: Candidate, file: ParameterFile) -> MoreError | None:
    """About what a larger error saves where users send many messages, if it saves much.

    Stage 1 predicts it; it is off by as much as for the family that was found.
    """
    target, draft = best.model.target, best.draft
    problem = target.problem
    central = central_by_fraction(_MORE_ERROR, largest_central_of(problem))
    if file.cost.messages_per_user <= MANY_MESSAGES or target.eps_central <= central:
        return None
    if stated_range(file) is not None:  # more noise alone changes the rounding that is best
        return None
    other = replace(target, eps_central=central)
    if problem.max_value == 1:
        messages = _predicted_messages(other)
    else:
        found, here = (
            predicted(
                one,
                draft,
                budget=Budget(seconds=_PREDICTION_SECONDS / 2),
                calibration=search.screening.calibration,
            )
            for one in (other, target)
        )
        messages = found.messages * best.solution.messages / here.messages
    per_user = 1 + file.cost.noise_messages / problem.n * messages / best.solution.messages
    if not per_user <= _FEWER_MESSAGES * file.cost.messages_per_user:
        return None
    worse = discrete_laplace_deviation(other.step) / discrete_laplace_deviation(target.step)
    return MoreError(_MORE_ERROR, per_user, file.error.rmse * worse)


def _fewer_bits(search: Search, best: Candidate, bits: float) -> float | None:
    """Estimate the bits per user of a family with shorter messages, if these are fewer than
    ``bits``.

    Stage 1 predicts them; it is off by as much as for the family that was found.
    """
    target, draft = best.model.target, best.draft
    if target.objective == "bits" or not target.hub_limits(draft.hubs):
        return None
    shorter = predicted(
        replace(target, objective="bits"),
        draft,
        budget=Budget(seconds=_PREDICTION_SECONDS),
        calibration=search.screening.calibration,
    )
    without_tail = replace(search.screening.solve(draft), tail=None)  # as the prediction is
    off_by = best.solution.messages / without_tail.messages
    price = shorter.target.price(shorter.messages * off_by, shorter.draft.symbols)
    found = price / target.problem.n
    return found if found < _FEWER_BITS * bits else None
