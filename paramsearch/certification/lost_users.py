"""What is left of a claim if users with noise are lost: ``audit --lost``.

Two answers, of which the theorems are in accounting/proof/lost_noise.md.  If who is lost may depend
on what was drawn, nothing holds.  If the users are lost whatever they drew, there is an upper bound
of delta; it is the one that a verdict is about, since it is the one that parameters can change.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from fractions import Fraction

from accounting.base.balls import above, precision
from accounting.base.deadline import limited, until
from accounting.base.enclosure import readings
from accounting.base.errors import InvalidParameter
from accounting.base.progress import Progress
from accounting.model.mechanism import Mechanism
from accounting.model.proof_types import AuditTier
from accounting.proof.lost_noise import BlindLosses, LeftFraction, worst_way
from paramsearch.parameters.claim import Claim

_SEARCH_SECONDS, _SEARCH_PROOFS = 60.0, 3.0
"""Without a budget, the search for an eps that holds ends after this time, or after so many times
as long as the bound of delta took if that is more."""
_BITS = 128
"""Working precision."""


@dataclass(frozen=True)
class LostNoise:
    """What holds if the uploads of some users with noise are lost.

    Attributes:
        users: Number of users with noise who are lost in every release.
        noise_events: Expected number of noise events in one release before the loss, rounded up.
        delta_upper: Upper bound of delta at the claimed eps if they are lost whatever they drew.
        holds: Whether that meets the claimed delta.
        satisfied_eps: An eps that then holds at the claimed delta; None if none was found.
        searched: Whether that eps was looked for to the end; None if it was not looked for.
        worst_way: What delta is at least, at every eps, if who is lost may depend on everything
            that was drawn, even for a single user.
        fractions: The fractions of the users that the upper bound rests on.
        obstacle: Why some fraction could not be proved, if one could not.
    """

    users: int
    noise_events: float
    delta_upper: float
    holds: bool
    satisfied_eps: float | None
    searched: bool | None
    worst_way: float
    fractions: tuple[LeftFraction, ...]
    obstacle: str | None


def checked_users(claim: Claim, users: int | None, honest: Fraction) -> int:
    """Return the number of users, of whom no more may be lost than add noise.

    Args:
        claim: The claim.
        users: Number of users, None if it is not known.
        honest: Fraction of the users who add noise.

    Raises:
        InvalidParameter: If there are too few, or if it is not known how many there are.
    """
    if users is None:
        raise InvalidParameter(
            f"lost = {claim.lost:,} is a number of users, and the configuration does not say of "
            "how many: add n to it"
        )
    noisy = math.ceil(honest * users)
    if claim.lost > noisy:
        some = (
            f"the {noisy:,} of n = {users:,} users who add noise"
            if honest < 1
            else (f"n = {users:,}, the number of users")
        )
        raise InvalidParameter(f"lost = {claim.lost:,} is more than {some}: give a smaller --lost")
    return users


def lost_noise(
    claim: Claim,
    whole: Mechanism,
    *,
    users: int,
    honest: Fraction,
    tier: AuditTier,
    explain: bool,
    progress: Progress,
) -> LostNoise:
    """Return what holds if ``claim.lost`` users with noise are lost.

    Args:
        claim: The claim.
        whole: What is deployed, with the noise of all users.
        users: Number of users.
        honest: Fraction of the users who add noise before any is lost.
        tier: Which proofs to use.
        explain: Whether to look for the eps that holds, if the claimed one is not shown to hold.
        progress: Called with one line of text now and then.
    """
    begun = time.monotonic()
    noisy = math.ceil(honest * users)
    delta = readings(claim.delta)[0]
    losses = BlindLosses(
        whole,
        claim.question(delta),
        users=users,
        noisy=noisy,
        lost=claim.lost,
        tier=tier,
        progress=lambda text: progress(f"{claim.lost:,} users with noise lost: {text}"),
    )
    upper, obstacle = losses.upper(claim.eps), losses.obstacle
    fractions = tuple(losses.fractions(claim.eps))
    eps: float | None = None
    searched = True if losses.hopeless else None
    if upper <= delta:
        eps = claim.eps
    elif explain:
        now = time.monotonic()
        longest = max(_SEARCH_SECONDS, _SEARCH_PROOFS * (now - begun))
        with until(math.inf if limited() else now + longest):
            eps, searched = losses.satisfied_eps(claim.eps)
    with precision(_BITS):
        events = above(whole.thinned(Fraction(noisy, users)).event_rate())
    return LostNoise(
        users=claim.lost,
        noise_events=events,
        delta_upper=upper,
        holds=upper <= delta,
        satisfied_eps=eps,
        searched=searched,
        worst_way=worst_way(whole, users=users, noisy=noisy),
        fractions=fractions,
        obstacle=obstacle,
    )
