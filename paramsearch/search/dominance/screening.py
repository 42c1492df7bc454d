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

_EXPONENT = 5 / 3
"""Exponent of the updates, in units of (q + 1) / q, with which every update raises the bound;
larger ones converge faster.  Rule of thumb."""
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
    """Pairs (j, k), j > k, and what they weigh, in all 1."""

    pairs: IntArray
    weights: FloatArray

    @staticmethod
    def even(top: int) -> Multipliers:
        """The pairs with 0 and with ``top``, all alike: where the largest changes are."""
        inputs = np.arange(1, top + 1)
        low = np.stack([inputs, np.zeros_like(inputs)], axis=1)
        high = np.stack([np.full(top - 1, top), inputs[:-1]], axis=1)
        count = 2 * top - 1
        return Multipliers(np.concatenate([low, high]), np.full(count, 1 / count))


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
    from paramsearch.search.dominance.dominance_kernels import update_multipliers

    norm, count = program.norm, program.columns.count
    start = Multipliers.even(count - 1) if near is None else near
    pairs, weights = start.pairs, start.weights.copy()
    exponent = _EXPONENT * (norm + 1) / norm
    u = np.empty(len(program.weight))
    best = Dominance(u, math.inf, 0.0, pairs, weights)
    for _ in range(rounds):
        left = np.empty(len(pairs))
        lower, largest = update_multipliers(
            *program.rows(pairs),
            program.weight,
            norm,
            exponent,
            _STEPS,
            0.3 * gap,
            weights,
            u,
            left,
        )
        kept = (weights > _NEGLIGIBLE / len(pairs)) | (left > _NEAR * largest)
        pairs, weights = pairs[kept], weights[kept]
        found, overall = violated_pairs(program, u)
        scale = max(overall, largest)
        value = program.cost(u / scale)
        if value < best.value:
            best = Dominance((scale / u) ** (1 / norm), value, best.lower, pairs, weights)
        if lower > best.lower:
            best = Dominance(best.t_prime, best.value, lower, pairs, weights)
        if best.gap <= gap or lower > give_up:
            break
        known = np.isin(found @ [count, 1], pairs @ [count, 1])
        new = found[~known]
        if len(new):
            pairs = np.concatenate([pairs, new])
            weights = np.append(
                weights * (1 - _NEW_SHARE), np.full(len(new), _NEW_SHARE / len(new))
            )
        weights /= weights.sum()
    return best


def violated_pairs(program: DominanceProgram, u: FloatArray) -> tuple[IntArray, float]:
    """The worst pairs of all columns whose left sides exceed 1, and the largest left side."""
    from paramsearch.search.dominance.dominance_kernels import worst_pairs

    columns, n = program.columns, program.columns.count
    pieces = 4 * cores() if n >= _THREADS_FROM and cores() > 1 else 1
    # column j has j pairs: square roots give pieces of equal work
    edges = [round(n * math.sqrt(i / pieces)) for i in range(pieces + 1)]
    partner, largest = np.zeros((pieces, 2, n), np.int64), np.zeros((pieces, 2, n))
    sparse = columns.start, columns.atom, columns.entry, columns.unit
    constraints = *sparse, program.reach, program.norm, program.inverse

    def work(a: int, b: int) -> None:
        for i in range(a, b):
            worst_pairs(*constraints, u, edges[i], edges[i + 1], partner[i], largest[i])

    if pieces == 1:
        work(0, 1)
    else:
        in_chunks(work, pieces)
    best = largest.argmax(axis=0)
    sides = np.arange(2)[:, None], np.arange(n)
    left, other = largest[best, *sides], partner[best, *sides]
    j, k = np.nonzero(left[0] > 1)[0], np.nonzero(left[1] > 1)[0]
    keys = np.concatenate([j * n + other[0, j], other[1, k] * n + k])
    return np.stack(np.divmod(np.unique(keys), n), axis=1), float(left.max())


def dominance(family: Family, *, gap: float = 1e-3, rounds: int = _MANY_ROUNDS) -> Dominance:
    """The paper's program, to a relative duality gap of ``gap``; t' in the order of the atoms.

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
