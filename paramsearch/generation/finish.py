"""Stage 3: from estimates to a certified file.

The noise of a candidate is scaled until rigorous bounds of its worst pairs meet delta, rounded to
rationals with no less noise, and certified as a whole.  What rounding or another pair spoils is
repaired by a little more noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.errors import Undecided, Violated
from accounting.base.progress import Progress, silent
from accounting.composition.any_sequence import sequence_bounds
from accounting.evaluator.evaluate import evaluate
from accounting.protocol import Protocol
from paramsearch.certification.certify import certify
from paramsearch.parameters.assembly import uncertified
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.problem import Request
from paramsearch.search.noise.noise_model import Model

_MARGIN = 4e-4
"""The bounds of the worst pairs come to lie this far below delta."""
_GAP = 2e-4
_ANY_MARGIN, _ANY_GAP = 4e-3, 1e-3
"""The same for any sequence of changes, whose bound depends a little more on its grid."""
_MOST_PAIRS = 60
_REPAIRS = 8
_REPAIR = 2e-4
"""Relative increase of all means where a certificate missed delta by little."""


def finished(
    model: Model, x: FloatArray, request: Request, progress: Progress = silent
) -> tuple[ParameterFile, FloatArray]:
    """The certified file, and the noise in it as parameters of the model."""
    x = calibrated(model, x)
    more = 0.0
    for attempt in range(_REPAIRS):
        moved = x + np.array([[more], [0.0]])
        try:
            file = certify(proposed(model, moved, request), tier=request.tier, progress=progress)
        except Violated:
            more += _REPAIR * 2**attempt
        except Undecided:
            if attempt + 1 == _REPAIRS:
                raise
            more += _REPAIR * 2**attempt
        else:
            return file, moved
    raise Undecided(
        f"after {_REPAIRS} repairs delta = {model.target.problem.delta!r} is still missed; this "
        "problem defeats the estimates of the search: ask for a larger delta, or report it"
    )


def proposed(model: Model, x: FloatArray, request: Request) -> ParameterFile:
    """The deployable rationals, not certified."""
    return uncertified(
        model.proposal(x),
        releases=request.releases,
        same_change=request.same_change,
        honest=request.honest,
        seed=request.seed,
        settings=dict(request.settings),
    )


def worst_bounds(
    model: Model, x: FloatArray, pairs: IntArray | None, gap: float
) -> tuple[FloatArray, FloatArray]:
    """Rigorous bounds of delta of some pairs, or all; the worst one to a relative gap."""
    whole = Protocol(model.configuration(x))
    workload = replace(model.workload, noises=whole.noises)
    part = workload if pairs is None else workload.subset(pairs)
    found = evaluate(part, model.target.problem.eps, gap=gap)
    return found.lower, found.upper


def calibrated(model: Model, x: FloatArray) -> FloatArray:
    """All means scaled so that the upper bound of the worst pairs is just below delta.

    Estimates choose the pairs; a look at all of them with rigorous bounds adds what they missed.
    """
    if model.target.problem.any_sequence:
        return _scaled(model, x, lambda moved: _any_sequence(model, moved), _ANY_MARGIN)
    excess = model.excess(x)
    pairs = np.argsort(-excess)[:_MOST_PAIRS]
    pairs = pairs[excess[pairs] > excess[pairs[0]] - 0.05]
    for _ in range(4):
        x = _scaled(model, x, lambda moved: _of_pairs(model, moved, pairs), _MARGIN)
        upper = worst_bounds(model, x, None, 0.01)[1]
        missed = np.setdiff1d(np.flatnonzero(upper > model.target.problem.delta), pairs)
        if not len(missed):
            break
        pairs = np.concatenate([pairs, missed[np.argsort(-upper[missed])][:_MOST_PAIRS]])
    return x


def _of_pairs(model: Model, x: FloatArray, pairs: IntArray) -> float:
    return float(worst_bounds(model, x, pairs, _GAP)[1].max())


def _any_sequence(model: Model, x: FloatArray) -> float:
    problem = model.target.problem
    one = Protocol(model.configuration(x)).view_pairs
    return sequence_bounds(one, one, problem.eps, problem.releases, gap=_ANY_GAP).upper


def _scaled(
    model: Model, x: FloatArray, bound: Callable[[FloatArray], float], margin: float
) -> FloatArray:
    goal = math.log(model.target.problem.delta) + math.log1p(-margin)
    slope = 15.0
    last: tuple[float, float] | None = None
    for _ in range(14):
        missing = math.log(max(bound(x), 1e-300)) - goal
        if -margin / 2 < missing <= 0:
            break
        if last is not None:
            seen = (last[0] - missing) / last[1]
            slope = seen if 1 < seen < 300 else slope
        change = min(max((missing + margin / 8) / slope, -0.3), 0.3)
        last = missing, change
        x = x + np.array([[change], [0.0]])
    return x
