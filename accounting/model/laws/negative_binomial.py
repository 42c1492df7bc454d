"""The negative binomial NB(r, p): mass C(k + r - 1, k) (1 - p)^r p^k at k = 0, 1, 2, ...

Error bound: every function below returns the double nearest to the true value or one of its two
neighbors, that is, a relative error of at most 2^-52, for all doubles r and p in the domain (the
range that matters here is 1e-3 <= r <= 1e5, 1e-9 <= p <= 1 - 1e-9).  This is proven by ball
arithmetic (python-flint): the precision rises until the ball is small enough.  Probabilities below
the smallest double are 0.0 in pmf, cdf and sf; log_pmf has no such limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accounting.base.arrays import UNIT_ROUNDOFF
from accounting.base.deadline import check_time
from accounting.base.errors import InvalidParameter, Undecided
from accounting.base.validation import positive, probability, whole

if TYPE_CHECKING:
    import numpy as np
    from flint import arb

_PRECISIONS = (128, 192, 256, 512, 1024)
"""Bits of working precision that are tried one after the other."""
_SERIES_UP_TO_R = 1000.0
"""Largest r for which python-flint's incomplete beta function is used; a rule of thumb."""
_LONGEST_PRODUCT = 100_000
"""Largest shift whose loss is bounded by a product with as many terms."""


