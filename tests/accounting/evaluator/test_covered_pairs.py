"""Pairs that other pairs cover: the theorem about shifts in 40 digits, and both proofs on random
small protocols."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction
from functools import reduce

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounting import (
    Burst,
    Configuration,
    ExactCentral,
    ExactNoise,
    Mechanism,
    NegativeBinomial,
    Protocol,
)
from accounting.evaluator.build_view_pairs import ordered_pairs
from accounting.evaluator.evaluate import evaluate
from accounting.evaluator.noise_tables import noise_table
from accounting.evaluator.pairs.covered_pairs import covered_pairs
from accounting.evaluator.view_pairs import CentralMixture, ViewPairs
from accounting.model.change import Change
from accounting.model.laws.noise import Law, NoiseSum
from accounting.notary.notary import Notary

NB = NegativeBinomial
Parts = list[tuple[float, float]]
DIGITS = 40
NEGLIGIBLE = 1e-9


def law(parts: Parts, length: int) -> list[mp.mpf]:
    """Masses of a sum of negative binomials at 0..length-1."""
    total = [mp.mpf(1)] + [mp.mpf(0)] * (length - 1)
    for r, p in parts:
        one = [(1 - mp.mpf(p)) ** mp.mpf(r)]
        for k in range(1, length):
            one.append(one[-1] * mp.mpf(p) * (k - 1 + mp.mpf(r)) / k)
        total = [mp.fsum(total[j] * one[k - j] for j in range(k + 1)) for k in range(length)]
    return total


def divergence(f: list[mp.mpf], shift: int, gamma: mp.mpf, outcomes: int) -> mp.mpf:
    """Sum over the outcomes below ``outcomes`` of (f(z) - gamma f(z + shift))_+."""
    at = [f[z + shift] if z + shift >= 0 else mp.mpf(0) for z in range(outcomes)]
    return mp.fsum(max(f[z] - gamma * at[z], mp.mpf(0)) for z in range(outcomes))


reals = st.floats(1.0, 6.0, allow_nan=False)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(reals, st.floats(0.05, 0.6)), min_size=1, max_size=2),
    st.integers(0, 6),
    st.integers(0, 6),
    st.sampled_from([-1, 1]),
    st.floats(-3.0, 4.0),
)
def test_the_divergence_grows_with_the_shift(
    parts: Parts, one: int, other: int, sign: int, log_gamma: float
) -> None:
    with mp.workdps(DIGITS):
        length = 130
        f = law(parts, length)
        outcomes = length - 12
        tail = 1 - mp.fsum(f[:outcomes])
        gamma = mp.exp(log_gamma)
        less, more = sorted((one, other))
        small, large = (divergence(f, sign * shift, gamma, outcomes) for shift in (less, more))
        assert small <= large + tail + mp.mpf(10) ** (5 - DIGITS)


def tied(
    top: int, pool: list[NB], choice: list[int], *, hub: int = 0, step: float = 0.1
) -> Configuration:
    atoms = family(top, hub)
    noise = [(elements, pool[choice[i % len(choice)]]) for i, elements in enumerate(atoms)]
    return Configuration.of(top, noise, eps_central=step * top)


def family(top: int, hub: int) -> list[tuple[int, ...]]:
    """Ones, or with a hub that every value from there on uses."""
    atoms: list[tuple[int, ...]] = [(-1, 1)]
    if hub:
        atoms.append((-hub, *[1] * hub))
    for m in range(2, top + 1):
        atoms.append((m, -hub, *[-1] * (m - hub)) if 0 < hub <= m else (m, *[-1] * m))
    return atoms


def drawn(rng: random.Random, largest: int) -> Configuration:
    """A random triangular family; noises may be equal, and r is on both sides of 1."""
    top = rng.randint(2, largest)
    atoms: dict[int, tuple[int, ...]] = {-1: (-1, 1)}
    for m in rng.sample(range(2, top + 1), rng.randint(0, top - 1)):
        atoms[-m] = (-m, *[1] * m)
    for m in range(2, top + 1):
        rest, parts = m, [m]
        while rest:
            part = rng.choice([v for v in range(1, rest + 1) if -v in atoms])
            parts.append(-part)
            rest -= part
        if rng.random() < 0.3 and -m in atoms:
            parts = [m, -m]
        atoms[m] = tuple(parts)
    pool = [
        NB(rng.choice([rng.uniform(0.3, 1), 1.0, rng.uniform(1, 5)]), rng.uniform(0.2, 0.8))
        for _ in range(rng.choice([1, 2, 3, len(atoms)]))
    ]
    noise = [(elements, rng.choice(pool)) for elements in atoms.values()]
    return Configuration.of(top, noise, eps_central=rng.uniform(0.1, 3.0))


def exactly(config: Configuration) -> Mechanism:
    atoms = {
        elements: tuple(ExactNoise(p=Fraction(part.p), r=Fraction(part.r)) for part in noise.parts)
        for elements, noise in config.noise.items()
    }
    step = Fraction(config.eps_central) / config.max_value
    return Mechanism(config.max_value, atoms, ExactCentral(step=step))


def attack(seed: int, *, files: int, largest: int, points: int, most: int) -> int:
    """The notary's bounds of every covered pair and of its cover; the number of covered pairs."""
    rng, pruned = random.Random(seed), 0
    for _ in range(files):
        config = drawn(rng, largest)
        protocol = Protocol(config)
        if not config.family.exact:
            continue
        found, pairs = covered_pairs(protocol.view_pairs), ordered_pairs(config.max_value + 1)
        notary = Notary(exactly(config))
        covered = [q for q, cover in enumerate(found.cover.tolist()) if cover != q]
        assert all(found.cover[found.cover[q]] == found.cover[q] for q in covered)
        covered = rng.sample(covered, min(most, len(covered)))
        pruned += len(covered)
        known = {}
        for eps in [rng.uniform(0.0, 2.5) for _ in range(points)]:
            upper = evaluate(protocol.view_pairs, eps).upper
            for q in covered:
                if upper[q] < NEGLIGIBLE or upper[found.cover[q]] < NEGLIGIBLE:
                    assert upper[q] < 2 * NEGLIGIBLE  # the notary resolves these, but slowly
                    continue
                for at in (q, int(found.cover[q])):
                    if (at, eps) not in known:
                        change = Change(*map(int, pairs[at]))
                        bounds = notary.enclose(eps, gap=1e-3, claim=0.01, changes=[change])
                        known[at, eps] = bounds.enclosure
                cover = int(found.cover[q])
                assert known[q, eps].lower <= known[cover, eps].upper, (config, pairs[[q, cover]])
    return pruned


