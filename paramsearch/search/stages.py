"""The two stages of the search for one family, one at a time, for people who look into the
programs.

Stage 1, ``dominance_program``, is convex: it finds the dominance vector t' that costs the fewest
messages, by cvxpy, with multipliers and a duality gap.  Stage 2, ``optimize_noise``, is local: it
finds (r, p) of every atom for which the estimates of delta of all pairs of inputs meet the claim.
The whole search (``paramsearch.generate``) runs both for thousands of families, with solvers of its
own for the first stage, and ends in a proof; nothing here is one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from accounting.base.arrays import FloatArray
from accounting.base.enclosure import Summarized, counted
from accounting.base.errors import InvalidParameter
from accounting.model.configuration import Proposal
from accounting.model.costs import central_by_fraction, largest_central_of
from accounting.model.family import UNIT, Atom, Family
from accounting.model.laws.negative_binomial import NegativeBinomial
from accounting.model.problem import Problem
from paramsearch.search.dominance.calibration import Calibration
from paramsearch.search.dominance.program import InputColumns, paper_program
from paramsearch.search.noise import noise_optimizer
from paramsearch.search.noise.noise_model import NoiseModel
from paramsearch.search.target import Target

_SMALLEST_MEAN = 30.0
"""Mean, in the unit of r, that a noise has at least where t' asks for next to nothing."""


@dataclass(frozen=True, repr=False)
class DominanceVector(Summarized):
    """A solution of the dominance program of a family, in floating point.

    Attributes:
        t_prime: The entry t'_s of the dominance vector for every atom s.
        multipliers: How much every active pair of inputs (j, k), j > k, weighs; together 1.
        value: The cost of ``t_prime``: the sum of |s| t'_s in the paper's program, expected noise
            messages of the atoms in the program of a problem.
        lower: No dominance vector costs less, which the multipliers show.
    """

    t_prime: Mapping[Atom, float]
    multipliers: Mapping[tuple[int, int], float]
    value: float
    lower: float

    @property
    def gap(self) -> float:
        """The relative duality gap."""
        return self.value / self.lower - 1 if self.lower else 0.0

    def summary(self) -> tuple[str, str]:
        """Return the cost, and what shows that nothing costs less."""
        atoms, pairs = counted(len(self.t_prime), "atom"), counted(len(self.multipliers), "pair")
        first = f"{atoms}, value {self.value:,.6g}"
        return first, f"{pairs} of inputs active, duality gap {self.gap:.1e}"


@dataclass(frozen=True, repr=False)
class OptimizedNoise(Summarized):
    """A local optimum of the noise of a family, according to estimates.

    Attributes:
        noise: The law of the noise on every atom.
        messages: Expected noise messages of all users in one coordinate, with the central noise.
        multipliers: How many messages one unit of log delta of every active change is worth.
        proposal: The configuration, ready to be audited or certified.  Estimates meet delta within
            a few thousandths, so a certificate for delta needs noise for a slightly smaller one.
    """

    noise: Mapping[Atom, NegativeBinomial]
    messages: float
    multipliers: Mapping[str, float]
    proposal: Proposal

    def summary(self) -> tuple[str, str]:
        """Return the cost, and the worst changes."""
        worst = sorted(self.multipliers, key=lambda change: -self.multipliers[change])
        first = f"{counted(len(self.noise), 'atom')}, {self.messages:,.1f} noise messages"
        return first, f"{counted(len(worst), 'active change')}: {'; '.join(worst[:3])}"


