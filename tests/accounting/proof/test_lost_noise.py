"""Users with noise are lost: the bounds of lost_noise.md against protocols played out."""

from __future__ import annotations

import math
import time
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from lost_uploads import (
    Lost,
    Small,
    at_random,
    delta_of_fraction,
    in_order,
    worst_delta,
    worst_way_delta,
)
from scipy import special, stats

from accounting import ExactBurst, ExactCentral, ExactNoise, Mechanism, Question
from accounting.base.balls import above, ball, below, precision
from accounting.base.deadline import until
from accounting.base.errors import InvalidParameter
from accounting.proof.lost_noise import BlindLosses, _fewer_successes, worst_way
from paramsearch import load
from paramsearch.tables.lookup import shipped_folder

FEW = Small(4, Fraction(3), Fraction(1, 2), Fraction(3, 2), Fraction(1, 2), size=40)
"""About 4 events of 4 users."""
MORE = Small(5, Fraction(6), Fraction(1, 2), Fraction(4), Fraction(1, 2), size=64)
"""About 10 events of 5 users."""


def losses(small: Small, lost: int, claim: float = 0.1, **options: object) -> BlindLosses:
    question = Question(eps=1.0, claim=claim, **options)  # type: ignore[arg-type]
    mechanism, users = small.mechanism(), small.users
    return BlindLosses(mechanism, question, users=users, noisy=users, lost=lost, tier="ball")


@pytest.mark.parametrize("small", [FEW, MORE])
@pytest.mark.parametrize("lost", [1, 2, 3])
def test_blind_losses(small: Small, lost: int) -> None:
    """Whoever comes first, the changed user or another one, and with all inputs of the others."""
    users = range(small.users)
    bound = losses(small, lost)
    for eps in (0.5, 1.0, 2.0):
        upper = bound.upper(eps)
        for rule in (
            at_random(lost),
            in_order(lost, users),
            in_order(lost, users[::-1]),
            in_order(lost, [2, 0, 3, 1, *users[4:]]),
        ):
            truth = worst_delta(small, eps, rule)
            assert truth <= upper + small.missing(), (eps, rule)
        fewer = worst_delta(small, eps, at_random(lost - 1))
        assert fewer <= upper + small.missing()


@pytest.mark.parametrize(("lost", "releases"), [(1, 2), (2, 2)])
def test_blind_losses_in_two_releases(lost: int, releases: int) -> None:
    tiny = Small(3, Fraction(2), Fraction(1, 3), Fraction(1), Fraction(1, 3), size=14)
    bound = losses(tiny, lost, releases=releases, same_change=True)
    for eps in (0.5, 1.5):
        truth = worst_delta(tiny, eps, at_random(lost), releases)
        assert truth <= bound.upper(eps) + releases * tiny.missing()


@pytest.mark.parametrize("lost", [1, 2])
def test_the_bound_is_close_to_the_theorem(lost: int) -> None:
    """The mean of delta over the fractions that are left, summed over all places."""
    n, eps = 400, 1.0
    many = Small(n, Fraction(40), Fraction(1, 2), Fraction(12), Fraction(1, 2), size=128)
    bound = losses(many, lost, claim=1e-7)
    with precision(64):
        win = -math.expm1(-float(many.mechanism().event_rate().mid()) / n)
    places = np.arange(1, n + 1)
    chances = stats.nbinom.pmf(places - lost, lost, win)
    of = {i: delta_of_fraction(many, Fraction(n - i, n), eps) for i in range(0, n + 1, 4)}
    low = [max(at for at in of if at <= place) for place in places]
    mean = float(chances @ [of[at] for at in low]) + 1 - float(chances.sum())
    assert mean <= bound.upper(eps) <= 1.4 * mean


def test_what_is_given_away() -> None:
    """The exact law of what is left, by quadrature, for the file with the fewest events."""
    file = load(shipped_folder() / "files" / "1-1-1e-06-0.9.json")
    mechanism, n = file.mechanism(), file.problem.n
    with precision(128):
        events = float(mechanism.event_rate().mid())
    nodes, weights = special.roots_laguerre(50)
    some = (nodes < events) & (weights > 1e-14)
    law = sum(
        weight * deployed(file, 1 - node / events)
        for node, weight in zip(nodes[some], weights[some], strict=True)
    )
    shifted = np.roll(law, 1, axis=0)
    truth = max(np.clip(a - math.e * b, 0, None).sum() for a, b in ((law, shifted), (shifted, law)))
    question = Question(eps=1.0, claim=1e-6)
    bound = BlindLosses(mechanism, question, users=n, noisy=n, lost=1, tier="ball").upper(1.0)
    assert 5e-6 < truth * (1 - 1e-6) <= bound <= 25 * truth


