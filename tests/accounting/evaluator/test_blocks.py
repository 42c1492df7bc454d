"""All pairs in blocks, against all pairs at once."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

import accounting
from accounting import Configuration, NegativeBinomial, Protocol
from accounting.evaluator.build_view_pairs import (
    chosen_differences,
    chosen_pairs,
    differences,
    ordered_pairs,
    protocol_pairs,
)
from accounting.evaluator.evaluate import evaluate
from accounting.evaluator.pairs import blocks
from accounting.evaluator.pairs.all_pairs import bound_all
from accounting.evaluator.pairs.blocks import pairs_above
from accounting.model.change import Change, every_change
from accounting.model.family import UNIT, Family

NB = NegativeBinomial


def tied(family: Family, rng: random.Random, *, laws: int, least_r: float) -> Configuration:
    """Every atom has one of a few laws, with about the noise that its shifts need."""
    pool = [
        NB.from_mean(mean=40.0 * rng.uniform(1, 4), r=rng.uniform(least_r, 9)) for _ in range(laws)
    ]
    unit = NB.from_mean(mean=30.0 * family.max_value, r=10.0)
    noise = [(a, unit if a == UNIT else rng.choice(pool)) for a in family.atoms]
    return Configuration.of(family.max_value, noise, eps_central=rng.choice([0.1, 0.5, 0.85]))


def test_chosen_pairs_and_laws_do_not_change_the_bounds() -> None:
    config = tied(accounting.hubs(9), random.Random(1), laws=2, least_r=2.0)
    protocol, family = Protocol(config), config.family
    unit = family.atoms.index(UNIT)
    every = differences(family.sparse_columns)
    by_atom = protocol_pairs(protocol.noises, every, unit, config.step, np.arange(10))
    laws, law = protocol.laws
    assert len(laws) == 3
    assert len(by_atom.noises) == len(family.atoms) > 3
    assert len(protocol.view_pairs.plain) < len(by_atom.plain)
    one, other = (evaluate(pairs, 1.0, gap=1e-3) for pairs in (by_atom, protocol.view_pairs))
    assert one.upper == pytest.approx(other.upper, rel=1e-2, abs=1e-3 * one.upper.max())
    assert one.lower.max() <= other.upper.max() * (1 + 1e-9)
    some = ordered_pairs(10)[[3, 50, 3]]
    part = chosen_pairs(laws, family.sparse_columns, some, int(law[unit]), config.step, law)
    found = evaluate(part, 1.0, gap=1e-3)
    assert (found.lower <= other.upper[[3, 50, 3]]).all()
    assert (other.lower[[3, 50, 3]] <= found.upper).all()
    again = chosen_differences(family.sparse_columns, some)
    assert again.start[2] == again.start[1] + every.start[51] - every.start[50]


def test_places_of_pairs() -> None:
    source = Protocol(tied(accounting.hubs(7), random.Random(2), laws=2, least_r=2.0)).input_pairs
    pairs, places = ordered_pairs(8), np.arange(56)
    assert (source.position(pairs) == places).all()
    assert (source.at(places) == pairs).all()
    changes = every_change(max_value=7, dimension=3)
    assert [change.listed for change in changes[:56]] == [tuple(pair) for pair in pairs.tolist()]
    assert len(changes) == len(list(changes)) == 56 + 49
    assert changes[-1] == Change(7, 7, moved=True)
    assert changes.index(Change(2, 1, moved=True)) == 56 + 7
    assert [changes.index(change) for change in changes] == list(range(len(changes)))
    for missing in (Change(3, 3), Change(8, 0), Change(0, 1, moved=True)):
        with pytest.raises(ValueError, match="not one of these"):
            changes.index(missing)
    with pytest.raises(ValueError, match="not one of these"):
        changes.index(changes[9], 10)


@pytest.mark.parametrize("seed", range(6))
def test_blocks_agree_with_all_pairs_at_once(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_PAIRS", 70)
    monkeypatch.setattr(blocks, "_MIXTURES", 11)
    monkeypatch.setattr(blocks, "_SAMPLE", 20)
    rng = random.Random(seed)
    family = rng.choice([accounting.hubs(13), accounting.ones(6), accounting.halves(11)])
    config = tied(family, rng, laws=rng.choice([1, 2, 30]), least_r=rng.choice([0.4, 1.0]))
    releases = rng.choice([1, 1, 2])
    protocol = Protocol(config, releases, same_change=True)
    for eps in (0.0, 0.4, 1.0):
        truth = evaluate(protocol.view_pairs, eps, gap=1e-3)
        for claim in (truth.lower.max() * 0.3, truth.upper.max() * 1.1):
            found = pairs_above(protocol.input_pairs, eps, claim)
            assert truth.lower.max() <= found.largest
            places = protocol.input_pairs.position(found.pairs)
            assert len(set(places.tolist())) == len(places)
            missing = np.setdiff1d(np.flatnonzero(truth.lower > claim), places)
            assert not len(missing) or truth.lower[missing].max() <= found.upper.max()
            assert (truth.lower[places] <= found.upper).all()
        bounds = bound_all(protocol.input_pairs, eps, gap=1e-2)
        assert (truth.lower <= bounds.upper).all()
        assert (bounds.lower <= truth.upper).all()
        assert bounds.upper.max() - bounds.lower.max() <= 1.5e-2 * bounds.upper.max()
        covered = bounds.upper[bounds.compared]
        assert not len(covered) or covered.max() <= np.delete(bounds.upper, bounds.compared).max()


def test_a_large_protocol_is_evaluated_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    config = tied(accounting.hubs(12), random.Random(3), laws=3, least_r=2.0)
    whole = Protocol(config).delta(1.0, gap=1e-3)
    monkeypatch.setattr("accounting.protocol._AT_ONCE", 10)
    protocol = Protocol(config)
    found = protocol.delta(1.0, gap=1e-2)
    assert found.met
    assert len(found.changes) == len(found.upper) == 156
    closer = protocol.refined(found, gap=1e-4)
    assert closer.met
    for one in (found, closer):
        assert one.enclosure.lower <= whole.enclosure.upper
        assert whole.enclosure.lower <= one.enclosure.upper
    near = Protocol(replace(config)).delta_near(closer, gap=1e-3)
    assert near.enclosure.lower == pytest.approx(closer.enclosure.lower, rel=2e-3)
