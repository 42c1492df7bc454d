"""How many noise events there are, and how large an upload may be, against sums over all draws."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from accounting import ExactBurst, ExactCentral, ExactNoise, Mechanism
from accounting.base.balls import above, ball, below, precision
from accounting.base.errors import InvalidParameter, TooLarge
from accounting.model import upload_sizes
from accounting.model.mechanism import ExactLaw
from accounting.model.upload_sizes import _Term, _Uploads, largest_upload
from paramsearch import load
from paramsearch.tables.lookup import shipped_folder


def mechanism(*, scale: int = 1, burst: bool = False, dimension: int = 1) -> Mechanism:
    """max_value 2 with noise on two atoms."""
    unit: ExactLaw = ExactNoise(p=Fraction(3, 4), rate=Fraction(4 * scale))
    if burst:
        unit = ExactBurst(p=Fraction(1, 2), rate=Fraction(3 * scale), m=3)
    other = ExactNoise(p=Fraction(1, 2), r=Fraction(2 * scale))
    central = ExactCentral(p=Fraction(2, 5), rate=Fraction(scale, 2))
    return Mechanism(2, {(-1, 1): (unit,), (-1, -1, 2): (other,)}, central, dimension)


def copies(law: ExactLaw, users: int, size: int) -> np.ndarray:
    """The law of the number of copies that one of ``users`` users draws, below ``size``."""
    if isinstance(law, ExactNoise):
        r = float(law.shape().mid()) / users
        return stats.nbinom.pmf(np.arange(size), r, 1 - float(law.p))
    one = np.zeros(size)
    one[1:] = stats.nbinom.pmf(np.arange(size - 1), law.m, 1 - float(law.p))
    found, power = np.zeros(size), np.eye(1, size)[0]
    for events in range(40):
        found += stats.poisson.pmf(events, float(law.rate) / users) * power
        power = np.convolve(power, one)[:size]
    return found


def drawn(m: Mechanism, users: int, size: int) -> np.ndarray:
    """The law of the number of noise messages of one user, below ``size``."""
    central = ExactNoise(p=m.central.p or Fraction(0), rate=m.central.rate)
    law = np.eye(1, size)[0]
    for _ in range(m.dimension):
        for length, part in [(1, central), (1, central)] + [
            (len(atom), part) for atom, parts in m.atoms.items() for part in parts
        ]:
            spread = np.zeros(size)
            few = copies(part, users, (size + length - 1) // length)
            spread[::length] = few
            law = np.convolve(law, spread)[:size]
    return law


@pytest.mark.parametrize("burst", [False, True])
@pytest.mark.parametrize(
    ("users", "scale", "dimension", "longer"),
    [(10_000, 1, 1, 1.05), (100, 1, 1, 1.5), (20, 1, 3, 1.75), (5, 1, 1, 1.75), (3, 4, 1, 1.5)],
)
def test_uploads_of_the_law_of_all_draws(
    burst: bool, users: int, scale: int, dimension: int, longer: float
) -> None:
    """Users with one event, and with several: never fewer messages than needed, hardly more."""
    m = mechanism(scale=scale, burst=burst, dimension=dimension)
    tail = np.cumsum(drawn(m, users, 1500)[::-1])[::-1]
    truth = -np.expm1(users * np.log1p(-np.minimum(tail[1:], 1 - 1e-16)))  # [k]: more than k
    with precision(192):
        uploads = _Uploads(m, users)
        for messages in (2, 12, 30, 60, 100):
            assert truth[messages] * (1 - 1e-9) <= uploads.some_exceed(messages) <= 1
    for allowed in (0.1, 1e-2, 1e-4, 1e-6):
        needed = int(np.argmax(truth <= allowed)) + 1
        assert needed <= largest_upload(m, users, allowed) <= math.ceil(longer * needed)


def test_the_smallest_number_is_found() -> None:
    m = mechanism()
    with precision(192):
        uploads = _Uploads(m, 1000)
        for allowed in (0.3, 1e-2, 1e-4, 2.0**-40):
            found = largest_upload(m, 1000, allowed) - 1
            assert uploads.some_exceed(found) <= allowed < uploads.some_exceed(found - 1)


def test_no_noise_worth_mentioning_is_one_message() -> None:
    """The value itself; noise beside it is rarer than what is asked for."""
    central = ExactCentral(p=Fraction(1, 100), rate=Fraction(1, 10**9))
    assert largest_upload(Mechanism(1, {}, central), 10, 1e-4) == 1


@pytest.mark.parametrize("p", ["1/2", "9/10", "999/1000"])
@pytest.mark.parametrize("times", [1, 5, 20])
def test_tails_of_logarithmic_numbers(p: str, times: int) -> None:
    """Against sums of masses: never below, and close."""
    exact, c = Fraction(p), math.ceil(times / (1 - Fraction(p)))
    j = np.arange(c + 1, c + 1 + math.ceil(60 / (1 - exact)))
    truth = math.fsum(np.exp(j * math.log(exact)) / j) / -math.log(1 - exact)
    with precision(192):
        term = _Term(1, ball(1.0), ball(exact), ball(1 - exact), 0)
        found = term.exceeds(c)
        assert below(found) >= truth * (1 - 1e-10)
        assert above(found) <= truth * 1.001


@pytest.mark.parametrize(("p", "m", "c"), [("1/2", 1, 3), ("9/10", 4, 60), ("1/3", 64, 90)])
def test_tails_of_bursts(p: str, m: int, c: int) -> None:
    exact = Fraction(p)
    truth = 1 - sum(
        (math.comb(j + m - 1, j) * exact**j * (1 - exact) ** m for j in range(c)), Fraction(0)
    )
    with precision(192):
        found = _Term(1, ball(1.0), ball(exact), ball(1 - exact), m).exceeds(c)
        assert abs(found - ball(truth)) <= ball(truth) * 1e-40


def test_expected_events() -> None:
    """The sum of all rates, both central ones included, in every coordinate."""
    with precision(192):
        m = mechanism()
        of_r = -2 * (1 - ball(Fraction(1, 2))).log()
        assert abs(m.event_rate() - (4 + of_r + 1)) < 1e-40
        assert abs(replace(m, dimension=7).event_rate() - 7 * m.event_rate()) < 1e-40
        step = Fraction(9, 10)
        central = replace(m, central=ExactCentral(step=step, fraction=Fraction(1, 3)))
        of_step = -(1 - (-ball(step)).exp()).log() / 3
        assert abs(central.event_rate() - (4 + of_r + 2 * of_step)) < 1e-40


def test_the_file_for_numbers_up_to_five() -> None:
    file = load(shipped_folder() / "files" / "5-1-1e-06-0.9.json")
    with precision(192):
        assert 257 < file.mechanism().event_rate() < 258
    # the largest of 20,000 simulated releases: 353 in one half, 1,185 in one of a thousand
    assert 350 <= largest_upload(file.mechanism(), 1_000_000, 0.5) <= 400
    assert 1100 <= largest_upload(file.mechanism(), 1_000_000, 1e-3) <= 1200


def test_odd_numbers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for users, probability in ((0, 0.5), (-1, 0.5), (1.5, 0.5), (10, 0.0), (10, 1.0)):
        with pytest.raises(InvalidParameter):
            largest_upload(mechanism(), users, probability)  # type: ignore[arg-type]
    huge = ExactNoise(p=1 - Fraction(1, 10**40), rate=Fraction(50))
    with pytest.raises(TooLarge, match="smaller p"):
        largest_upload(replace(mechanism(), atoms={(-1, 1): (huge,)}), 10, 1e-4)
    monkeypatch.setattr(upload_sizes, "_MOST_TERMS", 2)
    with pytest.raises(TooLarge, match="at most 2 noises"):
        largest_upload(mechanism(), 10, 1e-4)
