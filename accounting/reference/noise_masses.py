"""The masses of noises, by mpmath's intervals from the exact parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath
from mpmath.ctx_iv import MPIntervalContext

from accounting.base.deadline import check_time
from accounting.base.errors import InternalError, TooLarge, Undecided, required
from accounting.model.mechanism import Atom, ExactBurst, ExactCentral, ExactNoise, Mechanism

Interval = Any
"""A number of an mpmath interval context."""
MOST_MASSES = 1 << 17
"""Most masses of all noises together, which take some seconds."""
_GUARD_BITS = 64
"""Bits beyond those of the parameters, for the products of a long table."""
_MOST_TERMS = 1 << 20
"""Most terms of all sums over numbers of bursts, which take some seconds."""
_LARGEST = 1e9
"""Largest r or rate whose logarithms of masses have rounding errors below ``_ROUNDING``."""
_ROUNDING = 1e-3
_TRIED = 256
"""Numbers of bursts that are tried for the likeliest one."""
Noise = ExactCentral | ExactNoise | ExactBurst


@dataclass(frozen=True)
class NoiseMasses:
    """The masses of 0, 1, 2, ... copies of an atom.

    Attributes:
        atom: The messages of one copy.
        masses: Intervals around the probabilities of 0, 1, 2, ... copies.
        lost: A bound on the probability of more copies.
    """

    atom: Atom
    masses: tuple[Interval, ...]
    lost: Interval


def noise_masses(mechanism: Mechanism, tail: Any, bits: int) -> list[NoiseMasses]:
    """All noises of one coordinate: z+ on {+1}, z- on {-1}, and each part of z_s on its atom.

    Args:
        mechanism: The exact parameters.
        tail: Most probability that may lie beyond a table.
        bits: Relative accuracy of the masses.

    Raises:
        TooLarge: If there are more than ``MOST_MASSES``.
        Undecided: If the masses are less accurate than that.
    """
    found: list[NoiseMasses] = []
    most = MOST_MASSES
    for atom, parts in _noises(mechanism):
        for part in parts:
            if isinstance(part, ExactBurst):
                table = _bursts(atom, part, tail, bits, most)
            else:
                table = _negative_binomial(atom, part, tail, bits, most)
            found.append(table)
            most -= len(table.masses)
    return found


def least_lengths(mechanism: Mechanism, tail: Any) -> list[tuple[Atom, int]]:
    """For every noise, a number of masses that its table has at least, found within milliseconds.

    A table may not end at k as long as P(k copies) is ``tail`` or more.

    Args:
        mechanism: The exact parameters.
        tail: Most probability that may lie beyond a table.

    Raises:
        TooLarge: If ``noise_masses`` would find too many, after a while.
    """
    context = mpmath.MPContext()
    end = float(context.log(tail))
    found = []
    for atom, parts in _noises(mechanism):
        for part in parts:
            likely, start = _bursts_likely(part) if isinstance(part, ExactBurst) else _likely(part)
            found.append((atom, least := _last(likely, start, end)))
            if isinstance(part, ExactBurst):
                _check_bursts(atom, least - 1)
    _check(sum(least for _, least in found) <= MOST_MASSES)
    return found


def _last(likely: Callable[[int], float], start: float, end: float) -> int:
    """A number k + 1, perhaps the largest one, such that the probability of k is above the end; 1
    if none is found."""
    low, step = int(min(start, MOST_MASSES)), 1
    end += _ROUNDING
    if not likely(low) >= end:
        return 1
    while low <= MOST_MASSES and likely(low + step) >= end:
        low, step = low + step, 2 * step
    while step > 1:
        step //= 2
        if likely(low + step) >= end:
            low += step
    return low + 1


def _likely(noise: ExactCentral | ExactNoise) -> tuple[Callable[[int], float], float]:
    """The logarithm of the probability of k copies, in doubles, and the mean."""
    context = MPIntervalContext()
    context.prec = _GUARD_BITS + _size(noise)
    r, p = _parameters(context, noise)
    shape, log_p, log_rest, mean = (
        float(value.mid) for value in (r, context.log(p), context.log(1 - p), r * p / (1 - p))
    )

    def likely(k: int) -> float:
        return _log_mass(shape, k, log_p, log_rest) if 0 < shape < _LARGEST else -math.inf

    return likely, mean


def _bursts_likely(noise: ExactBurst) -> tuple[Callable[[int], float], float]:
    """A lower bound of the logarithm of the probability of k copies, in doubles: that of some
    number of bursts.  With the mean, or that of one burst if it is larger."""
    context = MPIntervalContext()
    context.prec = _GUARD_BITS + _size(noise)
    p, rate = (context.mpf(value.numerator) / value.denominator for value in (noise.p, noise.rate))
    log_p, log_rest, events, log_events, start = (
        float(value.mid)
        for value in (
            context.log(p),
            context.log(1 - p),
            rate,
            context.log(rate),
            max(rate, context.mpf(1)) * (1 + noise.m * p / (1 - p)),
        )
    )

    def likely(k: int) -> float:
        if k == 0 or events > _LARGEST:
            return -events
        tried = {1 + i * (k - 1) // _TRIED for i in range(_TRIED + 1)}
        return max(
            n * log_events
            - events
            - math.lgamma(n + 1)
            + _log_mass(noise.m * n, k - n, log_p, log_rest)
            for n in tried
        )

    return likely, start


def _log_mass(r: float, k: int, log_p: float, log_rest: float) -> float:
    """The logarithm of the probability that NB(r, p) is k."""
    ways = math.lgamma(k + r) - math.lgamma(r) - math.lgamma(k + 1)
    return ways + r * log_rest + k * log_p


def _noises(mechanism: Mechanism) -> Iterator[tuple[Atom, tuple[Noise, ...]]]:
    yield (1,), (mechanism.central,)
    yield (-1,), (mechanism.central,)
    yield from mechanism.atoms.items()


def _negative_binomial(
    atom: Atom, noise: ExactCentral | ExactNoise, tail: Any, bits: int, most: int
) -> NoiseMasses:
    context = MPIntervalContext()
    context.prec = bits + _GUARD_BITS + _size(noise)
    r, p = _parameters(context, noise)
    end = context.mpf(tail)
    masses = [context.exp(r * context.log(1 - p))]
    while True:
        k = len(masses)
        ratio = p * (k - 1 + r) / k
        if masses[-1].b < end:
            # later ratios of neighbors lie between this one and p
            largest = max(ratio.b, p.b)
            if largest < 1 and (lost := (masses[-1] * largest / (1 - largest)).b) < end:
                break
        _check(k < most)
        if k % 1024 == 0:
            check_time()
        masses.append(masses[-1] * ratio)
    # relative widths grow from mass to mass
    if not masses[-1].delta * 2**bits < masses[-1].a:
        raise Undecided(f"the noise of {list(atom)!s:.60} is not known to {bits} bits")
    return NoiseMasses(atom, tuple(masses), lost)


def _check(few: bool) -> None:
    if not few:
        raise TooLarge(
            f"the noises have more than {MOST_MASSES:,} outcomes that matter, without their "
            "combinations, too many for --tier reference: ask for --tier ball"
        )


def _check_bursts(atom: Atom, copies: int) -> None:
    if copies**2 >= 2 * _MOST_TERMS:
        raise TooLarge(
            f"the bursts of atom {list(atom)!s:.60} have more than {copies:,} outcomes that "
            "matter, too many for --tier reference: ask for --tier ball"
        )


def _bursts(atom: Atom, noise: ExactBurst, tail: Any, bits: int, most: int) -> NoiseMasses:
    """By the definition: k copies are n bursts, n = 0..k, with k - n copies beyond the first of
    each, which are NB(m n, p).  What is beyond the table is what the masses lack to 1."""
    context = MPIntervalContext()
    end = context.mpf(tail)
    context.prec = bits + _GUARD_BITS + _size(noise) + max(0, -int(context.log(end, 2).a))
    p, rate = (context.mpf(value.numerator) / value.denominator for value in (noise.p, noise.rate))
    per_burst = rate * (1 - p) ** noise.m
    # row[n] is the mass of n bursts with k copies together
    row = [context.exp(-rate)]
    masses, whole = [row[0]], row[0]
    while not (lost := (1 - whole).b) < end:
        k = len(masses)
        _check(k < most)
        _check_bursts(atom, k)
        check_time()
        # one copy more: C(x + s - 1, x) grows by (x + s - 1) / x, with s = m n and x = k - n
        row = [
            mass * p * (k - n + noise.m * n - 1) / (k - n) if n else mass * 0
            for n, mass in enumerate(row)
        ] + [context.exp(-rate) * per_burst**k / context.mpf(math.factorial(k))]
        masses.append(sum(row, context.mpf(0)))
        whole += masses[-1]
    if not all(mass.delta * 2**bits < mass.a for mass in masses):
        raise Undecided(f"the noise of {list(atom)!s:.60} is not known to {bits} bits")
    return NoiseMasses(atom, tuple(masses), lost)


def _parameters(
    context: MPIntervalContext, noise: ExactCentral | ExactNoise
) -> tuple[Interval, Interval]:
    """r and p of the negative binomial."""

    def exact(value: Fraction) -> Interval:
        return context.mpf(value.numerator) / value.denominator

    if isinstance(noise, ExactNoise):
        fraction, p = Fraction(1), exact(noise.p)
    elif noise.p is not None:
        fraction, p = noise.fraction, exact(noise.p)
    else:
        step = required(noise.step, "the step of the central noise")
        fraction, p = noise.fraction, context.exp(-exact(step))
    if noise.rate is not None:
        return -exact(fraction * noise.rate) / context.log(1 - p), p
    if isinstance(noise, ExactCentral):
        return exact(fraction), p
    return exact(required(noise.r, "the parameter r of a noise without a rate")), p


def _size(noise: Noise) -> int:
    """Bits that 1 - p and its logarithm may cost, where p is close to 0 or 1."""
    if noise.p is not None:
        return noise.p.denominator.bit_length()
    if not isinstance(noise, ExactCentral):
        raise InternalError(f"{noise!r:.100} has no p")
    step = required(noise.step, "the step of the central noise")
    return step.denominator.bit_length() + 2 * int(step)