@pytest.mark.slow
def test_no_covered_pair_exceeds_its_cover() -> None:
    assert attack(1, files=25, largest=4, points=2, most=20) > 60


@pytest.mark.slow
def test_no_covered_pair_of_many_exceeds_its_cover() -> None:
    assert attack(2, files=250, largest=6, points=3, most=40) > 500


@pytest.mark.parametrize("releases", [1, 3])
def test_covered_pairs_do_not_change_the_largest_bounds(releases: int) -> None:
    rng = random.Random(7)
    for _ in range(12):
        whole = replace(Protocol(drawn(rng, 6)).view_pairs, releases=releases)
        found = covered_pairs(whole)
        every, kept = (
            evaluate(pairs, 0.8, gap=1e-3) for pairs in (whole, whole.subset(found.kept))
        )
        assert kept.upper.max() == pytest.approx(every.upper.max(), rel=1e-3)
        assert kept.lower.max() == pytest.approx(every.lower.max(), rel=1e-3)
        truth = every.lower <= kept.upper[np.searchsorted(found.kept, found.cover)] * (1 + 1e-12)
        assert truth.all()


def test_equal_pairs_are_covered_whatever_r() -> None:
    """With ones and equal noises, all pairs j, k > 1 at one distance have equal factors."""
    config = tied(6, [NB(3.0, 0.7), NB(0.5, 0.6)], [0, 1, 1, 1, 1, 1])
    protocol = Protocol(config)
    found = covered_pairs(protocol.view_pairs)
    pairs = ordered_pairs(7)
    for q, cover in enumerate(found.cover.tolist()):
        if cover != q:
            assert abs(np.subtract(*pairs[q])) == abs(np.subtract(*pairs[cover]))
    # among 3 -> 2, 4 -> 3, 5 -> 4 and 6 -> 5 at most one is kept, and so on
    assert found.count >= 10


