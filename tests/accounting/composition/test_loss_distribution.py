"""Releases of several mechanisms, against enumeration, the induction and dp_accounting."""

from __future__ import annotations

import math
import random
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from mixed_releases import delta
from places import EXAMPLES, SHIPPED

from accounting import (
    ExactCentral,
    ExactNoise,
    InvalidConfiguration,
    InvalidParameter,
    LossDistribution,
    Mechanism,
    Proposal,
    TooLarge,
    Undecided,
)
from accounting.model.change import Adjacency
from accounting.model.question import Question
from accounting.proof.prove import prove
from accounting.reference.reference import Reference
from paramsearch import ParameterFile, certify, load, loss_distribution, read, rescaled, uncertified

FILE, STRONG = (load(SHIPPED / f"5-{eps}-1e-06-0.9.json") for eps in ("1", "0.25"))


def small(r: float, p: float, step: float, *, max_value: int = 1, dimension: int = 1) -> Mechanism:
    noise = (ExactNoise(p=Fraction(p), r=Fraction(r)),)
    atoms = dict.fromkeys([(-1, 1), (-1, -1, 2)][:max_value], noise)
    return Mechanism(max_value, atoms, ExactCentral(step=Fraction(step)), dimension)


def random_small(rng: random.Random, *, quiet: bool, **more: int) -> Mechanism:
    p = rng.uniform(0.1, 0.4) if quiet else rng.uniform(0.5, 0.8)
    return small(
        round(rng.uniform(0.4, 4), 3), round(p, 3), round(rng.uniform(0.8, 2.5), 3), **more
    )


def check_truth_inside(
    parts: list[tuple[Mechanism, int]], eps: float, adjacency: Adjacency
) -> None:
    truth = delta(parts, eps, adjacency)
    first, *others = (LossDistribution.of(m, times, adjacency=adjacency) for m, times in parts)
    whole = first.compose(*others)
    found = whole.delta(eps)
    assert found.lower <= truth.upper
    assert truth.lower <= found.upper
    # within 1 % in eps of the worst order and changes, unless delta is flat there
    if found.upper > 1.002 * truth.upper:
        assert found.upper <= delta(parts, 0.99 * eps, adjacency).upper
    # and the exported distribution is no smaller
    assert truth.lower <= whole.to_dp_accounting().get_delta_for_epsilon(eps)


@pytest.mark.parametrize("adjacency", ["substitution", "zero-out"])
@pytest.mark.parametrize("counts", [(1,), (2,), (1, 1), (2, 1), (1, 1, 1)])
@pytest.mark.parametrize("seed", range(2))
def test_the_truth_of_mixed_releases_is_inside(
    counts: tuple[int, ...], seed: int, adjacency: Adjacency
) -> None:
    rng = random.Random(f"{counts} {seed}")
    parts = [(random_small(rng, quiet=sum(counts) > 2), times) for times in counts]
    check_truth_inside(parts, rng.uniform(0.3, 2.5), adjacency)


@pytest.mark.parametrize("adjacency", ["substitution", "zero-out"])
@pytest.mark.parametrize(("max_value", "dimension"), [(2, 1), (1, 2)])
def test_the_truth_of_larger_values_and_of_vectors_is_inside(
    max_value: int, dimension: int, adjacency: Adjacency
) -> None:
    rng = random.Random(f"{max_value} {dimension}")
    kind = {"quiet": True, "max_value": max_value, "dimension": dimension}
    counts = (1,) if (dimension, adjacency) == (2, "substitution") else (1, 1)
    parts = [(random_small(rng, **kind), times) for times in counts]
    check_truth_inside(parts, rng.uniform(0.3, 2.5), adjacency)


def test_one_release_is_enclosed_closely() -> None:
    mechanism = FILE.mechanism()
    truth = prove(mechanism, Question(eps=1.0), tier="ball", gap=1e-4).enclosure
    found = LossDistribution.of(mechanism).delta(1.0)
    assert found.lower <= truth.upper
    assert truth.lower <= found.upper <= 1.005 * truth.lower
    assert found.lower >= 0.99 * truth.lower


