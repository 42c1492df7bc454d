"""A request for parameters: a problem, the error to allow, and how hard to search."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal, get_args

from accounting.base.errors import InvalidParameter
from accounting.base.validation import one_of, positive, real, whole
from accounting.model.costs import (
    LARGEST_STEP,
    allowed_rmse,
    central_by_fraction,
    central_by_rmse,
    central_rmse,
    discrete_laplace_deviation,
    largest_central_of,
    require_error_ratio_in_reach,
    require_rmse_in_reach,
)
from accounting.model.laws.noise import NoiseLaw
from accounting.model.problem import Problem
from accounting.model.proof_types import LARGEST_VALUE, MOST_RELEASES, Tier

Objective = Literal["messages", "bits"]
"""What is minimized: noise messages of all users, or bits of all users."""
Method = Literal["search", "dominance", "theorem"]
"""Where parameters come from: a search, the paper's dominance program, or its theorem."""

DEFAULT_TRIES = 80
"""Number of families that a search tries."""
DEFAULT_CENTRAL_FRACTION = 0.9
"""eps of the central noise over the largest possible one, if no error is asked for."""
LARGEST_EPS = 100.0
"""Beyond it there is hardly any privacy, and the search has not been tried."""
SMALLEST_DELTA = 1e-30
"""Below it the estimates of the search lose their accuracy."""
_CENTRAL_RATIO, _LARGEST_SHARE = 1.4, 0.6
"""Ratio of neighboring eps* that are compared, and the largest as a share of the largest possible
one; rules of thumb."""
MOST_SAME_RELEASES = 1_000_000
"""Largest number of releases in which a user makes the same change."""


def error_ratio(value: float) -> float:
    """An error in units of the error of the central mechanism, which is discrete Laplace noise
    with all of eps, or Laplace noise for real values.

    Other central mechanisms may have less error, but the protocol's own central noise is discrete
    Laplace with a part of eps, since the atoms need the rest.  For real values, with max_value = K
    and x = eps / 2K, discrete noise has a variance smaller by (1/x^2 - 1/sinh(x)^2) / 2K^2, less
    than 1 / 6K^2, and rounding a single value may add 1 / 4K^2.

    Raises:
        InvalidParameter: If it is not larger than 1.
    """
    ratio = real("max_error_ratio", value)
    if not 1 < ratio < math.inf:
        raise InvalidParameter(
            f"max_error_ratio = {ratio:g} must be a number larger than 1: 1 is the error of "
            "(discrete) Laplace noise with all of eps, the protocol has such noise with a part of "
            "eps, and the atoms need the rest; ask for 1.1, say"
        )
    return ratio