def deployed(file: object, fraction: float) -> np.ndarray:
    """The law of (D, Y_0) of a file for max_value 1 where a fraction of the users adds noise."""
    central, atom = file.central, file.atoms[0]  # type: ignore[attr-defined]
    q, p, most, size = float(Fraction(central.p)), float(Fraction(atom.p)), 36, 2400
    z = stats.nbinom.pmf(np.arange(most), fraction * central.r, 1 - q)
    unit = stats.nbinom.pmf(np.arange(size), fraction * atom.r, 1 - p)
    out = np.zeros((2 * most + 1, size + most))
    for minus in range(most):
        for plus in range(most):
            out[plus - minus + most, minus : minus + size] += z[plus] * z[minus] * unit
    return out


@pytest.mark.parametrize("eps", [0.0, 1.0, 10.0])
@pytest.mark.parametrize("users", [1, 2, 3])
def test_the_worst_way(users: int, eps: float) -> None:
    """Somebody who sees all draws and loses one upload, played out."""
    small = Small(users, Fraction(2), Fraction(1, 2), Fraction(1), Fraction(1, 2), size=30)
    missing = 1 - float(small.of_one().sum()) ** users
    bound = worst_way(small.mechanism(), users=users, noisy=users)
    assert 0.5 <= bound <= worst_way_delta(small, eps) + missing
    # the probability that user 0 alone has an odd number is what the bound estimates
    odd = float(small.of_one().sum(axis=1)[1::2].sum())
    exact = 1 - odd * (1 - odd) ** (users - 1)
    assert exact == pytest.approx(worst_way_delta(small, eps), abs=missing + 1e-9)
    assert bound <= exact + missing


def test_the_worst_way_of_a_file() -> None:
    file = load(shipped_folder() / "files" / "5-1-1e-06-0.9.json")
    mechanism, n = file.mechanism(), file.problem.n
    assert 1 - 1 / n < worst_way(mechanism, users=n, noisy=n) < 1 - 1 / (3 * n)
    # with noise for everybody in many coordinates the other bound counts, with hardly any this one
    rare = Mechanism(1, {}, ExactCentral(p=Fraction(1, 10), rate=Fraction(1, 10**9)))
    assert worst_way(rare, users=4, noisy=4) > 1 - 1e-9


@pytest.mark.parametrize(
    ("count", "trials", "rate"),
    [(1, 10, 0.1), (1, 10**6, 2.5e-4), (5, 40_000, 2.5e-4), (20, 60, 0.2), (300, 10**7, 5e-5)],
)
def test_binomial_tails(count: int, trials: int, rate: float) -> None:
    """Against 50 digits."""
    with mp.workdps(50):
        win = -mp.expm1(-mp.mpf(rate))
        truth = mp.nsum(
            lambda k: mp.binomial(trials, int(k)) * win**k * mp.exp(-rate * (trials - k)),
            [0, count - 1],
            method="direct",
        )
    with precision(192):
        found = _fewer_successes(count, trials, ball(rate))
        assert truth * (1 - mp.mpf(10) ** -15) <= below(found)
        mode = count > trials * win
        assert above(found) <= (1 if mode else truth * (1 + mp.mpf(10) ** -9))


def test_the_eps_that_holds() -> None:
    bound = losses(MORE, 1, claim=0.05)
    eps, searched = bound.satisfied_eps(1.0)
    assert searched
    assert eps is not None
    assert bound.upper(eps) <= 0.05 < bound.upper(eps - 0.02)
    assert worst_delta(MORE, eps, at_random(1)) <= 0.05 + MORE.missing()


def test_more_losses_are_worse_until_nothing_is_left() -> None:
    uppers = [losses(MORE, lost).upper(1.0) for lost in range(1, 6)]
    assert uppers == sorted(uppers)
    last = losses(MORE, 5)
    assert last.upper(1.0) > 0.9
    assert last.hopeless
    assert last.satisfied_eps(1.0) == (None, True)


