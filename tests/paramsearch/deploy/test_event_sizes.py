"""Events too large for a client: the bound of their probability, and files refused for it."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import mpmath
import pytest
from deployed import SUM, file
from javascript import answer
from places import SHIPPED

from accounting.base.errors import TooLarge
from accounting.model.configuration import Proposal
from accounting.model.mechanism import ExactBurst, ExactCentral, ExactNoise
from paramsearch import certify, load, uncertified
from paramsearch.deploy import Randomizer
from paramsearch.deploy.javascript import client_files
from paramsearch.deploy.noise_events import (
    MOST_MESSAGES,
    NoiseTerm,
    check_event_sizes,
    log_of,
    log_tail,
)
from paramsearch.parameters.assembly import assemble, reassembled
from paramsearch.parameters.parameter_file import ParameterFile, dumps

SMALL = [Fraction(1, 100), Fraction(1, 2), Fraction(9, 10), Fraction(999, 1000)]


def term(p: Fraction, m: int) -> NoiseTerm:
    return NoiseTerm((1,), Fraction(1), p, m, 1.0)


@pytest.mark.parametrize("p", SMALL)
@pytest.mark.parametrize("m", [1, 2, 7, 64])
@pytest.mark.parametrize("copies", [1, 16, 300])
def test_the_bound_of_a_burst_is_one(p: Fraction, m: int, copies: int) -> None:
    """Against the sum of all other probabilities, exactly."""
    fewer = sum(math.comb(k + m - 1, k) * p**k for k in range(copies)) * (1 - p) ** m
    assert log_of(1 - fewer) <= log_tail(term(p, m), copies)


@pytest.mark.parametrize("p", SMALL)
@pytest.mark.parametrize("copies", [1, 16, 300])
def test_the_bound_of_a_logarithmic_number_is_one(p: Fraction, copies: int) -> None:
    with mpmath.workdps(700):
        q = mpmath.mpf(p.numerator) / p.denominator
        whole = -mpmath.log(1 - q)
        more = (whole - mpmath.fsum(q**k / k for k in range(1, copies + 1))) / whole
        assert more > 0
        assert mpmath.log(more) <= log_tail(term(p, 0), copies)


def test_logarithms_of_rationals_beyond_doubles() -> None:
    assert log_of(Fraction(1)) == 0
    assert log_of(1 - Fraction(1, 10**400)) == 0
    assert log_of(1 - Fraction(1, 10**30)) == -1e-30
    assert -921.035 < log_of(Fraction(1, 10**400)) < -921.034


def test_no_file_of_the_package_is_refused() -> None:
    for path in sorted(SHIPPED.iterdir()):
        check_event_sizes(load(path))


def with_noise(**noise: object) -> ParameterFile:
    """A file with this noise on one atom; its certificate is another's and proves nothing."""
    proposal = Proposal.of({**SUM, "delta": 0.5, "atoms": [{"atom": [-1, 1], **noise}]})
    return reassembled(uncertified(proposal), file().certificate)


def edge(**noise: object) -> tuple[ParameterFile, ParameterFile]:
    """Two files whose p differ by a hundredth of 1 - p, with the limit between them."""
    low, high = 0.5, 1 - 2.0**-30
    while (1 - low) > 1.01 * (1 - high):
        p = 1 - math.sqrt((1 - low) * (1 - high))
        try:
            check_event_sizes(with_noise(p=p, **noise))
            low = p
        except TooLarge:
            high = p
    return with_noise(p=low, **noise), with_noise(p=high, **noise)


def test_both_clients_draw_the_same_line(tmp_path: Path) -> None:
    for name, content in client_files().items():
        (tmp_path / name).write_bytes(content)
    edges = [edge(r=1.0), edge(law="burst", rate=1.0, m=1), edge(law="burst", rate=10.0, m=64)]
    for good, bad in edges:
        Randomizer(good)
        with pytest.raises(TooLarge, match=r"2\^24 messages"):
            Randomizer(bad)
        with pytest.raises(TooLarge, match=r"2\^24 messages"):
            certify(bad)  # nobody could use it
    listed = [{"content": dumps(made)} for both in edges for made in both]
    found = answer(tmp_path, "loading.js", listed)
    assert found[::2] == [""] * len(edges)
    assert all("2^24 messages" in text for text in found[1::2])


