"""A proof that no single parameter of a file can be lowered.

For every atom two moves are listed, each of which saves messages: 1% less of p / (1 - p) at the
same r, and 1% less of r at the same p.  A move is proven to violate delta when some pair's
divergence after it, bounded from below with all rounding errors, exceeds delta.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from accounting.base.arrays import FloatArray
from accounting.base.progress import Progress, silent
from accounting.base.threads import in_threads
from accounting.notary.notary import Notary
from paramsearch.certification.certify import claimed_mechanism
from paramsearch.generation.pair_bounds import largest_bounds, proposed_file
from paramsearch.request import Request
from paramsearch.search.noise.noise_model import NoiseModel

_STEP = 0.01
"""Share by which a move lowers a parameter."""
_LOG_STEP = math.log1p(-_STEP)
_LARGEST_VALUE = 100
"""Largest max_value for which every atom is tried."""
_LARGEST_SEQUENCES = 12
"""Largest releases * max_value for arbitrary sequences of changes, where every move takes a proof
of its own."""
_NEAR, _MOST_NEAR = 0.3, 4000
"""Pairs that may be the worst after a move: log delta within this of the worst, and how many."""
_PAIRS = 4
"""Number of pairs that are bounded for one move."""
_AT_ONCE = 8
"""Moves that are tried between two lines of progress."""
_GAP = 3e-4
"""Relative gap of these bounds, far below the change of delta by a move; rule of thumb."""


@dataclass(frozen=True)
class LocalOptimality:
    """The result of trying to lower single parameters: ``proven`` of the ``listed`` moves violate
    delta; the others are undecided.

    Attributes:
        listed: Number of moves that would save messages.
        proven: Number of those that are proved to violate delta.
        largest_saving: Largest share of the messages that an undecided move could save.
    """

    listed: int
    proven: int
    largest_saving: float


def prove_local_optimality(
    model: NoiseModel,
    x: FloatArray,
    request: Request,
    *,
    deadline: float = math.inf,
    progress: Progress = silent,
) -> LocalOptimality | None:
    """Try all listed moves; None where the proofs would take too long, or until after the
    ``deadline`` on the monotonic clock."""
    problem = model.target.problem
    if problem.max_value > _LARGEST_VALUE:
        return None
    if problem.any_sequence:
        if problem.releases * problem.max_value > _LARGEST_SEQUENCES:
            return None
        return _count_proven(
            model,
            x,
            lambda moved, *_: _violates_for_sequences(model, moved, request),
            deadline,
            progress,
            workers=1,  # the notary forks processes of its own
        )
    excess = model.excess(x)
    near = np.flatnonzero(excess > excess.max() - _NEAR)
    near = near[np.argsort(-excess[near])][:_MOST_NEAR]
    _, gradient = model.estimator.gradient(x, near)

    def violates(moved: FloatArray, atom: int, lowers_r: bool) -> bool:
        rise = _LOG_STEP * (gradient[:, 0, atom] + lowers_r * gradient[:, 1, atom])
        pairs = near[np.argsort(-(excess[near] + rise))[:_PAIRS]]
        lower, _ = largest_bounds(
            model, moved, pairs, _GAP, request, claim=problem.delta, deadline=deadline
        )
        return lower > problem.delta

    return _count_proven(model, x, violates, deadline, progress)


def _violates_for_sequences(model: NoiseModel, x: FloatArray, request: Request) -> bool:
    """Tell whether the notary proves a violation; its lower bounds hold for adaptive sequences."""
    problem = model.target.problem
    mechanism = claimed_mechanism(proposed_file(model, x, request))
    notary = Notary(mechanism, problem.releases, adjacency=problem.adjacency)
    found = notary.enclose(problem.eps, gap=1e-3, claim=problem.delta)
    return found.enclosure.lower > problem.delta


def _count_proven(
    model: NoiseModel,
    x: FloatArray,
    violates: Callable[[FloatArray, int, bool], bool],
    deadline: float,
    progress: Progress,
    workers: int | None = None,
) -> LocalOptimality | None:
    """Try both moves of every atom; ``violates`` takes the noise, the atom, and whether r falls."""

    def breaks_delta(move: tuple[int, bool]) -> bool | None:
        """Whether the noise after a move violates the claim; None after the deadline."""
        if time.monotonic() > deadline:
            return None
        atom, lowers_r = move
        moved = x.copy()
        moved[0, atom] += _LOG_STEP
        moved[1, atom] += _LOG_STEP * lowers_r
        return violates(moved, atom, lowers_r)

    moves = [(atom, lowers_r) for atom in range(len(model.size)) for lowers_r in (False, True)]
    proven, saving = 0, 0.0
    for begin in range(0, len(moves), _AT_ONCE):
        some = moves[begin : begin + _AT_ONCE]
        for (atom, _), found in zip(some, in_threads(breaks_delta, some, workers), strict=True):
            if found is None:
                return None
            if found:
                proven += 1
            else:
                saved = model.size[atom] * np.exp(x[0, atom]) * _STEP
                saving = max(saving, float(saved / model.messages(x)))
        tried = begin + len(some)
        others = f", {tried - proven:,} undecided" if tried > proven else ""
        progress(f"checking optimality {tried:,}/{len(moves):,}{others}")
    return LocalOptimality(len(moves), proven, saving)
