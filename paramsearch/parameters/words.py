"""What a parameter file guarantees, in words."""

from __future__ import annotations

from fractions import Fraction

from accounting.base.enclosure import exactly
from paramsearch.parameters.honest_fraction import claimed_fraction, in_words
from paramsearch.parameters.parameter_file import ParameterFile


def releases_in_words(releases: int, *, same_change: bool) -> str:
    """For which changes several releases are covered."""
    if same_change:
        return (
            f"{releases:,} releases together, only if the user makes the same change in every one"
        )
    return f"{releases:,} releases together, however the user's inputs change in each"


def claim(
    *,
    eps: float,
    delta: float,
    releases: int,
    same_change: bool = False,
    honest: float,
    proved_for: Fraction,
    dimension: int,
) -> str:
    """What is guaranteed, in words."""
    text = f"({exactly(eps)}, {delta!r}) for one changed input"
    if releases > 1:
        text = f"({exactly(eps)}, {delta!r}) for "
        text += releases_in_words(releases, same_change=same_change)
    if dimension > 1:
        text += f", a vector of dimension {dimension:,} with at most one value"
    if honest < 1:
        text += f", {in_words(honest, proved_for)} of the users adding noise"
    return text


def claimed(file: ParameterFile) -> str:
    """What a file guarantees, in words."""
    problem = file.problem
    return claim(
        eps=problem.eps,
        delta=problem.delta,
        releases=problem.releases,
        same_change=problem.same_change,
        honest=problem.honest,
        proved_for=claimed_fraction(file),
        dimension=file.dimension,
    )


def error_of(file: ParameterFile) -> str:
    """The error of a file, in words."""
    what = "the sum" if file.dimension == 1 else "each coordinate"
    return (
        f"RMSE {file.error.rmse:.6g} of {what}, {file.error.rmse_over_central:.4g} times the "
        "central one at eps"
    )