@dataclass(frozen=True, kw_only=True)
class Request(Problem):
    """A problem to generate parameters for, and how; checked on construction.

    Args:
        n, eps, delta, max_value, dimension, releases, same_change, honest, adjacency: The problem;
            see ``Problem``.
        central_fraction: eps of the central noise as a fraction of the largest possible one; 0.9 if
            no error is given.
        max_rmse: Largest root mean square error of the sum, instead of ``central_fraction``.
        max_error_ratio: The same, in units of the error of the central mechanism.
        objective: What to minimize.
        noise: The law of the noise on the atoms.
        method: Where the parameters come from.
        seed: Seed of the search.
        tries: Number of families to try; determines the result together with ``seed``.
        budget: Number of seconds for the search and the proof together.
        tier: How the result is proved.
        cold: Whether to ignore the package's own table when choosing a start.
        settings: Further entries for the provenance of the file.

    Raises:
        InvalidParameter: If a number is outside its domain, the error is out of reach, or the
            arguments contradict each other.

    >>> request = Request(n=1000, eps=1.0, delta=1e-6, max_value=5, max_rmse=20.0)
    >>> request.tries, request.objective
    (80, 'messages')
    >>> Request(n=1000, eps=1.0, delta=1e-6, max_value=5, tries=0)
    Traceback (most recent call last):
    ...
    accounting.base.errors.InvalidParameter: tries = 0 must be at least 1
    """

    central_fraction: float | None = None
    max_rmse: float | None = None
    max_error_ratio: float | None = None
    objective: Objective = "messages"
    noise: NoiseLaw = "negative-binomial"
    method: Method = "search"
    seed: int = 0
    tries: int = DEFAULT_TRIES
    budget: float = math.inf
    tier: Tier = "auto"
    cold: bool = False
    settings: Mapping[str, str | float | int] = field(default_factory=dict)

    @property
    def problem(self) -> Problem:
        """The problem alone, without the wishes for the search."""
        return Problem(**{known.name: getattr(self, known.name) for known in fields(Problem)})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.eps > LARGEST_EPS:
            raise InvalidParameter(f"eps = {self.eps:g} must be at most {LARGEST_EPS:g}")
        if self.delta < SMALLEST_DELTA:
            raise InvalidParameter(f"delta = {self.delta:g} must be at least {SMALLEST_DELTA:g}")
        whole("max_value", self.max_value, least=1, most=LARGEST_VALUE)
        most = MOST_SAME_RELEASES if self.same_change else MOST_RELEASES
        whole("releases", self.releases, least=1, most=most)
        whole("seed", self.seed, least=0)
        whole("tries", self.tries, least=1)
        if self.budget != math.inf:
            positive("budget", self.budget)
        if not isinstance(self.settings, Mapping):
            raise InvalidParameter(f"settings = {self.settings!r:.60} must be a mapping")
        one_of("objective", self.objective, get_args(Objective))
        one_of("noise", self.noise, get_args(NoiseLaw))
        one_of("method", self.method, get_args(Method))
        one_of("tier", self.tier, get_args(Tier))
        errors = (self.central_fraction, self.max_rmse, self.max_error_ratio)
        if sum(error is not None for error in errors) > 1:
            raise InvalidParameter(
                "give one of central_fraction, max_rmse and max_error_ratio, not several"
            )
        if self.noise == "burst" and self.method != "search":
            raise InvalidParameter(
                f"method = {self.method!r}, the paper's parameters, has negative binomial noise; "
                "use method = 'search' (--method search) for bursts"
            )
        if self.dimension > 1 and self.method != "search":
            raise InvalidParameter(f"method = {self.method!r} is for integers, not for vectors")
        if self.releases > 1 and self.method != "search":
            raise InvalidParameter(
                f"method = {self.method!r}, the paper's parameters, is for one release; use "
                "method = 'search' (--method search)"
            )
        self._check_error()

    def _check_error(self) -> None:
        """Refuse an error out of reach, and central noise that the evaluators cannot handle."""
        if self.max_error_ratio is not None:
            require_error_ratio_in_reach(self, error_ratio(self.max_error_ratio))
        elif self.max_rmse is not None:
            require_rmse_in_reach(self, self.max_rmse)
        else:
            central_by_fraction(self._fraction, self.eps)
        if self.method == "search" and self.eps > LARGEST_STEP * self.max_value:
            central = self.least_central(largest_central_of(self))
            if central > LARGEST_STEP * self.max_value:
                least = allowed_rmse(self)
                if self.max_error_ratio is not None:
                    least /= central_rmse(self)
                asked = self.max_rmse is not None or self.max_error_ratio is not None
                remedy = f"allow at least {least:.4g}" if asked else "a smaller central fraction"
                raise InvalidParameter(
                    f"eps = {self.eps:g} with max_value = {self.max_value} and this error means "
                    f"eps* = {central:.6g} of the central noise, more than {LARGEST_STEP:g} per "
                    f"unit, which leaves hardly any noise: take a smaller eps, or {remedy}"
                )

    @property
    def _fraction(self) -> float:
        wanted = self.central_fraction
        return DEFAULT_CENTRAL_FRACTION if wanted is None else wanted

    def least_central(self, largest: float) -> float:
        """The smallest eps* of the central noise that keeps to the error.

        Args:
            largest: The largest possible eps*.

        Returns:
            The eps*; where no error is given, the central fraction of the largest.
        """
        max_rmse = self.max_rmse
        if self.max_error_ratio is not None:
            central = discrete_laplace_deviation(largest / self.max_value)
            max_rmse = self.max_error_ratio * central
        if max_rmse is None:
            return central_by_fraction(self._fraction, largest)
        return central_by_rmse(max_rmse, self.max_value, largest, self.honest)

    def central_choices(self, largest: float) -> list[float]:
        """The eps* to compare: that of the fraction, or several that keep to the error.

        Less error can be cheaper, because central noise is sent as messages, too.

        Args:
            largest: The largest possible eps*.

        Returns:
            At least one eps*, in increasing order.
        """
        sizes = [self.least_central(largest)]
        if self.max_rmse is None and self.max_error_ratio is None:
            return sizes
        most = min(_LARGEST_SHARE * largest, LARGEST_STEP * self.max_value)
        while sizes[-1] * _CENTRAL_RATIO < most:
            sizes.append(sizes[-1] * _CENTRAL_RATIO)
        return sizes
