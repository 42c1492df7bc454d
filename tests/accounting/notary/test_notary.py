"""The notary against enumeration, closed forms and the fast evaluators."""

from __future__ import annotations

import random
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from flint import arb, arb_poly
from hypothesis import given, settings
from hypothesis import strategies as st
from small_claims import draw
from truth import masses

from accounting import Configuration, Family, NegativeBinomial, Protocol, Undecided
from accounting.base.balls import above, ball, below, ceil, floor, precision
from accounting.model.family import greedy, halves, hubs, ones, radix
from accounting.model.mechanism import ExactCentral, ExactNoise, Mechanism
from accounting.model.proof_types import Tier
from accounting.model.question import Question
from accounting.notary.columns import columns, revealed_value
from accounting.notary.factors import Factor, SplitLoss, dominating, grouped, labeled
from accounting.notary.notary import Notary
from accounting.notary.tables import NegativeBinomialPart as Part
from accounting.notary.tables import NoiseTable
from accounting.proof.directed_rounding import configuration
from accounting.proof.prove import prove
from paramsearch.certification.audit import audit, mechanism_of

CHUNK = 100


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 20))]
)
def test_verdicts_are_right(seed: int) -> None:
    """2,000 random configurations in all, two claims each, some within a millionth of the truth."""
    rng = random.Random(seed)
    for small in draw(seed, CHUNK):
        truth = small.truth
        for factor in rng.sample([1 - 1e-6, 1 + 1e-6, 0.999, 1.001, 0.9998, 1.0002, 0.5, 2.0], 2):
            claim = float(truth.lower * factor)
            if not 0 < claim < 1:
                continue
            found = audit(small.proposal(claim), explain=False)
            assert found.proof is not None
            assert found.proof.enclosure.lower <= truth.upper
            assert truth.lower <= found.proof.enclosure.upper
            if found.verdict == "certified":
                assert truth.lower <= claim
            elif found.verdict == "violated":
                assert truth.upper > claim
            else:
                assert abs(factor - 1) <= 1.001e-4


@pytest.mark.parametrize("seed", range(3))
def test_any_share_of_the_central_noise(seed: int) -> None:
    for small in draw(seed, 20, shares=(0.25, 0.5, 0.75, 0.875)):
        mechanism = mechanism_of(small.proposal()).thinned(Fraction(small.share))
        found = Notary(mechanism).enclose(small.eps)
        assert found.enclosure.lower <= small.truth.upper
        assert small.truth.lower <= found.enclosure.upper
        assert found.met


def test_more_than_the_whole_central_noise() -> None:
    for small in draw(7, 10, shares=(2.0,)):
        mechanism = mechanism_of(small.proposal())
        atoms = {
            atom: tuple(part.thinned(Fraction(2)) for part in parts)
            for atom, parts in mechanism.atoms.items()
        }
        thinned = Mechanism(mechanism.max_value, atoms, mechanism.central.thinned(Fraction(2)))
        found = Notary(thinned).enclose(small.eps)
        assert found.enclosure.lower <= small.truth.upper
        assert small.truth.lower <= found.enclosure.upper
        assert found.met
        assert found.enclosure.relative_gap <= 1e-4


@pytest.mark.parametrize(
    "family",
    [ones(7), halves(12), radix(30, 4), hubs(23), greedy(20, [9, 3]), greedy(5, [3])],
    ids=lambda family: f"{family.max_value}-{len(family.atoms)}",
)
def test_columns_invert_the_matrix(family: Family) -> None:
    """A c_v = 1_v by multiplication, and the columns agree with those of the model."""
    found = columns(family.max_value, family.atoms)
    assert found.exact
    for value, column in enumerate(found.of_input):
        counts = dict.fromkeys(family.values, 0)
        for atom, entry in column.items():
            for element in atom:
                counts[element] += entry
        rest = {element: count for element, count in counts.items() if count and element != 1}
        assert rest == ({value: 1} if value > 1 else {})
        sparse = family.sparse_columns[value]
        assert column == {family.atoms[index]: entry for index, entry in sparse.items()}


def test_columns_that_are_not_triangular_by_magnitude() -> None:
    """-5 is defined by a larger value, which peeling accepts."""
    atoms = [(-1, 1), (-2, 1, 1), (-6, 2, 2, 2), (-1, -1, 2), (-6, 1, 5)]
    found = columns(2, atoms)
    assert found.of_input[2] == {(-1, -1, 2): 1, (-1, 1): -2}
    with pytest.raises(Undecided, match="value 3"):
        columns(3, [(-1, 1), (-1, -1, 2), (-3, -3, 3, 3)])


@pytest.mark.parametrize(
    ("max_value", "atoms", "value"),
    [
        (2, [(-1, 1)], 2),
        (3, [(-1, 1), (-1, -1, 2)], 3),
        (3, [(-1, 1), (-2, -1, 3), (-1, -1, 2)], 3),  # 3 comes with -2, and -2 with nothing else
        (2, [(-1, 1), (-1, -1, 2)], None),
        (2, [(-1, -1, 2)], None),  # the central noise hides +1 and -1
        (1, [], None),
    ],
)
def test_messages_without_noise(
    max_value: int, atoms: list[tuple[int, ...]], value: int | None
) -> None:
    assert revealed_value(max_value, atoms) == value