@pytest.mark.parametrize(("releases", "eps"), [(2, 1.95), (10, 9.13)])
def test_releases_of_one_mechanism_agree_with_the_induction(releases: int, eps: float) -> None:
    exact = prove(FILE.mechanism(), Question(eps=eps, releases=releases), tier="fast").enclosure
    whole = LossDistribution.of(FILE.mechanism(), releases)
    found = whole.delta(eps)
    assert exact.lower <= found.upper <= 1.01 * exact.upper
    assert found.lower <= exact.upper
    assert whole.epsilon(exact.upper).upper <= 1.01 * eps
    # releases in any order with those of another mechanism are bounded by a product of pairs
    pair = whole._all.near(eps, gap=1e-4)
    nearer = prove(FILE.mechanism(), Question(eps=0.98 * eps, releases=releases), tier="fast")
    assert found.upper <= pair(eps).upper <= nearer.enclosure.upper


def test_a_hundred_releases_agree_with_the_induction() -> None:
    exact = prove(STRONG.mechanism(), Question(eps=9.35, releases=100), tier="fast").enclosure
    found = LossDistribution.of(STRONG.mechanism(), 100).delta(9.35)
    assert exact.lower <= found.upper <= 1.01 * exact.upper
    assert 0.99 * exact.lower <= found.lower <= exact.upper


@pytest.mark.slow
def test_eps_and_delta_are_inverse() -> None:
    month = loss_distribution(FILE, 30).compose(loss_distribution(STRONG, 12))
    eps = month.epsilon(1e-6)
    assert 25.7 < eps.lower <= eps.upper < 25.8
    assert eps.upper - eps.lower <= 1e-3 * eps.upper
    assert month.delta(eps.upper).upper <= 1.001e-6
    assert month.delta(eps.lower * 0.999).lower > 1e-6
    profile = month.profile([eps.upper, 20.0, 25.0], gap=0.02)
    assert [x for x, _ in profile] == [20.0, 25.0, eps.upper]
    assert [e.upper for _, e in profile] == sorted((e.upper for _, e in profile), reverse=True)
    assert [e.lower for _, e in profile] == sorted((e.lower for _, e in profile), reverse=True)


@pytest.mark.slow
def test_thousands_of_releases() -> None:
    found = loss_distribution(FILE, 5000).compose(loss_distribution(STRONG, 5000)).delta(1900.0)
    assert 0 < found.lower <= found.upper < 1
    assert found.upper < 2 * found.lower


noise = st.tuples(st.floats(0.5, 4.0), st.floats(0.2, 0.7), st.floats(0.6, 2.0))


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(noise, noise, st.integers(1, 3), st.floats(0.0, 3.0), st.floats(0.01, 1.0))
def test_composing_is_commutative_and_monotone(
    first: tuple[float, float, float],
    second: tuple[float, float, float],
    times: int,
    eps: float,
    more: float,
) -> None:
    a, b = (
        LossDistribution.of(
            Mechanism(
                1,
                {(-1, 1): (ExactNoise(p=Fraction(p), r=Fraction(r)),)},
                ExactCentral(step=Fraction(step)),
            )
        )
        for r, p, step in (first, second)
    )
    one, other = (
        x.delta(eps, gap=1e-3) for x in (a.power(times).compose(b), b.compose(a.power(times)))
    )
    assert max(one.lower, other.lower) <= min(one.upper, other.upper)
    assert a.delta(eps, gap=1e-3).lower <= one.upper  # more releases reveal no less
    assert a.power(times).compose(b).delta(eps + more, gap=1e-3).lower <= one.upper


def test_the_same_mechanism_is_counted_once() -> None:
    week = loss_distribution(FILE, 3).compose(loss_distribution(STRONG), loss_distribution(FILE, 4))
    assert week.times == (7, 1)
    assert week.power(2).times == (14, 2)
    assert week.releases == 8
    assert repr(week).startswith("<LossDistribution 7 + 1 releases of 2 mechanisms, any change")


def test_the_noise_is_that_of_the_honest_users() -> None:
    proposal = read(EXAMPLES / "sum_to_2.json")
    assert isinstance(proposal, Proposal)
    eps = 1.0
    found = {
        honest: loss_distribution(certify(uncertified(proposal, honest=honest))).delta(eps)
        for honest in (0.9, 1.0)
    }
    # everybody adds a ninth more, and what nine tenths of them add is the same again
    assert found[0.9].lower <= found[1.0].upper
    assert found[1.0].lower <= found[0.9].upper
    assert found[0.9].upper <= 1.001 * found[1.0].upper


