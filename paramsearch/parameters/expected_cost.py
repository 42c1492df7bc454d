"""The expected cost and the error of a parameter file, or of a configuration with its n."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from accounting.base.enclosure import exactly
from accounting.model.change import touched_coordinates
from accounting.model.configuration import Proposal
from accounting.model.costs import (
    bits_per_message,
    central_rmse,
    discrete_laplace_deviation,
    largest_central,
    noise_messages,
)
from accounting.model.problem import Problem
from accounting.model.proof_types import LARGEST_VALUE
from paramsearch.parameters.claim import Claim
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.parameters.real_range import RealError, real_error
from paramsearch.parameters.sections import Cost, Error


@dataclass(frozen=True, kw_only=True)
class ExpectedCost:
    """What one release of a document costs, and how accurate it is.

    Attributes:
        n: Number of users.
        eps: The eps of the claim.
        releases: Number of releases that the claim covers together.
        dimension: More than 1 for vectors.
        cost: Messages and bits.
        error: The error of the sum, or of each coordinate.
        over_central: That error in units of the central mechanism's for as many releases; for real
            values with rounding, in units of the Laplace mechanism's; None if the claim has
            eps = 0, at which there is none.
        real: For real values, the error in their units.
    """

    n: int
    eps: float
    releases: int
    dimension: int
    cost: Cost
    error: Error
    over_central: float | None
    real: RealError | None = None

    @staticmethod
    def of(document: ParameterFile | Proposal, claim: Claim) -> ExpectedCost | None:
        """Of a file for its own claim, of a configuration for this one; None if it is unknown.

        The central mechanism of another adjacency is nothing to compare a file with.
        """
        if isinstance(document, ParameterFile):
            found = ExpectedCost.of_file(document)
            same = document.problem.adjacency == claim.adjacency
            return found if same else replace(found, over_central=None)
        return ExpectedCost._of_proposal(document, claim)

    @staticmethod
    def of_file(file: ParameterFile) -> ExpectedCost:
        """What a file says of itself."""
        ratio = _over_central(
            file.error, Claim.of(file), max_value=file.problem.max_value, dimension=file.dimension
        )
        problem, real = file.problem, real_error(file)
        if real is not None and ratio is not None:
            ratio = real.total / _laplace_error(file, real.width)
        return ExpectedCost(
            n=problem.n,
            eps=problem.eps,
            releases=problem.releases,
            dimension=file.dimension,
            cost=file.cost,
            error=file.error,
            over_central=ratio,
            real=real,
        )

    @staticmethod
    def _of_proposal(proposal: Proposal, claim: Claim) -> ExpectedCost | None:
        """Of a configuration that says for how many users it is; None if it does not, or if its
        noise is beyond the range of doubles."""
        if proposal.n is None:
            return None
        top, dimension = proposal.max_value, proposal.dimension
        step = proposal.eps_central / top
        try:
            noise = dimension * noise_messages(step, proposal.atoms)
            bits = bits_per_message(dimension * _symbols(proposal))
            per_user = 1 + noise / proposal.n
            cost = Cost(
                noise_messages=noise,
                messages_per_user=per_user,
                bits_per_message=bits,
                bits_per_user=bits * per_user,
            )
            rmse = discrete_laplace_deviation(step)
            central = claim.eps / (top * touched_coordinates(dimension, claim.adjacency))
            ratio = rmse / discrete_laplace_deviation(central) if central > 0 else 0.0
            error = Error(mse=rmse**2, rmse=rmse, rmse_over_central=ratio)
            over_central = _over_central(error, claim, max_value=top, dimension=dimension)
        except (ArithmeticError, ValueError):
            return None
        return ExpectedCost(
            n=proposal.n,
            eps=claim.eps,
            releases=claim.releases,
            dimension=dimension,
            cost=cost,
            error=error,
            over_central=over_central,
        )

    def cost_in_words(self) -> str:
        cost = self.cost
        return (
            f"{cost.noise_messages:,.1f} noise messages, {cost.messages_per_user:.6g} messages and "
            f"{cost.bits_per_user:.6g} bits per user (n = {self.n:,})"
            + (" in each release" if self.releases > 1 else "")
        )

    def error_in_words(self) -> str:
        what = "the sum" if self.dimension == 1 else "each coordinate"
        words = f"RMSE {self.error.rmse:.6g} of {what}"
        if self.real is not None:
            words = (
                f"RMSE at most {self.real.total:.6g} of the sum, {self.real.total / self.n:.4g} of "
                f"the mean (rounding {self.real.rounding:.4g}, noise {self.real.noise:.4g} of the "
                "sum)"
            )
        if self.over_central is None:
            return words
        whole = f"at eps = {exactly(self.eps)}" if self.releases == 1 else "for as many releases"
        return f"{words}, {self.over_central:.4g} times the central one {whole}"


def _laplace_error(file: ParameterFile, width: float) -> float:
    """The error of the Laplace mechanism for real values in a range of this width."""
    problem = file.problem
    central = largest_central(
        eps=problem.eps,
        delta=problem.delta,
        max_value=LARGEST_VALUE,
        changes=problem.releases,
    )
    return width * math.sqrt(2) / central


def _symbols(proposal: Proposal) -> int:
    """Number of values in use: +1, -1, 2..max_value and those of the atoms."""
    top = proposal.max_value
    others = {
        value for elements, _ in proposal.atoms for value in elements if not -1 <= value <= top
    }
    return top + 1 + len(others)


def _over_central(error: Error, claim: Claim, *, max_value: int, dimension: int) -> float | None:
    """The file itself compares with a single release at its eps."""
    if claim.eps == 0:
        return None
    if claim.releases == 1:
        return error.rmse_over_central
    problem = Problem(
        n=1,
        eps=claim.eps,
        delta=claim.delta,
        max_value=max_value,
        dimension=dimension,
        releases=claim.releases,
        same_change=claim.same_change,
        adjacency=claim.adjacency,
    )
    return error.rmse / central_rmse(problem)
