"""The baselines: closed forms, small laws by enumeration, and runs against their own formulas."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from places import SHIPPED
from program import run
from scipy import stats

from accounting import InvalidParameter
from accounting.baselines import (
    Baseline,
    DiscreteLaplace,
    FragmentedRappor,
    Laplace,
    NonPrivate,
    RandomizedResponse,
    SplitAndMix,
    rappor,
    response,
)
from accounting.baselines.ikos import messages_needed
from accounting.baselines.interface import value_bits
from accounting.model.costs import noise_messages
from accounting.model.problem import Problem
from paramsearch.comparison import certified_noise, published_noise, shipped_file
from paramsearch.search import paper_parameters as paper
from paramsearch.search.target import Target

DATA = SHIPPED
ALL = (NonPrivate, DiscreteLaplace, Laplace, SplitAndMix, FragmentedRappor, RandomizedResponse)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("top", [1, 4])
def test_a_run_has_the_error_and_the_messages_of_the_formulas(kind: type, top: int) -> None:
    """600 runs with a fixed seed; five standard errors, and for the messages of all users."""
    problem = Problem(n=400, eps=1.0, delta=1e-3, max_value=top)
    baseline: Baseline = kind(problem)
    random = np.random.default_rng(7)
    # the error of randomized response is stated for the worst inputs; a sum in the middle of the
    # range cannot wrap around in split and mix
    values = np.repeat([0, top], 200)
    runs = [baseline.run(values, random) for _ in range(600)]
    errors = np.array([run.estimate - values.sum() for run in runs])
    squares = errors**2
    assert abs(squares.mean() - baseline.mse) <= 5 * squares.std() / math.sqrt(600) + 1e-9
    assert abs(errors.mean()) <= 5 * errors.std() / math.sqrt(600) + 1e-9
    counts = np.array([run.messages for run in runs], float)
    expected = 400 * baseline.messages
    if kind is FragmentedRappor:  # the formula is for users with a value; half have none
        flip = baseline.flip  # type: ignore[attr-defined]  # of this kind
        expected = 400 * top * flip + 200 * (1 - 2 * flip)
    assert abs(counts.mean() - expected) <= 5 * counts.std() / math.sqrt(600) + 1e-9


def binomial(n: int, p: Fraction) -> list[Fraction]:
    return [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]


@pytest.mark.parametrize(
    ("n", "f"), [(5, Fraction(1, 3)), (9, Fraction(1, 7)), (14, Fraction(2, 5))]
)
@pytest.mark.parametrize("eps", [0.0, 0.5, 1.5])
def test_rappor_by_enumeration(n: int, f: Fraction, eps: float) -> None:
    one = [Fraction(0)] * (n + 1)
    for k, mass in enumerate(binomial(n - 1, f)):
        one[k] += f * mass
        one[k + 1] += (1 - f) * mass
    none = binomial(n, f)
    scale = Fraction(math.exp(eps))
    truth = sum(
        max(Fraction(0), one[a] * none[b] - scale * none[a] * one[b])
        for a, b in itertools.product(range(n + 1), repeat=2)
    )
    found = rappor.divergence(n, float(f), eps)
    assert abs(found - float(truth)) <= 1e-12


@pytest.mark.parametrize("eps", [0.0, 0.7])
@pytest.mark.parametrize(("n", "g", "top"), [(4, Fraction(1, 2), 2), (5, Fraction(2, 3), 3)])
def test_randomized_response_by_enumeration(n: int, g: Fraction, top: int, eps: float) -> None:
    """All strings of messages if one user has 1 or 2 and all others have 0; the view is the counts
    of 1 and 2."""
    u = g / (top + 1)

    def law(value: int) -> list[Fraction]:
        return [u + (1 - g if sent == value else 0) for sent in range(top + 1)]

    first: dict[tuple[int, ...], Fraction] = {}
    second: dict[tuple[int, ...], Fraction] = {}
    for sent in itertools.product(range(top + 1), repeat=n):
        others = math.prod((law(0)[s] for s in sent[1:]), start=Fraction(1))
        key = sent.count(1), sent.count(2)
        first[key] = first.get(key, Fraction(0)) + others * law(1)[sent[0]]
        second[key] = second.get(key, Fraction(0)) + others * law(2)[sent[0]]
    scale = Fraction(math.exp(eps))
    truth = sum(max(Fraction(0), first[key] - scale * second[key]) for key in first)
    assert abs(response.divergence(n, float(g), top, eps) - float(truth)) <= 1e-12


@pytest.mark.parametrize(
    ("n", "g", "top", "eps"),
    [(300, 0.9, 2, 0.1), (5_000, 0.3, 100, 1.0), (100_000, 0.01, 5, 4.0), (10**9, 1e-6, 20, 0.5)],
)
def test_randomized_response_by_its_sum(n: int, g: float, top: int, eps: float) -> None:
    """The sum over all a and b in the docstring of the module."""
    u = g / (top + 1)
    a, mass = rappor.binomial(n, u)
    law = mass[:, None] * stats.binom.pmf(a[None, :], n - a[:, None], u / (1 - u))
    rest = (g - 2 * u) * (n - a[:, None] - a[None, :]) / (n * (1 - 2 * u))
    first = ((1 - g + u) * a[:, None] + u * a[None, :]) / (n * u) + rest
    truth = np.sum(law * np.clip(first - math.exp(eps) * first.T, 0, None))
    assert response.divergence(n, g, top, eps) == pytest.approx(truth, rel=1e-9)


def test_binary_randomized_response_by_enumeration() -> None:
    n, u = 8, Fraction(1, 5)
    one = [Fraction(0)] * (n + 1)
    for k, mass in enumerate(binomial(n - 1, u)):
        one[k] += u * mass
        one[k + 1] += (1 - u) * mass
    none, scale = binomial(n, u), Fraction(math.exp(0.4))
    truth = max(
        sum(max(Fraction(0), one[k] - scale * none[k]) for k in range(n + 1)),
        sum(max(Fraction(0), none[k] - scale * one[k]) for k in range(n + 1)),
    )
    assert abs(response.divergence(n, float(2 * u), 1, 0.4) - float(truth)) <= 1e-12


def test_the_searched_probabilities_are_the_smallest() -> None:
    flip = rappor.flip_probability(10_000, 1.0, 1e-6, "substitution")
    assert rappor.divergence(10_000, flip, 1.0) <= 1e-6
    assert rappor.divergence(10_000, flip * (1 - 1e-9), 1.0) > 1e-6
    chance = RandomizedResponse(Problem(n=10_000, eps=1.0, delta=1e-6, max_value=3)).chance
    assert response.divergence(10_000, chance, 3, 1.0) <= 1e-6
    assert response.divergence(10_000, chance * (1 - 1e-5), 3, 1.0) > 1e-6


def test_split_and_mix_has_the_published_constants() -> None:
    """32-bit numbers, 10^4 users, security 2^-40: 12 messages (arXiv 1909.11225)."""
    assert messages_needed(10_000, 32, 40) == 12
    with pytest.raises(InvalidParameter, match="at least 3 users"):
        messages_needed(2, 8, 20)


def test_what_the_paper_says_of_the_baselines() -> None:
    """RAPPOR: converges in n, grows as max_value^1.5, costs little; IKOS: over ten times."""
    errors = [
        FragmentedRappor(Problem(n=10**k, eps=1.0, delta=1e-6, max_value=5)).mse
        for k in (4, 5, 6, 7)
    ]
    assert math.sqrt(max(errors) / min(errors)) < 1.01
    first, second = (
        FragmentedRappor(Problem(n=10**6, eps=1.0, delta=1e-6, max_value=top)).mse
        for top in (50, 200)
    )
    assert 1.49 < math.log(second / first) / (2 * math.log(4)) < 1.51
    for top in (20, 50, 100, 200):
        rent = Problem(n=66_994_267, eps=1.0, delta=1e-6, max_value=top)
        assert FragmentedRappor(rent).bits < 1.01 * value_bits(rent)
        assert SplitAndMix(rent).bits > 10 * value_bits(rent)
    for eps in (0.1, 0.5, 0.99):
        problem = Problem(n=10**6, eps=eps, delta=1e-6, max_value=1)
        assert Laplace(problem).mse < 1.05**2 * DiscreteLaplace(problem).mse


def test_wrong_problems() -> None:
    good = {"n": 10, "eps": 1.0, "delta": 1e-6, "max_value": 1}
    for name, wrong in (("n", 0), ("n", 1), ("eps", 0.0), ("delta", 0.0), ("max_value", 0)):
        with pytest.raises(InvalidParameter):
            Laplace(Problem(**{**good, name: wrong}))  # type: ignore[arg-type]  # wrong on purpose


def test_the_protocol_behind_the_same_interface() -> None:
    """The paper's refined parameters: cost as its own formula says, error as simulated."""
    problem = Problem(n=300, eps=1.0, delta=1e-3, max_value=2)
    theorem, refined = published_noise(problem, central_fraction=0.9)
    assert refined.noise_messages < theorem.noise_messages
    target = Target(Problem(n=300, eps=1.0, delta=1e-3, max_value=2), 0.9)
    expected = noise_messages(target.step, paper.refined(target).atoms)
    assert refined.noise_messages == pytest.approx(expected, rel=1e-12)
    random = np.random.default_rng(3)
    values = np.repeat([0, 1, 2], 100)
    runs = [refined.run(values, random) for _ in range(2000)]
    squares = np.array([(run.estimate - 300) ** 2 for run in runs])
    assert abs(squares.mean() - refined.mse) <= 5 * squares.std() / math.sqrt(2000)
    counts = np.array([run.messages for run in runs], float)
    assert abs(counts.mean() - 200 - refined.noise_messages) <= 5 * counts.std() / math.sqrt(2000)


