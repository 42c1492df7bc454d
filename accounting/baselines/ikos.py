"""Split and mix (Ishai, Kushilevitz, Ostrovsky, Sahai 2006) with noise from every user.

Each user adds a share of the noise, a difference of two NB(1/n, e^{-eps/max_value}) numbers, so
that the noise of the sum is DLap(eps / max_value), and splits the result into m random numbers that
add up to it modulo q.  Balle, Bell, Gascon and Nissim (2020, "Private Summation in the
Multi-Message Shuffle Model") prove that the shuffled numbers reveal no more than the sum, up to a
statistical distance of 2^-sigma, if

    m >= 2 + (2 sigma + log2 q) / (log2 n - log2 e).

The tests check these constants against their example (32-bit numbers, n = 10^4, sigma = 40: 12
messages).  A view within 2^-sigma of an eps-private sum is (eps, (1 + e^eps) 2^-sigma)-private,
hence sigma = ceil(log2((1 + e^eps) / delta)).

A vector takes one such sum for each coordinate, of which a change touches two (under zero-out one),
and T releases take
T times as many.  If c sums change, the views of those are within c 2^-sigma of what the sums
reveal, the others do not depend on the change, and sigma grows by log2 c; where the noise of the
sums uses delta / 2, the other half is left.  If only some users are honest, the shares of the
others are known: the mixing has to hide among the honest ones, whose noise has to suffice.

The analysis of Ghazi, Manurangsi, Pagh and Velingker (2020) has the same order of m; its constants
are not stated explicitly enough to be used here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from accounting.base.arrays import IntArray
from accounting.base.errors import InvalidParameter
from accounting.baselines.interface import ForProblem, Run
from accounting.model.costs import PURE_CHANGES, bits_per_message, discrete_laplace_variance


def messages_needed(n: int, bits: float, sigma: float) -> int:
    """Return the number of messages m of every user, where ``bits`` is log2 q."""
    room = math.log2(n) - math.log2(math.e)
    if room <= 0:
        raise InvalidParameter(f"n = {n}: split and mix needs at least 3 users")
    return math.ceil(2 + (2 * sigma + bits) / room)


@dataclass(frozen=True)
class SplitAndMix(ForProblem):
    """The protocol with the smallest power of two q >= n max_value, in each coordinate.

    The noise may push a sum near the ends out of the range; such a sum wraps around.
    """

    name = "IKOS split and mix"

    @property
    def guarantee(self) -> str:
        composed = "" if self.changes <= PURE_CHANGES else ", composed numerically"
        return f"(eps, delta), Balle et al. 2020{composed}"

    @property
    def bits_per_number(self) -> int:
        """The number of bits of a message, log2 q."""
        return bits_per_message(self.problem.n * self.problem.max_value)

    @property
    def sigma(self) -> int:
        pure = self.changes <= PURE_CHANGES
        delta = self.problem.delta if pure else self.problem.delta / 2
        return math.ceil(math.log2(self.changes * (1 + math.exp(self.problem.eps)) / delta))

    @property
    def mse(self) -> float:
        return discrete_laplace_variance(self.central_step) / self.problem.honest

    @property
    def messages(self) -> float:
        each = messages_needed(self.honest_users, self.bits_per_number, self.sigma)
        return float(each * self.problem.dimension)

    @property
    def bits(self) -> float:
        coordinate = bits_per_message(self.problem.dimension) if self.problem.dimension > 1 else 0
        return self.messages * (self.bits_per_number + coordinate)

    def run(self, values: IntArray, random: np.random.Generator) -> Run:
        n, m, q = len(values), int(self.messages), 1 << self.bits_per_number
        success = -math.expm1(-self.central_step)
        share = random.negative_binomial(1 / n, success, (2, n))
        shares = random.integers(q, size=(n, m - 1))
        last = (values + share[0] - share[1] - shares.sum(axis=1)) % q
        sent = np.concatenate([shares.ravel(), last])
        random.shuffle(sent)
        total = int(np.sum(sent.astype(object)) % q)
        # a sum slightly below 0 or above n max_value has wrapped around: assume the nearer end
        above = (q - n * self.problem.max_value) // 2 + n * self.problem.max_value
        return Run(float(total - q if total > above else total), n * m)
