"""What a parameter file guarantees, in words."""

from __future__ import annotations

from fractions import Fraction

from accounting.base.enclosure import exactly
from accounting.model.costs import central_rmse
from accounting.model.problem import Problem
from paramsearch.parameters.claim import Claim
from paramsearch.parameters.honest_fraction import claimed_fraction, in_words
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.parameters.real_range import real_error, stated_range


def releases_in_words(releases: int, *, same_change: bool) -> str:
    """For which changes several releases are covered."""
    if same_change:
        return (
            f"{releases:,} releases together, only if the user makes the same change in every one"
        )
    return f"{releases:,} releases together, however the user's inputs change in each"


def claim_in_words(claim: Claim, *, proved_for: Fraction, dimension: int) -> str:
    """What is claimed, where ``proved_for`` is the exact fraction that ``honest`` stands for."""
    covered = "one changed input"
    if claim.releases > 1:
        covered = releases_in_words(claim.releases, same_change=claim.same_change)
    text = f"({exactly(claim.eps)}, {claim.delta!r}) for {covered}"
    if dimension > 1:
        text += f", a vector of dimension {dimension:,} with at most one value"
    if claim.honest < 1:
        text += f", {in_words(claim.honest, proved_for)} of the users adding noise"
    return text


def file_claim_in_words(file: ParameterFile) -> str:
    """What a file claims, in words."""
    proved_for = claimed_fraction(file)
    return claim_in_words(Claim.of(file), proved_for=proved_for, dimension=file.dimension)


def error_of(file: ParameterFile) -> str:
    """The error of a file, in words; that of real values in their units."""
    what = "the sum" if file.dimension == 1 else "each coordinate"
    whole = "at eps" if file.problem.releases == 1 else "for as many releases"
    times = f"{error_over_central(file):.4g} times the central one {whole}"
    error = real_error(file)
    if error is None:
        return f"RMSE {file.error.rmse:.6g} of {what}, {times}"
    return (
        f"RMSE at most {error.total:.6g} of the sum, {error.total / file.problem.n:.4g} of the "
        f"mean (rounding {error.rounding:.4g}, noise {error.noise:.4g} of the sum), {times}"
    )


def values_of(file: ParameterFile) -> str | None:
    """What a file for real values does with them, in words; None for integers and vectors."""
    ends = stated_range(file)
    if ends is None:
        return None
    low, high = ends
    steps = file.problem.max_value
    return (
        f"real in [{low:g}, {high:g}], rounded at random to {steps:,} steps of "
        f"{(high - low) / steps:.4g}"
    )


def error_over_central(file: ParameterFile) -> float:
    """The error in units of that of the central mechanism for the same releases; the file itself
    compares with a single release at its eps, and does not know of rounding."""
    error = real_error(file)
    with_rounding = 1.0 if error is None else error.total / error.noise
    return with_rounding * _noise_over_central(file)


def _noise_over_central(file: ParameterFile) -> float:
    if file.problem.releases == 1:
        return file.error.rmse_over_central
    known = file.problem
    problem = Problem(
        n=known.n,
        eps=known.eps,
        delta=known.delta,
        max_value=known.max_value,
        dimension=file.dimension,
        releases=known.releases,
        same_change=known.same_change,
    )
    return file.error.rmse / central_rmse(problem)
