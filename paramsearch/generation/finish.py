"""The last stage: from estimates to a certified file.

The noise of a candidate is scaled until rigorous bounds of its worst pairs meet delta, rounded to
rationals with no less noise, and certified as a whole.  If that fails, the pairs that the estimates
missed are bounded as well, or a little more noise is added.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.errors import TooLarge, Undecided, Violated
from accounting.base.progress import Progress, silent
from accounting.composition.any_sequence import sequence_bounds
from accounting.evaluator.pairs.blocks import pairs_above
from accounting.protocol import Protocol
from paramsearch.certification.certify import certify
from paramsearch.generation.pair_bounds import largest_bounds, pair_bounds, proposed_file
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.request import Request
from paramsearch.search.noise.mean_scaling import MeanScaling, shifted_means
from paramsearch.search.noise.noise_model import NoiseModel

_MARGIN, _GAP = 4e-4, 2e-4
"""Relative distance between delta and the bounds of the worst pairs, and their relative gap."""
_SEQUENCE_MARGIN, _SEQUENCE_GAP = 4e-3, 1e-3
"""The same for arbitrary sequences of changes, whose bound depends a little more on its grid."""
_FEWEST_PAIRS, _PAIRS_PER_VALUE, _MOST_PAIRS = 60, 4, 1000
"""Number of pairs that are bounded at once, for each unit of max_value, and at most."""
_CHECKED_FROM = 30
"""The max_value from which the fast evaluators look for pairs that the estimates missed before a
slower proof begins."""
_NEAR_WORST = 0.05
"""Pairs are bounded whose estimated log delta is within this of the worst; rule of thumb."""
_REPAIRS = 8
"""Number of certificates that are tried, with more pairs or more noise."""
_MANY_VALUES, _LARGE_MARGIN = 1000, 0.02
"""The max_value beyond which millions of pairs, near delta by estimates, are bounded for the first
time in the certificate; and the relative distance there."""
_SCALING_STEPS = 14
"""Most bounds that are computed to scale the noise."""
_FIRST_REPAIR = 2e-4
"""Increase of all log means when a certificate misses delta; it doubles with each attempt."""


def finish(
    model: NoiseModel,
    x: FloatArray,
    request: Request,
    *,
    deadline: float = math.inf,
    progress: Progress = silent,
) -> tuple[ParameterFile, FloatArray]:
    """Make the certified file; also return the noise in it as parameters of the model.

    If the usual proof is not done by the ``deadline``, the fast evaluators prove what is left.
    """
    if model.target.problem.any_sequence:
        worst, x = None, calibrated(model, x, request, progress)
    else:
        worst = WorstPairs.estimated(model, x, request, deadline)
        x = worst.calibrated(x, progress)
    slow_proof = request.tier != "fast" and not model.large
    if worst is not None and slow_proof and model.target.problem.max_value >= _CHECKED_FROM:
        worst, x = worst.checked(x, progress)
    increase = 0.0
    for attempt in range(_REPAIRS):
        raised = shifted_means(x, increase)
        try:
            file = proposed_file(model, raised, request)
            return certified_in_time(file, request, deadline, progress), raised
        except (Violated, Undecided) as error:
            beyond = isinstance(error.__cause__, TooLarge)  # more noise makes it no smaller
            if beyond or (attempt + 1 == _REPAIRS and isinstance(error, Undecided)):
                raise
            progress(f"repairing: {error}")
            more = None if worst is None else worst.with_missed(raised)
            if more is None:
                increase += _FIRST_REPAIR * 2**attempt
            else:
                worst, x = more, more.calibrated(raised)
    raise Undecided(
        f"after {_REPAIRS} repairs delta = {model.target.problem.delta!r} is still missed; this "
        "problem defeats the estimates of the search: ask for a larger delta, or report it"
    )


def certified_in_time(
    file: ParameterFile, request: Request, deadline: float, progress: Progress = silent
) -> ParameterFile:
    """Certify as asked; where nothing is asked for, by the fast evaluators once the time is
    over."""
    if request.tier not in ("auto", "light"):
        return certify(file, tier=request.tier, progress=progress)
    try:
        return certify(file, tier=request.tier, deadline=deadline, progress=progress)
    except Undecided:
        if time.monotonic() < deadline:
            raise
    progress("the budget is used up: the fast evaluators prove the rest")
    return certify(file, tier="fast", progress=progress)


@dataclass(frozen=True)
class WorstPairs:
    """Pairs of a model, by their numbers, that are the worst according to estimates or bounds; the
    request that the noise is for; and the end of its time on the monotonic clock."""

    model: NoiseModel
    pairs: IntArray
    request: Request
    deadline: float = math.inf

    @staticmethod
    def estimated(
        model: NoiseModel, x: FloatArray, request: Request, deadline: float = math.inf
    ) -> WorstPairs:
        excess = model.excess(x)
        count = min(_MOST_PAIRS, max(_FEWEST_PAIRS, _PAIRS_PER_VALUE * model.family.max_value))
        worst = np.argsort(-excess)[: _MOST_PAIRS if model.large else count]
        near = worst[excess[worst] > excess[worst[0]] - _NEAR_WORST]
        return WorstPairs(model, near, request, deadline)

    def calibrated(self, x: FloatArray, progress: Progress = silent) -> FloatArray:
        """Scale all means so that the upper bound of these pairs is just below delta."""

        def worst(moved: FloatArray) -> float:
            return largest_bounds(
                self.model, moved, self.pairs, _GAP, self.request, deadline=self.deadline
            )[1]

        many = self.model.target.problem.max_value > _MANY_VALUES
        return _scaled(self.model, x, worst, _LARGE_MARGIN if many else _MARGIN, progress)

    def checked(self, x: FloatArray, progress: Progress) -> tuple[WorstPairs, FloatArray]:
        """Add the pairs that the estimates missed, and scale the means for these as well."""
        worst = self
        for _ in range(_REPAIRS):
            progress("looking for pairs that the estimates missed")
            more = worst.with_missed(x)
            if more is None:
                break
            worst, x = more, more.calibrated(x)
        return worst, x

    def with_missed(self, x: FloatArray) -> WorstPairs | None:
        """Add every pair whose rigorous bound still exceeds delta; None if there are no others."""
        model, delta = self.model, self.model.target.problem.delta
        if model.pairs is None:
            upper = pair_bounds(model, x, None, _GAP)[1]
            missed = np.setdiff1d(np.flatnonzero(upper > delta), self.pairs)
            missed = missed[np.argsort(-upper[missed])][:_MOST_PAIRS]
            more = np.append(self.pairs, missed)
            return replace(self, pairs=more) if len(missed) else None
        source = Protocol(model.configuration(x), model.target.problem.releases, True).input_pairs
        found = pairs_above(source, model.target.problem.eps, delta)
        order = np.argsort(-found.upper)[:_MOST_PAIRS]
        before = model.pairs[self.pairs]
        both = np.unique(np.concatenate([before, found.pairs[order]]), axis=0)
        if len(both) == len(before):
            return None
        model = model.watching(both)
        return replace(self, model=model, pairs=np.arange(len(both)))


def calibrated(
    model: NoiseModel, x: FloatArray, request: Request, progress: Progress = silent
) -> FloatArray:
    """Scale all means so that the bound for arbitrary sequences, or for the worst pairs, is just
    below delta."""
    if model.target.problem.any_sequence:
        return _scaled(
            model, x, lambda moved: _sequence_upper(model, moved), _SEQUENCE_MARGIN, progress
        )
    return WorstPairs.estimated(model, x, request).calibrated(x, progress)


def _sequence_upper(model: NoiseModel, x: FloatArray) -> float:
    problem = model.target.problem
    changes = Protocol(model.configuration(x), adjacency=problem.adjacency).one_release
    return sequence_bounds(changes, problem.eps, problem.releases, gap=_SEQUENCE_GAP).upper


def _scaled(
    model: NoiseModel,
    x: FloatArray,
    upper: Callable[[FloatArray], float],
    margin: float,
    progress: Progress,
) -> FloatArray:
    """Scale all means so that ``upper`` is below delta by about a relative ``margin``."""
    bounds = count(1)
    goal = math.log(model.target.problem.delta) + math.log1p(-margin)
    scaling = MeanScaling(
        steps=_SCALING_STEPS,
        longest_step=0.3,
        close=lambda excess: -margin / 2 < excess <= 0,
        aim=-margin / 8,
    )

    def excess(moved: FloatArray) -> float:
        progress(f"scaling the noise to delta, bound {next(bounds)} of at most {_SCALING_STEPS}")
        return math.log(max(upper(moved), 1e-300)) - goal

    return scaling.run(x, excess).x
