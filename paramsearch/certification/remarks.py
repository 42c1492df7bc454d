"""What is said of a file that is allowed, but hardly meant: in the same words everywhere."""

from __future__ import annotations

import math

from accounting.base.enclosure import counted
from accounting.model.configuration import Proposal
from accounting.model.costs import discrete_laplace_deviation
from paramsearch.certification.stated_problem import StatedProblem
from paramsearch.parameters.claim import Claim
from paramsearch.parameters.expected_cost import ExpectedCost
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.parameters.real_range import real_error

MANY_MESSAGES = 2.0
"""Messages per user from which on their number draws a remark."""


def warnings_about(document: ParameterFile | Proposal, claim: Claim | None = None) -> list[str]:
    """Return warnings about what is guaranteed, and about an error that leaves no information.

    Args:
        document: A parameter file, or a configuration.
        claim: The claim that its own is replaced by, if any.

    Returns:
        Texts without an end; none if there is nothing to warn of.

    >>> from paramsearch.parameters.assembly import rescaled
    >>> from paramsearch.parameters.parameter_file import load
    >>> from paramsearch.tables.lookup import shipped_folder
    >>> file = load(shipped_folder() / "files" / "5-1-1e-06-0.9.json")
    >>> print(*warnings_about(rescaled(file, 1)))  # doctest: +ELLIPSIS
    the RMSE of the sum, 7.84..., is 1.569 times the largest sum, 5 (n = 1, values up to 5): ...
    """
    problem = StatedProblem.of(document, claim)
    useless = _useless_estimate(document, problem)
    return [*problem.warnings, *([] if useless is None else [useless])]


def _useless_estimate(document: ParameterFile | Proposal, problem: StatedProblem) -> str | None:
    """Warn where the error is at least that of the best guess without any message."""
    rmse, width = _error(document)
    if problem.n is None or rmse is None:
        return None
    largest = problem.n * width
    if rmse < largest / 2:
        return None
    what = "the sum" if problem.dimension == 1 else "each coordinate"
    sums, values = "the largest sum", f"values up to {problem.max_value:,}"
    if problem.low is not None:
        sums, values = "the range of all sums", f"values in an interval of length {width:g}"
    return (
        f"the RMSE of {what}, {rmse:.6g}, is {rmse / largest:.4g} times {sums}, {largest:,.6g} "
        f"(n = {problem.n:,}, {values}): the middle, guessed without any message, is never off by "
        f"more than {largest / 2:,.6g}"
    )


def _error(document: ParameterFile | Proposal) -> tuple[float | None, float]:
    """The RMSE of the sum of a release, if it is a number, and the width of one user's values."""
    if isinstance(document, ParameterFile):
        real = real_error(document)
        if real is not None:
            return real.total, real.width
        return document.error.rmse, document.problem.max_value
    try:
        rmse = discrete_laplace_deviation(document.eps_central / document.max_value)
    except (ArithmeticError, ValueError):  # beyond the range of doubles
        return None, document.max_value
    return rmse, document.max_value


def cost_remark(expected: ExpectedCost) -> str | None:
    """Return what would help where users send many messages; None where they do not.

    >>> from paramsearch.parameters.assembly import rescaled
    >>> from paramsearch.parameters.parameter_file import load
    >>> from paramsearch.tables.lookup import shipped_folder
    >>> file = rescaled(load(shipped_folder() / "files" / "5-1-1e-06-0.9.json"), 1000)
    >>> print(cost_remark(ExpectedCost.of_file(file)))  # doctest: +ELLIPSIS
    a user sends 6.4... messages on average: the noise is shared among 1,000 users, and 5,4...
    """
    cost = expected.cost
    if cost.messages_per_user <= MANY_MESSAGES:
        return None
    enough = math.ceil(cost.noise_messages / (MANY_MESSAGES - 1))
    less = "a larger error" + (" or a smaller dimension" if expected.dimension > 1 else "")
    return (
        f"a user sends {cost.messages_per_user:,.4g} messages on average: the noise is shared "
        f"among {counted(expected.n, 'user')}, and {enough:,} would send {MANY_MESSAGES:g} each; "
        f"{less} takes less noise"
    )