def test_the_paper_on_the_rent_experiment() -> None:
    """Its refined line: about 20.1 million noise messages, under 60% and under 20% more bits."""
    for top, most in ((20, 0.2), (200, 0.6)):
        problem = Problem(n=66_994_267, eps=1.0, delta=1e-6, max_value=top)
        refined = list(published_noise(problem, central_fraction=0.1))[1]
        assert refined.bits / value_bits(problem) - 1 < most
    assert 20.0e6 < refined.noise_messages < 20.3e6


def test_the_command() -> None:
    problem = ("--n", "1000", "--eps", "1", "--delta", "1e-6", "--max-value", "1")
    done = run("compare", *problem, "--tries", "1", "--json")
    assert done.returncode == 0, done.stderr
    rows = {row["mechanism"]: row for row in json.loads(done.stdout)["mechanisms"]}
    assert (
        rows["correlated noise, ours"]["messages_per_user"]
        < rows["Ghazi et al. 2020"]["messages_per_user"]
    )
    assert run("compare", *problem, "--central-fraction", "1").returncode == 2
    assert run("compare", *problem, "--plot", "x.txt").returncode == 2


def test_ours_on_the_rent_experiment() -> None:
    """At max_value 200: 0.15% more bits than without privacy, 256 symbols, 100,000 messages."""
    file = shipped_file(max_value=200, eps=1.0, delta=1e-6, central_fraction=0.1)
    assert file is not None
    problem = Problem(n=66_994_267, eps=1.0, delta=1e-6, max_value=200)
    assert len(file.alphabet) <= 256
    assert file.cost.noise_messages <= 100_000
    assert certified_noise(problem, file).bits / value_bits(problem) - 1 <= 0.0015