@dataclass(frozen=True)
class NegativeBinomial:
    """The law NB(r, p), whose parameters are exactly these doubles.

    Args:
        r: The parameter r > 0, not necessarily an integer.
        p: The parameter p, strictly between 0 and 1.

    Raises:
        InvalidParameter: If r or p is outside its domain.

    >>> noise = NegativeBinomial(r=4.0, p=0.75)
    >>> noise.mean, noise.variance
    (12.0, 48.0)
    """

    r: float
    p: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "r", positive("r", self.r))
        object.__setattr__(self, "p", probability("p", self.p))

    @staticmethod
    def from_mean(*, mean: float, r: float) -> NegativeBinomial:
        """Return the law with this mean and this r.

        Args:
            mean: The mean r p / (1 - p), greater than 0.
            r: The parameter r > 0.

        Returns:
            NB(r, mean / (mean + r)), with p rounded to a double.

        Raises:
            InvalidParameter: If the mean or r is outside its domain.

        >>> NegativeBinomial.from_mean(mean=12.0, r=4.0)
        NegativeBinomial(r=4.0, p=0.75)
        """
        mean, r = positive("mean", mean), positive("r", r)
        return NegativeBinomial(r=r, p=mean / (mean + r))

    @property
    def mean(self) -> float:
        return self.r * self.p / (1 - self.p)

    @property
    def variance(self) -> float:
        return self.r * self.p / (1 - self.p) ** 2

    def times(self, factor: float) -> NegativeBinomial:
        """Return the noise of this multiple of the users."""
        return NegativeBinomial(self.r * factor, self.p)

    def sample(self, random: np.random.Generator) -> int:
        """Draw a number for simulations: it protects nobody."""
        return int(random.negative_binomial(self.r, 1 - self.p))

    @property
    def order(self) -> int:
        """Number of sums that the recurrence of the masses keeps."""
        return 1

    @property
    def weights(self) -> tuple[float, float]:
        """Weights of the recurrence of the masses (evaluator/floating_point.md, F1)."""
        return self.r * self.p, 0.0

    @property
    def extra_roundings(self) -> float:
        """By how much more than 4u + u per part an error of the masses grows per outcome."""
        return 0.0

    @property
    def log_concave(self) -> bool:
        """Whether r is at least 1 (evaluator/covered_pairs.md, Lemma 1)."""
        return self.r >= 1

    def check_range(self) -> None:
        """Refuse what the evaluators cannot tabulate.

        Raises:
            InvalidParameter: If they cannot.
        """
        if not (1e-9 <= self.r <= 1e9 and self.p >= 1e-30):
            raise InvalidParameter(
                f"{self!r} is outside the range of the evaluators: 1e-9 <= r <= 1e9, p >= 1e-30"
            )

    def log_moment(self, log_t: float, log_rest: float) -> tuple[float, float]:
        """(log E t^Z, a bound on the size of the numbers that its rounding errors are relative to),
        given log t and log(1 - p t)."""
        right = math.log1p(-self.p)
        return self.r * (right - log_rest), self.r * (abs(log_rest) + abs(right) + 8)

    def tilted_mean(self, log_t: float, log_rest: float) -> float:
        """Estimate the mean under the weights t^Z."""
        return self.r * self.p * math.exp(log_t - log_rest)

    def largest_loss(self, shift: int) -> float:
        """An upper bound on sup_z log f(z) - log f(z + shift), for a positive shift and the exact
        p (evaluator/exact_view.md, Lemma 3); infinite where the bound would take too long."""
        check_time()
        terms = [-shift * math.log(self.p)]
        if self.r < 1 and shift > _LONGEST_PRODUCT:
            return math.inf
        if self.r < 1:
            terms += [math.log((i + 1) / (i + self.r)) for i in range(shift)]
        size = math.fsum(abs(term) for term in terms)
        return math.fsum(terms) + (8 + 2 * shift) * UNIT_ROUNDOFF * (1 + size)

    def pmf(self, k: int) -> float:
        """The probability Pr[Z = k], which is 0 for k < 0.

        >>> NegativeBinomial(1.0, 0.5).pmf(2)
        0.125
        """
        return self._rounded(lambda: self._log_mass(_index(k)).exp()) if k >= 0 else 0.0

    def log_pmf(self, k: int) -> float:
        """The logarithm of Pr[Z = k], which is minus infinity for k < 0.

        >>> NegativeBinomial(1.0, 0.5).log_pmf(0)
        -0.6931471805599453
        """
        return self._rounded(lambda: self._log_mass(_index(k))) if k >= 0 else -math.inf

    def log_ratio(self, k: int, shift: int) -> float:
        """The privacy loss log f(k) - log f(k + shift) of the outcome k.

        Args:
            k: The outcome, at least 0.
            shift: By how much the other law is shifted.

        Returns:
            The loss; infinity if k + shift < 0.

        Raises:
            InvalidParameter: If k is negative.

        >>> NegativeBinomial(1.0, 0.5).log_ratio(3, shift=1)
        0.6931471805599453
        """
        k = _index(k)
        if k + shift < 0:
            return math.inf
        return 0.0 if shift == 0 else self._rounded(lambda: self._log_ratio(k, shift))

    def sf(self, k: int) -> float:
        """The upper tail Pr[Z >= k], the regularized incomplete beta function I_p(k, r).

        Unlike in scipy, k itself is included.

        >>> NegativeBinomial(1.0, 0.5).sf(2)
        0.25
        """
        if k <= 0:
            return 1.0
        return self._rounded(lambda: self._tail(_index(k), upper=True))

    def cdf(self, k: int) -> float:
        """The lower tail Pr[Z <= k], accurate even if it is tiny.

        >>> NegativeBinomial(1.0, 0.5).cdf(2)
        0.875
        """
        if k < 0:
            return 0.0
        return self._rounded(lambda: self._tail(_index(k) + 1, upper=False))

    def _tail(self, k: int, *, upper: bool) -> arb:
        """Pr[Z >= k], or Pr[Z < k], for k >= 1; the smaller of the two is computed directly."""
        small_side_is_upper = k > self.mean
        if small_side_is_upper:
            fast = self.p * max(1.0, (k + self.r) / (k + 1)) < 0.9
            small = self._sum_up(k) if fast else self._integral(k, upper=True)
        else:
            fast = (k - 1) / (self.p * (k - 2 + self.r)) < 0.9 if k > 1 else True
            small = self._sum_down(k - 1) if fast else self._integral(k, upper=False)
        return small if upper == small_side_is_upper else 1 - small

    def _sum_up(self, k: int) -> arb:
        """Pr[Z >= k]: the ratio of neighboring masses stays below max(p, p (k + r)/(k + 1))."""
        from flint import arb

        r, p = arb(self.r), arb(self.p)
        term = self._log_mass(k).exp()
        total = arb(0)
        for i in range(k, k + 2000):
            total += term
            term *= p * (i + r) / (i + 1)
        ratio = p * (1 + ((r - 1) / (k + 2001)).max(arb(0)))
        return total + term / (1 - ratio) * arb("0.5 +/- 0.5")

    def _sum_down(self, k: int) -> arb:
        """Pr[Z <= k]: going down, the ratio i/(p (i - 1 + r)) of neighboring masses decreases
        if r >= 1; if r < 1 all terms are added."""
        from flint import arb

        r, p = arb(self.r), arb(self.p)
        term = self._log_mass(k).exp()
        total = arb(0)
        for i in range(k, max(-1, k - 2000), -1):
            total += term
            if i == 0:
                return total
            term *= i / (p * (i - 1 + r))
        ratio = k / (p * (k - 1 + r))
        return total + term / (1 - ratio) * arb("0.5 +/- 0.5")

    def _integral(self, k: int, *, upper: bool) -> arb:
        """A tail that begins near the mean, as the incomplete beta function or its complement.

        I_p(k, r) = 1/B(k, r) * integral from -log p to infinity of e^{-ks} (1 - e^{-s})^{r-1} ds.
        For r > 1 the logarithm of the integrand is concave with its peak at log(1 + (r - 1)/k); the
        remainder beyond a cut at 15 standard deviations is bounded by a geometric tail.
        """
        from flint import acb, arb

        r, p = arb(self.r), arb(self.p)
        if self.r <= _SERIES_UP_TO_R:
            return p.beta_lower(arb(k), r, True) if upper else (1 - p).beta_lower(r, arb(k), True)
        log_beta = arb(k).lgamma() + r.lgamma() - (r + k).lgamma()

        def integrand(s: acb, analytic: bool) -> acb:
            return ((r - 1) * (1 - (-s).exp()).log(analytic=analytic) - k * s - log_beta).exp()

        edge = -p.log()
        peak = math.log1p((self.r - 1) / k)
        spread = 15 / math.sqrt(self.r)
        if upper:
            cut = arb(max(float(edge), peak) * (1 + spread))
            remainder = integrand(acb(cut), False).real / (k - (r - 1) / (cut.exp() - 1))
        else:
            cut = arb(min(float(edge), peak) * (1 - spread))
            remainder = integrand(acb(cut), False).real * cut
        low, high = (edge, cut) if upper else (cut, edge)
        value = acb.integral(
            integrand, acb(low), acb(high), rel_tol=arb(2) ** -70, abs_tol=arb(0)
        ).real
        return value + remainder * arb("0.5 +/- 0.5")

    def _log_mass(self, k: int) -> arb:
        from flint import arb

        r, p = arb(self.r), arb(self.p)
        return (k + r).lgamma() - r.lgamma() - arb(k + 1).lgamma() + r * (1 - p).log() + k * p.log()

    def _log_ratio(self, k: int, shift: int) -> arb:
        from flint import arb

        r = arb(self.r)
        if abs(shift) <= 64:
            low, sign = (k, 1) if shift > 0 else (k + shift, -1)
            product = arb(1)
            for i in range(low, low + abs(shift)):
                product *= (i + r) / (i + 1)
            return -shift * arb(self.p).log() - sign * product.log()
        return self._log_mass(k) - self._log_mass(k + shift)

    def __str__(self) -> str:
        return f"NB(r={self.r:.6g}, p={self.p:.9g})"

    def _rounded(self, evaluate: Callable[[], arb]) -> float:
        """Raise the precision until the ball determines the double to within one neighbor."""
        from accounting.base.balls import precision

        for bits in _PRECISIONS:
            with precision(bits):
                ball = evaluate()
            if ball.is_finite() and (ball.rel_accuracy_bits() >= 60 or ball.abs_upper() < 1e-330):
                return float(ball.mid())
            if ball.is_exact() and ball == 0:
                return 0.0
        raise Undecided(f"{self}: no 60-bit value with {_PRECISIONS[-1]} bits of working precision")


def _index(k: int) -> int:
    return whole("k", k, least=0)
