"""From real values to a certified file: the rounding first, then the search and the proof."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass, replace

from accounting.base.errors import InvalidParameter, TooLarge
from accounting.base.progress import Progress, silent
from accounting.model.change import SUBSTITUTION, Adjacency
from accounting.model.costs import largest_central
from accounting.model.laws.noise import NoiseLaw
from accounting.model.problem import Problem
from accounting.model.proof_types import LARGEST_VALUE, Tier
from paramsearch.generation.generate import Generated, generate
from paramsearch.generation.interruption import Interruption
from paramsearch.generation.real_values import PaperRounding, RealTarget, Rounding
from paramsearch.generation.time_plan import TimePlan
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.parameters.real_range import ROUNDED_AFRESH, real_error, stated_range
from paramsearch.request import Request
from paramsearch.search.budget import Budget
from paramsearch.search.families.family_draft import FamilyDraft

DEFAULT_REAL_TRIES = 40
"""Number of families that a search for real values tries."""
_CHOICE_SHARE = 0.25
"""Share of a budget for choosing the rounding."""
_USUAL_SIZE = 1.3
"""About the max_value that is chosen, in units of the smallest possible one."""
_MORE_ERROR, _LESS_ERROR = 1 + 1e-6, 0.99
"""Ratios between which the error of a file to resume counts as the one that is asked for."""


@dataclass(frozen=True, kw_only=True)
class RealRequest:
    """A sum of real values to generate parameters for; checked on construction.

    Args:
        n: Number of users.
        eps: The eps of the guarantee.
        delta: The delta of the guarantee.
        max_rmse: Largest root mean square error of the sum, in units of the values.
        max_error_ratio: The same, in units of the error of the Laplace mechanism.
        zeta: The same, as the error of the Laplace mechanism with (1 - zeta) eps.
        low: Lower end of the range of the values.
        high: Upper end of the range of the values.
        releases: Number of releases that the guarantee covers together.
        same_change: Must be False: every release rounds the values afresh, so that the same change
            of a value is not the same change of the rounded integers.
        honest: Fraction of the users whose noise has to suffice; who is missing must not depend on
            the noise.
        adjacency: Which data sets are neighbors; under zero-out an absent value counts as ``low``.
        noise: The law of the noise on the atoms.
        seed: Seed of the search.
        tries: Number of families to try; determines the result together with ``seed``.
        budget: Number of seconds for the choice of the rounding, the search and the proof.
        tier: How the result is proved.
        cold: Whether to ignore the package's own table when choosing a start.

    Raises:
        InvalidParameter: If a number is outside its domain, the error is out of reach, not exactly
            one error is given, or the same change in every release is asked for.

    >>> RealRequest(n=10_000, eps=1.0, delta=1e-6, zeta=0.25).target.coarsest()
    41
    >>> RealRequest(n=10_000, eps=1.0, delta=1e-6, max_rmse=1.0)
    Traceback (most recent call last):
    ...
    accounting.base.errors.InvalidParameter: an RMSE of 1 is out of reach ...
    """

    n: int
    eps: float
    delta: float
    max_rmse: float | None = None
    max_error_ratio: float | None = None
    zeta: float | None = None
    low: float = 0.0
    high: float = 1.0
    releases: int = 1
    same_change: bool = False
    honest: float = 1.0
    adjacency: Adjacency = SUBSTITUTION
    noise: NoiseLaw = "negative-binomial"
    seed: int = 0
    tries: int = DEFAULT_REAL_TRIES
    budget: float = math.inf
    tier: Tier = "auto"
    cold: bool = False

    def __post_init__(self) -> None:
        if self.same_change:
            raise InvalidParameter(ROUNDED_AFRESH)
        self.rounded(LARGEST_VALUE)
        self.target.coarsest()

    @property
    def target(self) -> RealTarget:
        """The error to meet."""
        problem = Problem(
            n=self.n,
            eps=self.eps,
            delta=self.delta,
            max_value=1,
            releases=self.releases,
            honest=self.honest,
            adjacency=self.adjacency,
        )
        return RealTarget.of(
            problem,
            zeta=self.zeta,
            max_rmse=self.max_rmse,
            max_error_ratio=self.max_error_ratio,
            low=self.low,
            high=self.high,
            noise=self.noise,
        )

    def rounded(self, max_value: int, eps_central: float | None = None) -> Request:
        """The request for integers 0..max_value, with this central noise."""
        fraction = None
        if eps_central is not None:
            largest = largest_central(
                eps=self.eps, delta=self.delta, max_value=max_value, changes=self.releases
            )
            fraction = eps_central / largest
        return Request(
            n=self.n,
            eps=self.eps,
            delta=self.delta,
            max_value=max_value,
            releases=self.releases,
            honest=self.honest,
            adjacency=self.adjacency,
            central_fraction=fraction,
            objective="bits",
            noise=self.noise,
            seed=self.seed,
            tries=self.tries,
            budget=self.budget,
            tier=self.tier,
            cold=self.cold,
        )


@dataclass(frozen=True, repr=False)
class GeneratedReal(Generated):
    """The result of ``generate_real``.

    Attributes:
        predicted_bits: Bits per user that were predicted before the search.
        paper: What the paper's theorem takes for the same error, if it has an answer.
    """

    predicted_bits: float = math.nan
    paper: PaperRounding | None = None

    def summary(self) -> tuple[str, str]:
        """Return the file's summary, the error in the units of the values, and how the search
        ended."""
        problem, numbers = super().summary()
        if (error := real_error(self.file)) is not None:
            numbers += f"; RMSE at most {error.total:.6g} of the sum of the values"
        return problem, numbers


def generate_real(
    request: RealRequest,
    *,
    resume: ParameterFile | None = None,
    interruption: Interruption | None = None,
    progress: Progress = silent,
    announce: Progress = silent,
) -> GeneratedReal:
    """Choose how to round real values, search for the cheapest noise, and certify it.

    The range of the values is part of the file's provenance: ``paramsearch randomize`` and
    ``analyze`` take it from there.

    Args:
        request: The values, the guarantee and the error.
        resume: A file of the same values, guarantee and error, whose rounding is kept.
        interruption: Is told what an interrupt would do, whenever that changes.
        progress: Called with one line of text now and then.
        announce: Called with what the problem needs, before any work is done for it.

    Returns:
        The certified file, and how the search ended.

    Raises:
        InvalidParameter: If ``resume`` was made for something else.
        Undecided: If no file could be certified, or the budget is far too small for one.

    >>> made = generate_real(RealRequest(n=100, eps=1.0, delta=1e-6, zeta=0.5, tries=1))
    >>> made.file.provenance.settings["high"], made.file.certificate.delta_upper <= 1e-6
    (1.0, True)
    """
    target, begun = request.target, time.monotonic()
    rounding = None if resume is None else _rounding_of(resume, request)
    if rounding is None:
        announce(_needs(target))
        about = min(LARGEST_VALUE, math.ceil(_USUAL_SIZE * target.coarsest()))
        TimePlan.of(request.rounded(about)).check(1 - _CHOICE_SHARE)
        rounding = target.choose(progress, Budget(seconds=_CHOICE_SHARE * request.budget))
    left = request.budget - (time.monotonic() - begun)
    rounded = replace(
        request.rounded(rounding.max_value, rounding.eps_central),
        settings={**target.settings, "predicted_bits": round(rounding.bits, 4)},
    )
    # what is left is not refused any more
    needed = min(TimePlan.of(replace(rounded, budget=max(1.0, left))).needed, request.budget)
    rounded = replace(rounded, budget=max(left, needed))
    TimePlan.of(rounded).announce(announce)
    draft = rounding.draft if rounding.draft.parts else None
    made = generate(
        rounded, resume=resume, draft=draft, interruption=interruption, progress=progress
    )
    paper = None
    with suppress(InvalidParameter, TooLarge):  # it has no answer for every error
        paper = target.of_the_paper()
    return GeneratedReal(**vars(made), predicted_bits=rounding.bits, paper=paper)


def _needs(target: RealTarget) -> str:
    """Say what the error takes at least."""
    least = target.coarsest()
    step = (target.high - target.low) / least
    text = f"this error needs max_value >= {least:,}, steps of at most {step:.3g}"
    if target.problem.releases > 1:  # stage 1 alone says little about several releases
        return text
    return f"{text}; with so few, very roughly {target.rough().bits:,.3g} bits per user"


def _rounding_of(file: ParameterFile, request: RealRequest) -> Rounding:
    """Return the rounding of a file that was made for the same values and the same error."""
    target, error = request.target, real_error(file)
    if error is None:
        raise InvalidParameter("the file to resume is not for real values")
    if stated_range(file) != (request.low, request.high):
        raise InvalidParameter(
            f"the file to resume is for values in {list(stated_range(file) or ())}, not in "
            f"[{request.low:g}, {request.high:g}]"
        )
    allowed = math.sqrt(target.mse) * (request.high - request.low)
    if not _LESS_ERROR <= error.total / allowed <= _MORE_ERROR:
        raise InvalidParameter(
            f"the file to resume has an RMSE of at most {error.total:.8g}, and {allowed:.8g} is "
            "asked for; give the error it was made with, or another --output"
        )
    top, central = file.problem.max_value, file.central.eps_central
    predicted = file.provenance.settings.get("predicted_bits")
    bits = predicted if isinstance(predicted, float) else file.cost.bits_per_user
    return Rounding(top, central, file.cost.noise_messages, bits, FamilyDraft(top, {}))
