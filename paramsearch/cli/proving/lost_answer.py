"""What ``paramsearch audit --lost`` answers beside the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from accounting.base.enclosure import Enclosure, at_least, at_most, counted, exactly
from paramsearch.certification.lost_users import LostNoise
from paramsearch.cli.output import Fact
from paramsearch.parameters.claim import Claim


def losses_in_words(claim: Claim, lost: LostNoise) -> Iterator[Fact]:
    """Return what holds if users with noise are lost, in two ways."""
    users, eps = counted(lost.users, "user"), exactly(claim.eps)
    told = f"{users} with noise lost whatever they drew: "
    if lost.delta_upper < 1:
        told += f"delta is at most {at_most(lost.delta_upper)} at eps = {eps}"
    else:
        told += f"nothing is proved at eps = {eps}"
    if not lost.holds and lost.searched is not None:
        told += _instead(claim, lost)
    yield "losses", f"{told} (upper bounds only)"
    yield (
        "worst way",
        "if who is lost may depend on what was drawn, nothing holds: with a single lost user, "
        f"delta is at least {at_least(lost.worst_way)} at every eps",
    )


def _instead(claim: Claim, lost: LostNoise) -> str:
    """The eps that holds at the claimed delta, as far as it was looked for."""
    late = " was not searched to the end: --budget gives the search more time"
    if lost.satisfied_eps is not None:
        found = f", and eps = {at_most(lost.satisfied_eps)} holds at delta = {claim.delta!r}"
        return found if lost.searched else f"{found}; a smaller one{late}"
    if lost.searched:
        return f", and no eps was found that holds at delta = {claim.delta!r}"
    return f"; an eps that holds{late}"


def losses_as_json(lost: LostNoise) -> dict[str, Any]:
    """Return the same for machines, with bounds that also hold as decimals."""
    return {
        "users": lost.users,
        "noise_events": lost.noise_events,
        "delta_upper": _upper(lost.delta_upper),
        "satisfied_eps": lost.satisfied_eps,
        "satisfied_eps_searched": bool(lost.searched),
        "worst_way_delta_lower": Enclosure(lost.worst_way, 1.0).as_written().lower,
        "fractions": [
            {
                "fraction": float(left.fraction),
                "chance_of_less": _upper(left.chance_of_less),
                "delta_upper": _upper(left.delta_upper),
            }
            for left in lost.fractions
        ],
    }


def _upper(bound: float) -> float:
    return Enclosure(0.0, bound).as_written().upper
