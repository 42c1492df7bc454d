"""The dominance program by multiplicative updates: fractions of a millisecond for small families.

Multipliers v on a set of pairs are multiplied by powers of their left sides (A u)_p, which keeps
them on the simplex after division by their sum and raises the lower bound; a pass over all pairs,
which stores none of them, finds what is violated, and the worst pair of every column joins the set.
Multipliers of a similar family are a good start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from accounting.base.errors import Undecided
from accounting.base.threads import cores, in_chunks
from accounting.model.family import UNIT, Family
from paramsearch.search.dominance.program import Dominance, DominanceProgram, paper_program

_STEPS = 60
"""Updates between two passes over all pairs."""
_ROUNDS, _MANY_ROUNDS = 60, 400
"""Largest number of passes, while screening and for the paper's program."""
_NEW_SHARE = 0.05
"""Share of the multipliers that the pairs of one pass get."""
_NEGLIGIBLE = 1e-7
"""Multiplier, relative to the average, below which a pair is dropped."""
_NEAR = 0.97
"""Left side, relative to the largest, from which a pair is kept all the same."""
_THREADS_FROM = 400
"""Inputs from which a pass over all pairs takes several threads."""


@dataclass(frozen=True)
class Multipliers:
    """Multipliers of pairs (j, k), j > k, with sum 1."""

    pairs: IntArray
    weights: FloatArray

    @staticmethod
    def even(program: DominanceProgram) -> Multipliers:
        """Give equal multipliers to the pairs with 0 and with the largest input, where changes are
        largest."""
        top = program.columns.count - 1
        inputs = np.arange(1, top + 1)
        low = np.stack([inputs, np.zeros_like(inputs)], axis=1)
        others = inputs[: program.inverse.shape[1] - 1]
        high = np.stack([np.full(len(others), top), others], axis=1)[: top - 1]
        pairs = np.concatenate([low, high])
        return Multipliers(pairs, np.full(len(pairs), 1 / len(pairs)))


def screen(
    program: DominanceProgram,
    near: Multipliers | None = None,
    *,
    gap: float = 1e-3,
    give_up: float = math.inf,
    rounds: int = _ROUNDS,
) -> Dominance:
    """Solve a program to a relative duality gap.

    Args:
        program: The program.
        near: Multipliers to begin with, such as those of a similar family.
        gap: The relative gap; what is reached in a number of rounds may be wider.
        give_up: Stop as soon as the value is known to be larger than this.
        rounds: Largest number of passes over all pairs.
    """
    from paramsearch.search.dominance.dominance_kernels import settled, with_violated

    norm = program.norm
    start = Multipliers.even(program) if near is None else near
    pairs, weights = start.pairs, start.weights
    u = np.empty(len(program.weight))
    best = Dominance(u, math.inf, 0.0, pairs, weights)
    settings = program.weight, _STEPS, 0.3 * gap, _NEGLIGIBLE, _NEAR
    for _ in range(rounds):
        lower, largest, pairs, weights = settled(*program.constraints, *settings, pairs, weights, u)
        worst = worst_by_column(program, u)
        scale = max(worst.largest, largest)
        value = program.cost(u / scale)
        if value < best.value:
            best = Dominance((scale / u) ** (1 / norm), value, best.lower, pairs, weights)
        if lower > best.lower:
            best = Dominance(best.t_prime, best.value, lower, pairs, weights)
        if best.gap <= gap or lower > give_up:
            break
        pairs, weights = with_violated(pairs, weights, worst.partner, worst.left, _NEW_SHARE)
    return best


@dataclass(frozen=True)
class WorstByColumn:
    """The largest left side of each column j among the pairs with smaller inputs (row 0) and with
    larger ones (row 1), and the partner that attains it."""

    partner: IntArray
    left: FloatArray

    @property
    def largest(self) -> float:
        return float(self.left.max())

    def violated(self) -> IntArray:
        """List the pairs (j, k), j > k, among these whose left sides exceed 1."""
        (j,), (k,) = np.nonzero(self.left[0] > 1), np.nonzero(self.left[1] > 1)
        pairs = [np.stack([j, self.partner[0, j]]), np.stack([self.partner[1, k], k])]
        return np.unique(np.concatenate(pairs, axis=1).T, axis=0)


def worst_by_column(program: DominanceProgram, u: FloatArray) -> WorstByColumn:
    """Find the largest left sides in one pass over all pairs of inputs."""
    from paramsearch.search.dominance.dominance_kernels import worst_pairs

    n = program.columns.count
    pieces = 4 * cores() if n >= _THREADS_FROM and cores() > 1 else 1
    # column j has j pairs: square roots give pieces of equal work
    edges = [round(n * math.sqrt(i / pieces)) for i in range(pieces + 1)]
    partner, left = np.zeros((pieces, 2, n), np.int64), np.zeros((pieces, 2, n))

    def work(a: int, b: int) -> None:
        for i in range(a, b):
            worst_pairs(*program.constraints, u, edges[i], edges[i + 1], partner[i], left[i])

    if pieces == 1:
        work(0, 1)
        return WorstByColumn(partner[0], left[0])
    in_chunks(work, pieces)
    best = left.argmax(axis=0)
    sides = np.arange(2)[:, None], np.arange(n)
    return WorstByColumn(partner[best, *sides], left[best, *sides])


def dominance(family: Family, *, gap: float = 1e-3, rounds: int = _MANY_ROUNDS) -> Dominance:
    """Solve the paper's program to a relative duality gap; t' is in the order of the atoms.

    Raises:
        Undecided: If the gap is out of reach.
    """
    if family.max_value == 1:
        none = np.zeros((0, 2), np.int64)
        return Dominance(np.zeros(len(family.atoms)), 0.0, 0.0, none, np.zeros(0))
    found = screen(paper_program(family), gap=gap, rounds=rounds)
    if found.gap > gap:
        raise Undecided(
            f"the dominance program stopped at a duality gap of {found.gap:.1e}; {gap:g} was asked "
            "for"
        )
    unit = family.atoms.index(UNIT)
    in_order = np.insert(found.t_prime[1:], unit, found.t_prime[0])
    return replace(found, t_prime=in_order)