Outcomes = tuple[np.ndarray, np.ndarray]
"""The probabilities of all outcomes, before and after the change."""


def shifted(noise: NoiseSum, shift: int) -> Outcomes:
    size = noise.length(1e-14)
    mass = noise_table(noise, size + 10).mass
    z = np.arange(size)
    return mass[z], np.where(z + shift >= 0, mass[z + shift], 0.0)


def mixed(noise: NoiseSum, step: float, m: int, b: int) -> Outcomes:
    """exact_view.md, Theorem 2, written out."""
    q, cases = math.exp(-step), []
    for i in range(m + 1):
        weight = 1.0 if m == 0 else q**i / (1 + q) * (1 - q if 0 < i < m else 1)
        before, after = shifted(noise, b + i)
        cases.append((weight * before, weight * after * math.exp((2 * i - m) * step)))
    before, after = np.concatenate(cases, axis=1)
    return before, after


def together(first: Outcomes, second: Outcomes) -> Outcomes:
    before, after = (np.outer(a, b).ravel() for a, b in zip(first, second, strict=True))
    return before, after


def crowd(laws: list[NoiseSum], central: CentralMixture | None) -> tuple[ViewPairs, list[Outcomes]]:
    """Pairs with one factor or two, and their outcomes; with central factors, one in each."""
    plain = np.array([(i, s) for i in range(len(laws)) for s in (-2, -1, 1, 2) if i or not central])
    outcomes = [shifted(laws[i], s) for i, s in plain.tolist()]
    alone, every = range(len(plain)), [[f] for f in range(len(plain))]
    if central is None:
        # of two large shifts only one: what they would cover is compared with each other
        size = np.abs(plain[:, 1])
        every += [[f, g] for f in alone for g in alone if f < g and size[f] + size[g] < 4]
    else:
        outcomes += [mixed(laws[0], central.step, m, b) for m, b in central.mix.tolist()]
        last = range(len(plain), len(outcomes))
        every = [[f, g] for f in alone for g in last] + [[g] for g in last]
    start = np.cumsum([0, *map(len, every)])
    view = ViewPairs(tuple(laws), plain, start, np.concatenate(every), central)
    known = [reduce(together, [outcomes[f] for f in pair]) for pair in every]
    return view, known


CROWDS: list[tuple[list[Law], bool]] = [
    ([NB(1000.0, 0.01), NB(1.0, 0.8), NB(0.3, 0.6)], False),
    ([NB(3.0, 0.5), Burst(5.0, 0.4, 8)], False),
    ([NB(3.0, 0.5), NB(2.0, 0.4)], True),
    ([Burst(5.0, 0.4, 8), NB(2.0, 0.4)], True),
]
"""The laws of all noises, and whether the first one is that of a mixture."""


@pytest.mark.parametrize(("laws", "central"), CROWDS, ids=str)
def test_every_cover_reveals_at_least_as_much(laws: list[Law], central: bool) -> None:
    """By enumeration, at any eps: of shifts, products and central factors."""
    mix = np.array([(m, b) for m in (0, 1, 3) for b in range(-4, 3)])
    sums = [NoiseSum.of(law) for law in laws]
    view, known = crowd(sums, CentralMixture(0, 0.3, mix) if central else None)
    found = covered_pairs(view)
    gammas = np.exp(np.linspace(-1.0, 8.0, 37))
    profile = np.array([[np.maximum(p - gamma * q, 0).sum() for gamma in gammas] for p, q in known])
    assert (profile <= profile[found.cover] + 1e-12).all()
    assert found.count >= len(known) / 8
