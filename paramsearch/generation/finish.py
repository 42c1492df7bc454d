"""Stage 3: from estimates to a certified file.

The noise of a candidate is scaled until rigorous bounds of its worst pairs meet delta, rounded to
rationals with no less noise, and certified as a whole.  If rounding or another pair makes that
fail, a little more noise is added.
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
from paramsearch.request import Request
from paramsearch.search.noise.mean_scaling import MeanScaling, shifted_means
from paramsearch.search.noise.noise_model import NoiseModel

_MARGIN, _GAP = 4e-4, 2e-4
"""Relative distance between delta and the bounds of the worst pairs, and their relative gap."""
_SEQUENCE_MARGIN, _SEQUENCE_GAP = 4e-3, 1e-3
"""The same for arbitrary sequences of changes, whose bound depends a little more on its grid."""
_MOST_PAIRS = 60
"""Number of pairs that are bounded at once."""
_NEAR_WORST = 0.05
"""Pairs are bounded first whose estimated log delta is within this of the worst; rule of thumb."""
_CALIBRATIONS = 4
"""Largest number of scalings, each with the pairs that the one before missed; rule of thumb."""
_REPAIRS = 8
"""Number of certificates that are tried, each with more noise."""
_FIRST_REPAIR = 2e-4
"""Increase of all log means when a certificate misses delta; it doubles with each attempt."""


def finish(
    model: NoiseModel, x: FloatArray, request: Request, progress: Progress = silent
) -> tuple[ParameterFile, FloatArray]:
    """The certified file, and the noise in it as parameters of the model."""
    x = calibrated(model, x)
    increase = 0.0
    for attempt in range(_REPAIRS):
        raised = shifted_means(x, increase)
        try:
            file = proposed_file(model, raised, request)
            return certify(file, tier=request.tier, progress=progress), raised
        except (Violated, Undecided) as error:
            if attempt + 1 == _REPAIRS and isinstance(error, Undecided):
                raise
            increase += _FIRST_REPAIR * 2**attempt
    raise Undecided(
        f"after {_REPAIRS} repairs delta = {model.target.problem.delta!r} is still missed; this "
        "problem defeats the estimates of the search: ask for a larger delta, or report it"
    )


def proposed_file(model: NoiseModel, x: FloatArray, request: Request) -> ParameterFile:
    """The noise as deployable rationals, not certified."""
    return uncertified(
        model.proposal(x),
        releases=request.releases,
        same_change=request.same_change,
        honest=request.honest,
        seed=request.seed,
        settings=dict(request.settings),
    )


def pair_bounds(
    model: NoiseModel, x: FloatArray, pairs: IntArray | None, gap: float
) -> tuple[FloatArray, FloatArray]:
    """Rigorous lower and upper bounds of delta for some pairs or all.

    The worst pair is bounded to a relative ``gap``.
    """
    protocol = Protocol(model.configuration(x))
    view_pairs = replace(model.view_pairs, noises=protocol.noises)
    part = view_pairs if pairs is None else view_pairs.subset(pairs)
    found = evaluate(part, model.target.problem.eps, gap=gap)
    return found.lower, found.upper


def calibrated(model: NoiseModel, x: FloatArray) -> FloatArray:
    """All means scaled so that the upper bound of the worst pairs is just below delta.

    Estimates choose the pairs; rigorous bounds of all pairs add those that the estimates missed.
    """
    if model.target.problem.any_sequence:
        return _scaled(model, x, lambda moved: _sequence_upper(model, moved), _SEQUENCE_MARGIN)
    excess = model.excess(x)
    pairs = np.argsort(-excess)[:_MOST_PAIRS]
    pairs = pairs[excess[pairs] > excess[pairs[0]] - _NEAR_WORST]
    for _ in range(_CALIBRATIONS):
        x = _scaled(model, x, lambda moved: _worst_upper(model, moved, pairs), _MARGIN)
        upper = pair_bounds(model, x, None, 0.01)[1]
        missed = np.setdiff1d(np.flatnonzero(upper > model.target.problem.delta), pairs)
        if not len(missed):
            break
        pairs = np.concatenate([pairs, missed[np.argsort(-upper[missed])][:_MOST_PAIRS]])
    return x


def _worst_upper(model: NoiseModel, x: FloatArray, pairs: IntArray) -> float:
    return float(pair_bounds(model, x, pairs, _GAP)[1].max())


def _sequence_upper(model: NoiseModel, x: FloatArray) -> float:
    problem = model.target.problem
    one_release = Protocol(model.configuration(x)).view_pairs
    return sequence_bounds(
        one_release, one_release, problem.eps, problem.releases, gap=_SEQUENCE_GAP
    ).upper


def _scaled(
    model: NoiseModel, x: FloatArray, upper: Callable[[FloatArray], float], margin: float
) -> FloatArray:
    """All means scaled so that ``upper`` is below delta by about a relative ``margin``."""
    goal = math.log(model.target.problem.delta) + math.log1p(-margin)
    scaling = MeanScaling(
        steps=14,
        longest_step=0.3,
        close=lambda excess: -margin / 2 < excess <= 0,
        aim=-margin / 8,
    )
    return scaling.run(x, lambda moved: math.log(max(upper(moved), 1e-300)) - goal).x