@given(
    r=st.floats(0.05, 50),
    p=st.floats(0.01, 0.95),
    r2=st.floats(0.05, 20),
    p2=st.floats(0.01, 0.95),
    k=st.integers(0, 60),
)
@settings(max_examples=40, deadline=None)
def test_tables_of_sums(r: float, p: float, r2: float, p2: float, k: int) -> None:
    with mp.workdps(50), precision(160):
        first, second = (
            [mp.gamma(i + s) / mp.gamma(s) / mp.factorial(i) * (1 - mp.mpf(t)) ** s * mp.mpf(t) ** i
             for i in range(k + 1)]
            for s, t in ((mp.mpf(r), p), (mp.mpf(r2), p2))
        )  # fmt: skip
        truth = mp.fsum(first[i] * second[k - i] for i in range(k + 1))
        table = NoiseTable([Part(ball(r), ball(p)), Part(ball(r2), ball(p2))])
        at = table.at(np.array([k]))
        assert abs(mp.mpf(at.mass[k].mid().str(45, radius=False)) / truth - 1) < 1e-35
        estimate = table.log_masses(1e-12, k)[k]
        assert abs(estimate - float(mp.log(truth))) < 1e-9 * max(1, abs(estimate))


@given(
    r=st.floats(0.1, 30),
    p=st.floats(0.05, 0.9),
    shift=st.integers(-4, 4).filter(bool),
    eps=st.floats(0, 3),
    h=st.floats(0.01, 0.7),
    clip=st.sampled_from([1e-12, 1e-3, 0.2]),
)
@settings(max_examples=60, deadline=None)
def test_one_factor_from_both_sides(
    r: float, p: float, shift: int, eps: float, h: float, clip: float
) -> None:
    """For any grid and clipping, the upper bound is above the truth and the lower bound below."""
    with mp.workdps(40), precision(160):
        f, left = masses(r, p, mp.mpf(10) ** -30)
        more, _ = masses(r, p, mp.mpf(10) ** -60)
        scale = mp.exp(mp.mpf(eps))
        truth = mp.fsum(
            max(mass - scale * (more[z + shift] if 0 <= z + shift < len(more) else 0), 0)
            for z, mass in enumerate(f)
        )
        table = NoiseTable([Part(ball(r), ball(p))])
        step = ball(h)
        log_mass = table.log_masses(clip / 4, abs(shift))
        groups = grouped(table, [shift], step, clip, log_mass)[shift]
        law = dominating(groups, step)
        bound = law.infinite
        for i, mass in enumerate(law.poly.coeffs()):
            bound += mass * (1 - (ball(eps) - step * (law.base + i)).exp()).nonnegative_part()
        assert mp.mpf(above(bound)) >= truth
        first, second = labeled(groups, step)
        for threshold in (floor(ball(eps) / step), ceil(ball(eps) / step), 0):
            gain = first.infinite + first.above(threshold).poly(arb(1))
            gain -= ball(eps).exp() * second.above(threshold).poly(arb(1))
            assert mp.mpf(below(gain)) <= truth + left


def test_deviation_of_the_sampler_is_inside() -> None:
    """A central rate off by a thousandth: the truth by two-dimensional enumeration stays inside."""
    step = Fraction(1)
    with precision(128):
        ideal = float((-(1 - (-ball(step)).exp()).log()).mid())
    noise = {(-1, 1): (ExactNoise(p=Fraction(1, 2), r=Fraction(4)),)}
    for rate in (Fraction(ideal) * (1 + Fraction(1, 10**9)), Fraction(ideal) * Fraction(999, 1000)):
        near = Mechanism(1, noise, ExactCentral(step=step, rate=rate))
        exact = Mechanism(1, noise, ExactCentral(step=step))
        with precision(128):
            allowed = above(3.0 * near.central.deviation() * 1.2)
        one, other = (Notary(m).enclose(0.5, gap=1e-6).enclosure for m in (near, exact))
        assert abs(one.upper - other.upper) <= allowed + 2e-6 * other.upper
    found = Notary(Mechanism(1, noise, ExactCentral(step=step, rate=Fraction(ideal)))).enclose(0.5)
    assert 0 < found.deviation < 1e-14


def test_rates_and_shapes_are_the_same_noise() -> None:
    p, r = Fraction(9, 10), Fraction(12)
    with precision(256):
        rate = -(1 - ball(p)).log() * ball(r)
        close = Fraction(int(floor(rate * arb(2) ** 200)), 2**200)
        assert abs(ExactNoise(p=p, rate=close).shape() - 12) < 1e-50