@pytest.mark.parametrize("eps", [0.0, 0.5, 1.5])
@pytest.mark.parametrize(("n", "f"), [(5, Fraction(1, 3)), (14, Fraction(2, 5))])
def test_rappor_under_zero_out_by_enumeration(n: int, f: Fraction, eps: float) -> None:
    """The count at the one position that a value takes or leaves."""
    one = [Fraction(0)] * (n + 1)
    for k, mass in enumerate(binomial(n - 1, f)):
        one[k] += f * mass
        one[k + 1] += (1 - f) * mass
    none = binomial(n, f)
    scale = Fraction(math.exp(eps))
    truth = max(
        sum(max(Fraction(0), p - scale * q) for p, q in zip(*laws, strict=True))
        for laws in ((one, none), (none, one))
    )
    assert abs(rappor.single_divergence(n, float(f), eps) - float(truth)) <= 1e-12


def test_no_baseline_needs_more_noise_under_zero_out() -> None:
    for top, dimension in ((1, 1), (4, 1), (1, 50), (3, 5)):
        problem = {"n": 5000, "eps": 1.0, "delta": 1e-5, "max_value": top, "dimension": dimension}
        for kind in ALL:
            substitution = kind(Problem(**problem))
            zero_out = kind(Problem(**problem, adjacency="zero-out"))
            assert zero_out.mse <= substitution.mse
            if kind in (DiscreteLaplace, Laplace) and dimension > 1:
                assert zero_out.mse < 0.26 * substitution.mse