def test_fewer_users_who_add_noise() -> None:
    """A fraction of them, and then losses: worse than either."""
    mechanism, question = MORE.mechanism(), Question(eps=1.0, claim=0.1)
    some = BlindLosses(mechanism, question, users=5, noisy=4, lost=1, tier="ball")
    assert some.upper(1.0) >= losses(MORE, 1).upper(1.0)
    rule: Lost = in_order(1, [1, 2, 3, 4])  # user 0 adds no noise
    quiet = Small(5, MORE.r, MORE.p, MORE.share, MORE.q, MORE.size)
    assert delta_of_fraction(quiet, Fraction(4, 5), 1.0) <= some.upper(1.0)
    assert rule is not None


def test_bursts_and_zero_out() -> None:
    """Every law and adjacency that can be proved for a fraction."""
    burst = ExactBurst(p=Fraction(1, 2), rate=Fraction(60), m=2)
    mechanism = Mechanism(1, {(-1, 1): (burst,)}, ExactCentral(step=Fraction(9, 10)))
    found = []
    for adjacency in ("substitution", "zero-out"):
        question = Question(eps=1.0, claim=1e-6, adjacency=adjacency)  # type: ignore[arg-type]
        bound = BlindLosses(mechanism, question, users=10**6, noisy=10**6, lost=1, tier="ball")
        found.append(bound.upper(1.0))
        assert 0 < found[-1] < 1e-2
    assert found[1] <= found[0] * 1.01


def test_time_that_is_over_proves_nothing() -> None:
    bound = losses(MORE, 1)
    with until(time.monotonic() - 1):
        assert bound.upper(1.0) == 1
        assert bound.satisfied_eps(1.0) == (None, False)
    assert "budget" in str(bound.obstacle)
    assert bound.upper(1.0) < 1  # nothing of that is kept


def test_what_no_proof_applies_to_counts_as_lost() -> None:
    """Central noise beyond the tables of the fast evaluators."""
    noise = ExactNoise(p=Fraction(1, 2), r=Fraction(40))
    tiny = Mechanism(1, {(-1, 1): (noise,)}, ExactCentral(step=Fraction(1, 20_000)))
    bound = BlindLosses(tiny, Question(eps=1.0, claim=1e-6), users=1000, noisy=1000, lost=1)
    assert bound.upper(1.0) == 1
    assert "smaller max_value" in str(bound.obstacle)


def test_odd_numbers_are_refused() -> None:
    for lost in (0, -1, 6, 1.5):
        with pytest.raises(InvalidParameter, match="lost"):
            losses(MORE, lost)  # type: ignore[arg-type]
    question = Question(eps=1.0, claim=1e-6)
    with pytest.raises(InvalidParameter, match="noisy"):
        BlindLosses(MORE.mechanism(), question, users=5, noisy=6, lost=1)
    with pytest.raises(InvalidParameter, match="claimed delta"):
        BlindLosses(MORE.mechanism(), Question(eps=1.0), users=5, noisy=5, lost=1)


def test_few_proofs_are_enough() -> None:
    """max_value 5, a million users: a single loss costs little, and a dozen fractions show it."""
    file = load(shipped_folder() / "files" / "5-1-1e-06-0.9.json")
    question = Question(eps=1.0, claim=1e-6)
    bound = BlindLosses(file.mechanism(), question, users=10**6, noisy=10**6, lost=1)
    assert bound.upper(1.0) <= 2e-6
    used = bound.fractions(1.0)
    assert 4 <= len(used) <= 12
    assert [left.fraction for left in used] == sorted((x.fraction for x in used), reverse=True)
    assert used[-1].chance_of_less <= 1e-8


@pytest.mark.parametrize("releases", [2, 7])
def test_chances_of_several_releases(releases: int) -> None:
    """The last loss may come late in any of them."""
    one, several = losses(MORE, 2), losses(MORE, 2, releases=releases, same_change=True)
    silent = float(MORE.of_one()[0, 0])
    for place in range(2, 5):
        late = stats.binom.cdf(1, place, 1 - silent)
        assert late * (1 - 1e-9) <= one._chance(place)
        exact = 1 - (1 - late) ** releases
        assert exact * (1 - 1e-9) <= several._chance(place) <= min(1, 1.2 * releases * late)