def small_protocol(max_value: int, mean: float, eps_central: float = 0.9) -> Configuration:
    family = greedy(max_value, [3]) if max_value > 3 else ones(max_value)
    atoms = [
        (s, NegativeBinomial.from_mean(mean=mean * (2 if s == (-1, 1) else 1), r=12))
        for s in family.atoms
    ]
    return Configuration.of(max_value, atoms, eps_central=eps_central)


def exactly(config: Configuration) -> Mechanism:
    atoms = {
        atom: tuple(ExactNoise(p=Fraction(part.p), r=Fraction(part.r)) for part in noise.parts)
        for atom, noise in config.noise.items()
    }
    central = ExactCentral(step=Fraction(config.eps_central) / config.max_value)
    return Mechanism(config.max_value, atoms, central)


@pytest.mark.parametrize(
    ("max_value", "mean", "eps_central", "releases"),
    [(1, 150, 0.9, 1), (2, 300, 0.9, 2), (5, 480, 0.9, 1), (5, 60, 0.3, 3), (8, 300, 0.2, 1)],
)
def test_agrees_with_the_fast_evaluators(
    max_value: int, mean: float, eps_central: float, releases: int
) -> None:
    """Two proofs without common code: their enclosures must overlap."""
    config = small_protocol(max_value, mean, eps_central)
    assert configuration(exactly(config), noise="less") == config
    fast = Protocol(config, releases).delta(1.0, gap=1e-3).enclosure
    slow = Notary(exactly(config), releases).enclose(1.0).enclosure
    assert max(fast.lower, slow.lower) <= min(fast.upper, slow.upper)
    assert slow.upper - slow.lower <= 1e-4 * slow.upper


@pytest.mark.parametrize("tier", ["ball", "mixed", "fast"])
def test_tiers_cover_every_pair(tier: Tier) -> None:
    mechanism = exactly(small_protocol(5, 480))
    found = prove(mechanism, Question(eps=1.0, claim=1e-6), tier=tier)
    assert sum(found.covered.values()) == 30
    assert found.enclosure.upper <= 1e-6
    reference = Notary(mechanism).enclose(1.0).enclosure
    assert found.enclosure.lower <= reference.upper
    assert reference.lower <= found.enclosure.upper


def test_doubles_are_rounded_towards_less_or_more_noise() -> None:
    third = Fraction(1, 3)
    noise = {(-1, 1): (ExactNoise(p=third, rate=Fraction(7, 3)),)}
    mechanism = Mechanism(1, noise, ExactCentral(p=third))
    less, more = (configuration(mechanism, noise=side) for side in ("less", "more"))
    ((low,), (high,)) = (config.noise[-1, 1].parts for config in (less, more))
    assert Fraction(low.p) < third < Fraction(high.p)
    with mp.workdps(40):
        shape = mp.mpf(7) / 3 / -mp.log(mp.mpf(2) / 3)
        assert mp.mpf(low.r) < shape < mp.mpf(high.r)
        assert mp.mpf(less.eps_central) > mp.log(3) > mp.mpf(more.eps_central)


def test_balls_round_outwards() -> None:
    with precision(128):
        third = ball(Fraction(1, 3))
        assert Fraction(below(third)) < Fraction(1, 3) < Fraction(above(third))
        assert (floor(third), ceil(third)) == (0, 1)
        assert (floor(-third), ceil(-third)) == (-1, 0)
        assert above(arb(0)) == below(arb(0)) == 0


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.fractions(0, 1, max_denominator=999), max_size=12),
    st.lists(st.fractions(0, 1, max_denominator=999), max_size=12),
    st.tuples(st.integers(-9, 9), st.integers(-9, 9), st.integers(-30, 30)),
    st.tuples(st.fractions(0, 3), st.fractions(Fraction(1, 50), 1)),
)
def test_large_losses_of_a_sum_without_its_law(
    first: list[Fraction],
    second: list[Fraction],
    places: tuple[int, int, int],
    sizes: tuple[Fraction, Fraction],
) -> None:
    """Partial sums of two laws against all pairs of outcomes, at four times the precision."""
    (a, b, threshold), (eps, h) = places, sizes
    every = [(a + i + b + j, x * y) for i, x in enumerate(first) for j, y in enumerate(second)]
    large = [(at, mass) for at, mass in every if at >= threshold]
    with precision(128):
        loss = SplitLoss(
            Factor(a, arb_poly(list(map(ball, first))), ball(Fraction(1, 7))),
            Factor(b, arb_poly(list(map(ball, second))), ball(Fraction(2, 5))),
        )
        found = loss.excess(threshold, ball(eps), ball(h))
        assert loss.infinite.overlaps(ball(Fraction(17, 35)))
        assert found.rad() < 1e-20
        mass = loss.mass_from(threshold)
    with precision(512):
        parts = [ball(mass) * (1 - (ball(eps) - ball(at * h)).exp()) for at, mass in large]
        assert found.contains(sum(parts, arb(0)))
        assert mass.contains(ball(sum((mass for _, mass in large), Fraction(0))))
