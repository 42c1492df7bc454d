"""What a person asks for: a problem, an error to allow, and how hard to search."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from accounting.base.errors import InvalidParameter
from accounting.base.validation import one_of, whole
from accounting.model.problem import Problem
from accounting.model.proof_types import LARGEST_VALUE, MOST_RELEASES, Tier

Objective = Literal["messages", "bits"]
"""What is minimised: noise messages of all users, or bits of all users."""
Method = Literal["search", "dominance", "theorem"]
"""Where parameters come from: a search, the paper's dominance program, or its theorem."""

DEFAULT_TRIES = 80
"""Families that a search tries."""
LARGEST_EPS = 100.0
SMALLEST_DELTA = 1e-30
MOST_SAME_RELEASES = 1_000_000
"""Releases in which a user makes the same change."""


@dataclass(frozen=True, kw_only=True)
class Request(Problem):
    """A problem to generate parameters for; checked when it is made.

    Args:
        central_fraction: eps of the central noise as a fraction of the largest possible, by default
            0.9.
        max_rmse: The error of the sum to allow, instead of ``central_fraction``.
        objective: What to minimise.
        method: Where the parameters come from.
        seed: Of the search.
        tries: Families to try; fixes the result together with ``seed``.
        budget: Seconds after which no further family is tried.
        tier: How the result is proved.
        cold: Do not start from the table that comes with this package.
        settings: To be kept in the provenance of the file.

    The other arguments are those of ``Problem``.

    Raises:
        InvalidParameter: If a number is outside its domain, or the arguments contradict each other.

    >>> Request(n=1000, eps=1.0, delta=1e-6, max_value=5, central_fraction=0.5).tries
    80
    """

    central_fraction: float | None = None
    max_rmse: float | None = None
    objective: Objective = "messages"
    method: Method = "search"
    seed: int = 0
    tries: int = DEFAULT_TRIES
    budget: float = math.inf
    tier: Tier = "auto"
    cold: bool = False
    settings: Mapping[str, str | float | int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.eps > LARGEST_EPS:
            raise InvalidParameter(f"eps = {self.eps:g} must be at most {LARGEST_EPS:g}")
        if self.delta < SMALLEST_DELTA:
            raise InvalidParameter(f"delta = {self.delta:g} must be at least {SMALLEST_DELTA:g}")
        whole("max value", self.max_value, least=1, most=LARGEST_VALUE)
        most = MOST_SAME_RELEASES if self.same_change else MOST_RELEASES
        whole("releases", self.releases, least=1, most=most)
        whole("seed", self.seed, least=0)
        whole("tries", self.tries, least=1)
        if self.budget <= 0 or math.isnan(self.budget):
            raise InvalidParameter(f"budget = {self.budget:g} seconds must be greater than 0")
        one_of("objective", self.objective, get_args(Objective))
        one_of("method", self.method, get_args(Method))
        one_of("tier", self.tier, get_args(Tier))
        if self.central_fraction is not None and self.max_rmse is not None:
            raise InvalidParameter("give either a central fraction or a max rmse, not both")
        if self.dimension > 1 and self.method != "search":
            raise InvalidParameter(f"method = {self.method!r} is for integers, not for vectors")
