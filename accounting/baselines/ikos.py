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
from accounting.model.costs import bits_per_message, discrete_laplace_variance


def messages_needed(n: int, bits: float, sigma: float) -> int:
    """The number of messages m of every user, where ``bits`` is log2 q."""
    room = math.log2(n) - math.log2(math.e)
    if room <= 0:
        raise InvalidParameter(f"n = {n}: split and mix needs at least 3 users")
    return math.ceil(2 + (2 * sigma + bits) / room)


@dataclass(frozen=True)
class SplitAndMix(ForProblem):
    """The protocol with the smallest power of two q >= n max_value.

    The noise may push a sum near the ends out of the range; such a sum wraps around.
    """

    name = "IKOS split and mix"
    guarantee = "(eps, delta), Balle et al. 2020"

    @property
    def bits_per_message(self) -> int:
        return bits_per_message(self.problem.n * self.problem.max_value)

    @property
    def sigma(self) -> int:
        return math.ceil(math.log2((1 + math.exp(self.problem.eps)) / self.problem.delta))

    @property
    def mse(self) -> float:
        return discrete_laplace_variance(self.problem.eps / self.problem.max_value)

    @property
    def messages(self) -> float:
        return float(messages_needed(self.problem.n, self.bits_per_message, self.sigma))

    @property
    def bits(self) -> float:
        return self.messages * self.bits_per_message

    def run(self, values: IntArray, random: np.random.Generator) -> Run:
        n, m, q = len(values), int(self.messages), 1 << self.bits_per_message
        success = -math.expm1(-self.problem.eps / self.problem.max_value)
        share = random.negative_binomial(1 / n, success, (2, n))
        shares = random.integers(q, size=(n, m - 1))
        last = (values + share[0] - share[1] - shares.sum(axis=1)) % q
        sent = np.concatenate([shares.ravel(), last])
        random.shuffle(sent)
        total = int(np.sum(sent.astype(object)) % q)
        # a sum slightly below 0 or above n max_value has wrapped around: assume the nearer end
        above = (q - n * self.problem.max_value) // 2 + n * self.problem.max_value
        return Run(float(total - q if total > above else total), n * m)
