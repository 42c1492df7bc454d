"""The last steps of a search: more exact noise for the best family.

Where a user may make different changes in different releases, the search so far considered fixed
sequences of a few changes.  Here the sequences are those that are worst at the noise found, and
finally the bound for arbitrary sequences itself is lowered.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

from accounting.composition.any_sequence import kinds_of_changes, sequence_bounds
from accounting.protocol import Protocol
from paramsearch.search.candidate import Candidate
from paramsearch.search.noise.noise_model import NoiseModel
from paramsearch.search.noise.noise_optimizer import optimize_noise
from paramsearch.search.noise.sequence_noise import optimize_sequence_noise

_MIXINGS = 3
"""Number of times that the changes in the sequences are chosen again."""
_ROUGH_GAP = 0.02
"""Relative gap of the bounds that say by how much adaptive sequences exceed fixed ones."""
_FEW_RELEASES = 3
"""Largest number of releases for which fixed sequences guide the last steps as well."""
_SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64)
"""The m of bursts that are tried."""
_SECONDS = 120.0
"""Time for lowering the bound for arbitrary sequences."""


def polished(best: Candidate, *, deadline: float = math.inf) -> Candidate:
    """The candidate with more exact noise; the same where that would take as long as the search.

    No step begins after the ``deadline``.
    """
    problem = best.model.target.problem
    if best.model.large:
        return best
    if problem.any_sequence:
        for _ in range(_MIXINGS if problem.releases <= _FEW_RELEASES else 0):
            if time.monotonic() < deadline:
                best = _with_worst_sequences(best, deadline)
        return _against_any_sequence(best, deadline)
    if best.model.target.m:
        best = _with_best_m(best, deadline)
    return _cheaper(best, best.model, tolerance=1e-5, steps=30, deadline=deadline)


def _cheaper(
    best: Candidate, model: NoiseModel, *, tolerance: float, steps: int, deadline: float
) -> Candidate:
    """The candidate, or a cheaper one that a descent from its noise finds for a model."""
    solution = optimize_noise(
        model, best.solution.x, tolerance=tolerance, steps=steps, deadline=deadline
    )
    return replace(best, solution=solution) if solution.messages < best.solution.messages else best


def _with_best_m(best: Candidate, deadline: float) -> Candidate:
    """Bursts with the m that is cheapest for this family, the same for all atoms."""
    for several in (
        [m for m in _SIZES if m > best.model.target.m],
        [m for m in reversed(_SIZES) if m < best.model.target.m],
    ):
        for m in several:
            if time.monotonic() >= deadline:
                return best
            model = replace(best.model, target=replace(best.model.target, m=m))
            found = _cheaper(best, model, tolerance=1e-4, steps=10, deadline=deadline)
            if found is best:
                break
            best = found
    return best


def _with_worst_sequences(best: Candidate, deadline: float) -> Candidate:
    """Optimize the noise against the changes that are worst together.

    Fixed sequences may reach only as much less than delta as adaptive ones exceed it now.
    """
    target = best.model.target
    problem = target.problem
    protocol = Protocol(best.model.configuration(best.solution.x), adjacency=problem.adjacency)
    changes = protocol.one_release
    kinds = kinds_of_changes(changes, problem.eps, problem.releases)
    reached = sequence_bounds(changes, problem.eps, problem.releases, gap=_ROUGH_GAP).upper
    target = replace(
        target,
        mixed=tuple(protocol.changes[q] for q in kinds),
        share=target.share * min(1.0, max(0.01, problem.delta / reached)),
    )
    model = NoiseModel(best.model.family, target)
    solution = optimize_noise(model, best.solution.x, tolerance=1e-4, steps=30, deadline=deadline)
    return replace(best, solution=solution)


def _against_any_sequence(best: Candidate, deadline: float) -> Candidate:
    """Lower the bound for arbitrary sequences itself."""
    deadline = min(deadline, time.monotonic() + _SECONDS)
    x = optimize_sequence_noise(best.model, best.solution.x, deadline=deadline)
    return replace(best, solution=replace(best.solution, x=x, messages=best.model.messages(x)))