def dominance_program(
    family: Family,
    problem: Problem | None = None,
    *,
    central_fraction: float = 0.9,
    gap: float = 1e-6,
) -> DominanceVector:
    """Find the cheapest dominance vector of a family, by cvxpy.

    Without a problem, this is the paper's program: minimize the sum of |s| t'_s such that the sum
    of |a_s| / t'_s is at most 1 for every difference a of two columns of the right inverse.  With a
    problem, it is the program that ranks families in the search: the second norm of a_s / t'_s is
    at most what eps leaves for that difference, over a typical radius.

    Args:
        family: The atoms.
        problem: What the noise is for; None means the paper's program.
        central_fraction: The share of eps that the central noise uses, for a problem.
        gap: Largest relative duality gap.

    Returns:
        The vector, keyed by atom, with the multipliers that prove its gap.

    Raises:
        InvalidParameter: If the problem is about another max_value, or has a number outside its
            domain.
        Undecided: If the gap is out of reach.

    >>> from accounting import Family
    >>> found = dominance_program(Family(2, ((-1, 1), (-1, -1, 2))))
    >>> {atom: round(t, 3) for atom, t in found.t_prime.items()}
    {(-1, 1): 3.732, (-1, -1, 2): 2.155}
    """
    from paramsearch.search.dominance.exact import solve_exactly

    if problem is None:
        if family.max_value == 1:  # the theorem's {-1, +1} alone, which t' says nothing about
            return DominanceVector(dict.fromkeys(family.atoms, 0.0), {}, 0.0, 0.0)
        program = paper_program(family)
    else:
        target = _target(family, problem, central_fraction)
        calibration = Calibration.typical(target)
        sizes = np.array([len(elements) for elements in _unit_first(family)], float)
        program = calibration.program(target, InputColumns.of(family), sizes)
    found = solve_exactly(program, gap=gap)
    pairs = [(int(j), int(k)) for j, k in found.pairs]
    weights = dict(zip(pairs, found.multipliers.tolist(), strict=True))
    t_prime = dict(zip(_unit_first(family), found.t_prime.tolist(), strict=True))
    return DominanceVector(
        t_prime={elements: t_prime[elements] for elements in family.atoms},
        multipliers={pair: weight for pair, weight in weights.items() if weight > 0},
        value=found.value,
        lower=found.lower,
    )


def optimize_noise(
    family: Family,
    problem: Problem,
    *,
    start: DominanceVector | Mapping[Atom, NegativeBinomial] | None = None,
    central_fraction: float = 0.9,
) -> OptimizedNoise:
    """Find the negative binomials of a family with the fewest messages, by local search.

    Args:
        family: The atoms.
        problem: What the noise is for.
        start: Noise to begin with, or the dominance vector of this problem; by default a guess.
        central_fraction: The share of eps that the central noise uses.

    Returns:
        The noise of every atom, feasible according to estimates.

    Raises:
        InvalidParameter: If the problem is about another max_value, or ``start`` misses an atom.
        TooLarge: If the tables of the noise would not fit into memory.

    >>> from accounting import Problem, ones
    >>> found = optimize_noise(ones(1), Problem(n=1000, eps=1.0, delta=1e-6, max_value=1))
    >>> 590 < found.messages < 610
    True
    """
    target = _target(family, problem, central_fraction)
    model = NoiseModel(family, target)
    x = model.first_guess() if start is None else _log_noise(family, target, start)
    found = noise_optimizer.optimize_noise(model, x)
    mean, r = np.exp(found.x).tolist()
    changes = [" then ".join(map(str, found.model.changes[int(i)])) for i in found.pairs]
    largest = max(found.multipliers.max(initial=0.0), 1e-300)
    proposal = found.model.proposal(found.x)
    return OptimizedNoise(
        noise={
            elements: NegativeBinomial.from_mean(mean=m, r=shape)
            for elements, m, shape in zip(family.atoms, mean, r, strict=True)
        },
        messages=found.messages,
        multipliers={
            change: weight
            for change, weight in zip(changes, found.multipliers.tolist(), strict=True)
            if weight > 1e-6 * largest
        },
        proposal=proposal,
    )


def _target(family: Family, problem: Problem, central_fraction: float) -> Target:
    """Return the problem with the central noise that uses this share of eps."""
    if problem.max_value != family.max_value:
        raise InvalidParameter(
            f"the problem has max_value = {problem.max_value:,}, and the family is for "
            f"{family.max_value:,}: build the family for the problem's"
        )
    return Target(problem, central_by_fraction(central_fraction, largest_central_of(problem)))


def _unit_first(family: Family) -> list[Atom]:
    """List the atoms in the order of a program: {-1, +1} first."""
    return [UNIT, *(elements for elements in family.atoms if elements != UNIT)]


def _log_noise(
    family: Family, target: Target, start: DominanceVector | Mapping[Atom, NegativeBinomial]
) -> FloatArray:
    """Return (log mean, log r) of every atom."""
    if isinstance(start, DominanceVector):
        t_prime = [start.t_prime[elements] for elements in _unit_first(family)]
        r = Calibration.typical(target).r(len(t_prime))
        mean = np.sqrt(r) * np.hypot(t_prime, _SMALLEST_MEAN / math.sqrt(float(r[-1])))
        by_atom = dict(zip(_unit_first(family), zip(mean, r, strict=True), strict=True))
    else:
        by_atom = {elements: (noise.mean, noise.r) for elements, noise in start.items()}
    missing = [elements for elements in family.atoms if elements not in by_atom]
    if missing:
        raise InvalidParameter(f"start has no noise for the atom {list(missing[0])}: give it some")
    return np.log([by_atom[elements] for elements in family.atoms]).T
