"""What a parameter file guarantees, in words."""

from __future__ import annotations

from fractions import Fraction

from accounting.base.enclosure import exactly
from accounting.model.costs import central_rmse
from accounting.model.problem import Problem
from paramsearch.parameters.claim import Claim
from paramsearch.parameters.honest_fraction import claimed_fraction, in_words
from paramsearch.parameters.parameter_file import ParameterFile


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
    """The error of a file, in words."""
    what = "the sum" if file.dimension == 1 else "each coordinate"
    whole = "at eps" if file.problem.releases == 1 else "for as many releases"
    return (
        f"RMSE {file.error.rmse:.6g} of {what}, {error_over_central(file):.4g} times the "
        f"central one {whole}"
    )


def error_over_central(file: ParameterFile) -> float:
    """The error in units of that of the central mechanism for the same releases; the file itself
    compares with a single release at its eps."""
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
