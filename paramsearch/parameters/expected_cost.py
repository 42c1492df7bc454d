"""The expected cost and the error of a parameter file, or of a configuration with its n.

Noise comes in few events, and few users have any: how many events there are, and how large one
upload may be, say what is lost with those users.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from accounting.base.balls import above, precision
from accounting.base.enclosure import counted, exactly
from accounting.base.errors import TooLarge, required
from accounting.model.change import touched_coordinates
from accounting.model.configuration import Proposal
from accounting.model.costs import (
    bits_per_message,
    central_rmse,
    discrete_laplace_deviation,
    largest_central,
    noise_messages,
)
from accounting.model.mechanism import Mechanism
from accounting.model.problem import Problem
from accounting.model.proof_types import LARGEST_VALUE
from accounting.model.upload_sizes import largest_upload
from paramsearch.parameters.claim import Claim
from paramsearch.parameters.documents import mechanism_of
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.parameters.real_range import RealError, real_error
from paramsearch.parameters.sections import Cost, Error

EXCEEDED = 1e-4
"""Probability with which some upload of a release may be larger than the largest one that is
named."""
_BITS = 128
"""Working precision."""


@dataclass(frozen=True, kw_only=True)
class ExpectedCost:
    """The cost and the accuracy of one release of a document.

    Attributes:
        n: Number of users.
        eps: The eps of the claim.
        releases: Number of releases that the claim covers together.
        dimension: More than 1 for vectors.
        cost: Messages and bits.
        events: Expected number of noise events of all users, for +1, -1 and all atoms together.
        largest_upload: Number of messages that no user has to send more of, but with probability
            ``EXCEEDED``; None if it is beyond what is computed.
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
    events: float
    largest_upload: int | None
    error: Error
    over_central: float | None
    real: RealError | None = None

    @staticmethod
    def of(document: ParameterFile | Proposal, claim: Claim) -> ExpectedCost | None:
        """Return the cost of a file for its own claim, of a configuration for this one; None if it
        is unknown.

        The central mechanism of another adjacency is nothing to compare a file with.
        """
        if isinstance(document, ParameterFile):
            found = ExpectedCost.of_file(document)
            same = document.problem.adjacency == claim.adjacency
            return found if same else replace(found, over_central=None)
        return ExpectedCost._of_proposal(document, claim)

    @staticmethod
    def of_file(file: ParameterFile) -> ExpectedCost:
        """Return the cost that a file states."""
        ratio = _over_central(
            file.error, Claim.of(file), max_value=file.problem.max_value, dimension=file.dimension
        )
        problem, real, mechanism = file.problem, real_error(file), file.mechanism()
        if real is not None and ratio is not None:
            ratio = real.total / _laplace_error(file, real.width)
        return ExpectedCost(
            n=problem.n,
            eps=problem.eps,
            releases=problem.releases,
            dimension=file.dimension,
            cost=file.cost,
            events=_events(mechanism),
            largest_upload=_largest_upload(mechanism, problem.n),
            error=file.error,
            over_central=ratio,
            real=real,
        )

    @staticmethod
    def _of_proposal(proposal: Proposal, claim: Claim) -> ExpectedCost | None:
        """Return the cost of a configuration that says for how many users it is; None if it does
        not, or if its noise is beyond the range of doubles."""
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
            mechanism = mechanism_of(proposal)
            events = _events(mechanism)
        except (ArithmeticError, ValueError):
            return None
        return ExpectedCost(
            n=proposal.n,
            eps=claim.eps,
            releases=claim.releases,
            dimension=dimension,
            cost=cost,
            events=events,
            largest_upload=_largest_upload(mechanism, proposal.n),
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

    def events_in_words(self) -> str:
        """How few events the noise comes in, and how many messages one upload may have."""
        words = f"{self.events:,.1f} noise events in all"
        if self.largest_upload is not None:
            most = counted(self.largest_upload, "message")
            words += (
                f"; with probability {1 - EXCEEDED:g} no upload has more than {most}, "
                f"{100 * self.largest_share:.2g}% of the noise"
            )
        return words + (" in each release" if self.releases > 1 else "")

    def events_as_json(self) -> dict[str, Any]:
        """The same for machines; no largest upload if it is beyond what is computed."""
        largest = None
        if self.largest_upload is not None:
            largest = {
                "messages": self.largest_upload,
                "share_of_noise": self.largest_share,
                "probability": EXCEEDED,
            }
        return {"noise_events": self.events, "largest_upload": largest}

    @property
    def largest_share(self) -> float:
        """The noise in the largest upload, as a share of the expected noise of all users."""
        return (required(self.largest_upload, "the largest upload") - 1) / self.cost.noise_messages

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


def _events(mechanism: Mechanism) -> float:
    with precision(_BITS):
        return above(mechanism.event_rate())


def _largest_upload(mechanism: Mechanism, users: int) -> int | None:
    try:
        return largest_upload(mechanism, users, EXCEEDED)
    except TooLarge:
        return None


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