@pytest.mark.slow
def test_under_zero_out_all_inputs_vanish_or_all_appear() -> None:
    """Against the induction, which has the same two directions; and substitution covers it."""
    mechanism, eps = load(EXAMPLES / "same_change_3_2_1e-6.json").mechanism(), 1.0
    for releases in (1, 2):
        question = Question(eps=eps, releases=releases, adjacency="zero-out")
        exact = prove(mechanism, question, tier="fast", gap=1e-3).enclosure
        whole = LossDistribution.of(mechanism, releases, adjacency="zero-out")
        found = whole.delta(eps)
        assert exact.lower <= found.upper <= 1.02 * exact.upper
        assert found.lower <= exact.upper
        every = LossDistribution.of(mechanism, releases).delta(eps)
        assert found.lower <= every.upper
        assert exact.lower <= every.upper
        # a law for data that is removed, and one for data that is added
        exported = whole.to_dp_accounting()
        assert not exported._symmetric
        assert exact.lower <= exported.get_delta_for_epsilon(eps)
    strong = LossDistribution.of(STRONG.mechanism(), 5, adjacency="zero-out")
    both = whole.compose(strong)
    assert both.adjacency == "zero-out"
    bounds = both.epsilon(1e-6)
    assert bounds.lower <= bounds.upper <= 1.05 * bounds.lower
    assert both.to_dp_accounting().get_epsilon_for_delta(1e-6) >= bounds.lower


@pytest.mark.parametrize(
    "eps", [0.5, 1.0, 1.2, *(pytest.param(eps, marks=pytest.mark.slow) for eps in (3.0, 10.0))]
)
def test_a_direction_without_large_losses_adds_nothing(eps: float) -> None:
    """Where an input vanishes, hardly any loss exceeds 1: delta is that of one that appears."""
    noise = ExactNoise(p=Fraction(24, 25), r=Fraction(12))
    mechanism = Mechanism(1, {(-1, 1): (noise,)}, ExactCentral(step=Fraction(9, 10)))
    truth = Reference(mechanism, adjacency="zero-out").enclose(eps, gap=1e-3).enclosure
    found = LossDistribution.of(mechanism, adjacency="zero-out").delta(eps)
    assert found.lower <= truth.upper
    assert truth.lower <= found.upper <= 1.01 * truth.upper


@pytest.mark.parametrize("times", [1, 2])
def test_a_search_for_eps_ends_where_the_bounds_near_it_are_weak(times: int) -> None:
    """The bounds made for the eps that holds have more than delta at infinity."""
    noise = ExactNoise(p=Fraction(71, 200), r=Fraction(39, 20))
    mechanism = Mechanism(1, {(-1, 1): (noise,)}, ExactCentral(step=Fraction(816, 1000)))
    whole = LossDistribution.of(mechanism, times, adjacency="zero-out")
    direction = replace(whole._all, directions=whole._all.directions[:1])
    found = direction.epsilon(1e-14, gap=1e-4, progress=print)
    assert direction.near(found.upper, gap=1e-4)(1.001 * found.upper).lower <= 1e-14
    assert whole.to_dp_accounting().get_delta_for_epsilon(1.0) >= whole.delta(1.0).lower


# --- with dp_accounting


@pytest.mark.parametrize(
    "file", [FILE, pytest.param(STRONG, marks=pytest.mark.slow)], ids=["eps 1", "eps 0.25"]
)
def test_exported_distributions_are_above_ours_and_close(file: ParameterFile) -> None:
    ours = loss_distribution(file)
    exported = ours.to_dp_accounting()
    for times in (1, 10, 100):
        eps = ours.power(times).epsilon(1e-6)
        theirs = exported.self_compose(times) if times > 1 else exported
        found = theirs.get_delta_for_epsilon(eps.upper)
        assert found >= ours.power(times).delta(eps.upper).upper
        assert eps.lower <= theirs.get_epsilon_for_delta(1e-6) <= 1.01 * eps.lower


