"""Rigorous bounds for pairs of inputs, where the noise is that of a search."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.errors import TooLarge, Undecided
from accounting.evaluator.evaluate import evaluate
from accounting.notary.notary import Notary
from accounting.proof.prove import LARGEST_BALL, MOST_BALL_RELEASES
from accounting.protocol import Protocol
from paramsearch.certification.certify import claimed_mechanism
from paramsearch.parameters.assembly import uncertified
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.request import Request
from paramsearch.search.noise.noise_model import NoiseModel

_LOOSE = 0.01
"""Relative gap of the fast bounds above which balls are worth their time."""


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
    """Rigorous lower and upper bounds of delta for some pairs of the model or all.

    The worst pair is bounded to a relative ``gap``.
    """
    of_atom = Protocol(model.configuration(x)).noises
    _, first = np.unique(model.laws, return_index=True)
    view_pairs = replace(model.view_pairs, noises=tuple(of_atom[atom] for atom in first))
    part = view_pairs if pairs is None else view_pairs.subset(pairs)
    found = evaluate(part, model.target.problem.eps, gap=gap)
    return found.lower, found.upper


def largest_bounds(
    model: NoiseModel,
    x: FloatArray,
    pairs: IntArray,
    gap: float,
    request: Request,
    *,
    claim: float | None = None,
    deadline: float = math.inf,
) -> tuple[float, float]:
    """Rigorous bounds of the largest delta of some pairs, to a relative ``gap`` if possible.

    The fast evaluators calculate in doubles, whose 16 digits do not suffice where delta is small
    and few outcomes of single atoms have most of the loss.  There balls bound the pairs that are in
    doubt, unless the file is going to be proved without balls.

    Args:
        model: The family, and what its noise is for.
        x: The noise.
        pairs: Numbers of pairs of the model.
        gap: Relative gap between the bounds.
        request: The request that the noise is for.
        claim: A delta; bounds that decide it may be wide.
        deadline: When balls are given up, on the clock of ``time.monotonic``.
    """
    lowers, uppers = pair_bounds(model, x, pairs, gap)
    lower, upper = float(lowers.max()), float(uppers.max())
    decided = claim is not None and not lower <= claim < upper
    if decided or upper - lower <= _LOOSE * upper or not _provable_by_balls(request):
        return lower, upper
    changes = model.changes
    doubtful = [changes[pair][0] for pair in pairs[uppers > lower].tolist()]
    mechanism = claimed_mechanism(proposed_file(model, x, request))
    notary = Notary(mechanism, request.releases, request.same_change, request.adjacency)
    try:
        found = notary.enclose(
            request.eps, gap=gap, claim=request.delta, changes=doubtful, deadline=deadline
        ).enclosure
    except (TooLarge, Undecided):  # out of time, or out of their range
        return lower, upper
    return max(lower, found.lower), min(upper, max(lower, found.upper))


def _provable_by_balls(request: Request) -> bool:
    """Whether the usual proof of all changes is by balls, and takes seconds."""
    few = request.max_value <= LARGEST_BALL and request.releases <= MOST_BALL_RELEASES
    return few and not request.any_sequence and request.tier != "fast"
