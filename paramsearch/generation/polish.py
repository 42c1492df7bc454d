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
from paramsearch.search.noise.burst_sizes import with_best_sizes
from paramsearch.search.noise.noise_model import NoiseModel
from paramsearch.search.noise.noise_optimizer import optimize_noise
from paramsearch.search.noise.sequence_noise import optimize_sequence_noise

_MIXINGS = 3
"""Number of times that the changes in the sequences are chosen again."""
_ROUGH_GAP = 0.02
"""Relative gap of the bounds that say by how much adaptive sequences exceed fixed ones."""
_FEW_RELEASES = 3
"""Largest number of releases for which fixed sequences guide the last steps as well."""
_SIZE_SECONDS = 60.0
"""Time for choosing the m of bursts atom by atom, which saves less than a per cent."""
_SECONDS = 120.0
"""Time for lowering the bound for arbitrary sequences."""


def polished(best: Candidate, *, deadline: float = math.inf) -> Candidate:
    """Find more exact noise for a candidate; return it unchanged where that would take as long as
    the search.

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
    solution = best.solution
    if best.model.target.m:
        ends = min(deadline, time.monotonic() + _SIZE_SECONDS)
        solution = with_best_sizes(solution, deadline=ends)
    last = optimize_noise(solution.model, solution.x, tolerance=1e-5, steps=30, deadline=deadline)
    return replace(best, solution=last if last.messages < solution.messages else solution)


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
    model = NoiseModel(best.model.family, target, sizes=best.model.sizes)
    solution = optimize_noise(model, best.solution.x, tolerance=1e-4, steps=30, deadline=deadline)
    return replace(best, solution=solution)


def _against_any_sequence(best: Candidate, deadline: float) -> Candidate:
    """Lower the bound for arbitrary sequences itself."""
    deadline = min(deadline, time.monotonic() + _SECONDS)
    x = optimize_sequence_noise(best.model, best.solution.x, deadline=deadline)
    return replace(best, solution=replace(best.solution, x=x, messages=best.model.messages(x)))