def rare(p: Fraction, m: int, rate: Fraction = Fraction(1, 10**60)) -> ParameterFile:
    """A file with noise that practically never happens on one atom more, m = 0 for logarithmic."""
    good = file()
    law = ExactBurst(p=p, rate=rate, m=m) if m else ExactNoise(p=p, rate=rate)
    central = ExactCentral(p=Fraction(good.central.p), rate=Fraction(good.central.rate))
    atoms = [*((entry.atom, entry.exact()) for entry in good.atoms), ((-1, 1), law)]
    return assemble(good.problem, central, atoms, good.provenance, good.certificate)


@pytest.mark.parametrize("m", [0, 1, 64])
def test_rare_events_are_refused_where_most_are_too_large(tmp_path: Path, m: int) -> None:
    """c (1 - p) <= m p, whatever the rate; the limit p = c / (c + m) is exact, for both clients."""
    for name, content in client_files().items():
        (tmp_path / name).write_bytes(content)
    c = MOST_MESSAGES // 2
    limit = Fraction(c, c + (m or 1))
    bad = [rare(p, m) for p in (limit, limit + Fraction(1, 10**40), 1 - Fraction(1, 2**40))]
    good = [rare(p, m) for p in (limit - Fraction(1, 10**40), limit / 2)]
    for made in good:
        Randomizer(made)
    for made in bad:
        with pytest.raises(TooLarge, match=r"2\^24 messages"):
            Randomizer(made)
        with pytest.raises(TooLarge, match=r"2\^24 messages"):
            certify(made)
    found = answer(tmp_path, "loading.js", [{"content": dumps(made)} for made in [*good, *bad]])
    assert found[:2] == ["", ""]
    assert all("2^24 messages" in text for text in found[2:])


@pytest.mark.parametrize("k", [30, 60, 250, 400])
def test_the_numbers_of_a_tiny_p_are_those_of_both_clients(tmp_path: Path, k: int) -> None:
    """Was: r = rate / -log(1 - p) with 1 - p rounded in Python, and with p = 0 in JavaScript."""
    p, rate = Fraction(1, 10**k), Fraction(3, 10 ** min(k, 200))
    exact = rate / (p + p**2 / 2 + p**3 / 3)  # a relative p^3 / 4 above the truth
    for name, content in client_files().items():
        (tmp_path / name).write_bytes(content)
    one = rare(p, 0, rate)
    assert abs(Fraction(one.atoms[-1].r) / exact - 1) < Fraction(1, 2**52)
    central = ExactCentral(p=p, rate=rate)
    assert abs(float(central.share().mid()) / exact - 1) < Fraction(1, 2**52)
    good = file()
    other = assemble(
        good.problem,
        central,
        [(entry.atom, entry.exact()) for entry in good.atoms],
        good.provenance,
        good.certificate,
    )
    for made in (one, other, rare(p, 2, Fraction(1, 10))):
        Randomizer(made)
        assert answer(tmp_path, "loading.js", [{"content": dumps(made)}]) == [""]


def test_a_long_atom_has_fewer_copies() -> None:
    """What is harmless on two messages may be too much on many."""
    size = 1 << 12
    noise = {"r": 1.0, "p": 1 - 2.0**-12}
    check_event_sizes(with_noise(**noise))
    atoms = [{"atom": [-1, 1], "r": 1.0, "p": 0.5}, {"atom": [-size] + [1] * size, **noise}]
    long = uncertified(Proposal.of({**SUM, "max_value": 1, "delta": 0.5, "atoms": atoms}))
    with pytest.raises(TooLarge, match="shorter atoms"):
        check_event_sizes(long)
    assert MOST_MESSAGES // (size + 1) < 1 << 12