def test_exported_masses_dominate_what_is_certified() -> None:
    ours = loss_distribution(FILE)
    exported = ours.to_dp_accounting()
    for eps in np.linspace(0.0, 2.0, 9):
        assert exported.get_delta_for_epsilon(float(eps)) >= ours.delta(float(eps)).lower


@pytest.mark.parametrize(
    "other",
    [
        pld.from_gaussian_mechanism(standard_deviation=4.0),
        pld.from_laplace_mechanism(parameter=2.0),
    ],
    ids=["gaussian", "laplace"],
)
def test_a_release_composes_with_googles_mechanisms(other: pld.PrivacyLossDistribution) -> None:
    ours = loss_distribution(FILE)
    exported = ours.to_dp_accounting()
    both = exported.compose(other)
    for eps in (0.5, 1.0, 1.5, 2.0):
        alone = max(ours.delta(eps).lower, other.get_delta_for_epsilon(eps) - 1e-9)
        # what is revealed together is at least what each reveals, and at most what adds up
        assert alone <= both.get_delta_for_epsilon(eps)
        split = ours.delta(eps / 2).upper + other.get_delta_for_epsilon(eps / 2)
        assert both.get_delta_for_epsilon(eps) <= split * 1.01


def test_several_mechanisms_are_exported_together() -> None:
    week = loss_distribution(FILE, 3).compose(loss_distribution(STRONG, 2))
    eps = week.epsilon(1e-6)
    found = week.to_dp_accounting().get_epsilon_for_delta(1e-6)
    assert eps.lower <= found <= 1.01 * eps.lower


# --- what is refused


def test_dimensions_and_adjacencies_are_not_mixed() -> None:
    ours = loss_distribution(FILE)
    vectors = LossDistribution.of(
        Mechanism(5, FILE.mechanism().atoms, FILE.mechanism().central, dimension=7)
    )
    with pytest.raises(InvalidParameter, match="dimensions 1 and 7 are mixed"):
        ours.compose(vectors)
    other = LossDistribution.of(FILE.mechanism(), adjacency="zero-out")
    with pytest.raises(InvalidParameter, match="adjacencies substitution and zero-out are mixed"):
        ours.compose(other)
    with pytest.raises(InvalidParameter, match="adjacency = 'add'"):
        LossDistribution.of(FILE.mechanism(), adjacency="add")  # type: ignore[arg-type]


@pytest.mark.parametrize("times", [0, -1, 1.5, "3", 10_001])
def test_numbers_of_releases_are_checked(times: object) -> None:
    with pytest.raises(InvalidParameter, match="times"):
        loss_distribution(FILE, times)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="times"):
        loss_distribution(FILE).power(times)  # type: ignore[arg-type]


def test_files_are_certified_and_consistent() -> None:
    with pytest.raises(InvalidConfiguration, match="not certified"):
        loss_distribution(rescaled(FILE, 1000))
    forged = FILE.model_copy(update={"cost": FILE.cost.model_copy(update={"noise_messages": 1.0})})
    with pytest.raises(InvalidConfiguration, match="noise_messages"):
        loss_distribution(forged)
    with pytest.raises(InvalidParameter, match="load"):
        loss_distribution("file.json")  # type: ignore[arg-type]


def test_part_of_the_central_noise_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="central noise"):
        LossDistribution.of(FILE.mechanism().thinned(Fraction(1, 2)))


def test_questions_are_checked() -> None:
    ours = loss_distribution(FILE)
    for wrong in (-1.0, math.nan):
        with pytest.raises(InvalidParameter, match="eps"):
            ours.delta(wrong)
    for wrong in (0.0, 1.0):
        with pytest.raises(InvalidParameter, match="delta"):
            ours.epsilon(wrong)
    for interval in (0.0, 0.5):
        with pytest.raises(InvalidParameter, match="value_discretization_interval"):
            ours.to_dp_accounting(interval)
    with pytest.raises(TooLarge, match="value_discretization_interval"):
        ours.to_dp_accounting(1e-9)
    weak = small(0.5, 0.1, 1.0)  # gives an input away with probability one half
    with pytest.raises(Undecided, match="no eps"):
        LossDistribution.of(weak).epsilon(1e-6)


def test_without_dp_accounting_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    with pytest.raises(InvalidParameter, match=r"paramsearch\[dp-accounting\]"):
        loss_distribution(FILE).to_dp_accounting()
