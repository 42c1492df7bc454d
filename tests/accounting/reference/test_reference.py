"""The reference: against vectors from elsewhere, against dictionaries, and against both proofs."""

from __future__ import annotations

import json
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import mpmath as mp
import pytest
from agreement import KINDS, answers, drawn
from places import EXAMPLES, ORACLES, SHIPPED
from small_claims import small_mechanism
from typer.testing import CliRunner

from accounting import (
    Change,
    Enclosure,
    ExactCentral,
    ExactNoise,
    Mechanism,
    Question,
    Reference,
    TooLarge,
    prove,
)
from accounting.base.deadline import OutOfTime
from accounting.base.errors import InvalidParameter
from accounting.notary.notary import Notary
from accounting.reference.definition import Pair, View
from accounting.reference.noise_masses import noise_masses
from accounting.reference.reference import Enumeration
from paramsearch import load
from paramsearch.certification.certify import claimed_mechanism
from paramsearch.cli.app import app

VECTORS = json.loads((ORACLES / "raw_view_vectors.json").read_text())["vectors"]
VECTOR_ACCURACY = 2e-10
SEEDS = 2
"""Random mechanisms of every kind."""
MANY = 100
"""The same, in the slow test."""
QUIET = ExactNoise(r=Fraction(3, 2), p=Fraction(1, 5))
FAMILIES: dict[str, tuple[int, list[tuple[int, ...]]]] = {
    "one": (1, [(-1, 1)]),
    "no noise but the central one": (1, []),
    "a message that nothing hides": (2, [(-1, 1)]),
    "two": (2, [(-1, 1), (-1, -1, 2)]),
    "a hub": (2, [(-1, 1), (-2, 1, 1), (-2, 2)]),
    "more atoms than values": (2, [(-1, 1), (-1, -1, 2), (-1, -1, -1, -1, 2, 2)]),
    "a message twice in its atom": (1, [(-1, 1), (-2, -2, 4)]),
    "the atom of 2 alone": (2, [(-1, -1, 2)]),
}


def of(vector: dict[str, Any]) -> Mechanism:
    atoms = {
        tuple(atom["atom"]): (ExactNoise(r=Fraction(atom["r"]), p=Fraction(atom["p"])),)
        for atom in vector["atoms"]
    }
    step = Fraction(vector["eps_central"]) / vector["Delta"]
    return Mechanism(vector["Delta"], atoms, ExactCentral(step=step))


def vector_complaints() -> Iterator[str]:
    """What is wrong with the vectors; those of the same mechanism share its enumeration."""
    alike: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for vector in VECTORS:
        about = {name: vector[name] for name in ("Delta", "eps", "eps_central", "atoms")}
        alike[json.dumps(about)].append(vector)
    for vectors in alike.values():
        changes = [Change(vector["x"], vector["x_prime"]) for vector in vectors]
        plays = [(change.coordinates, 0) for change in changes]
        enumeration = Enumeration(of(vectors[0]), vectors[0]["eps"], 1e-9, plays, changes, bits=53)
        for vector, value in zip(vectors, enumeration.sums(), strict=True):
            found, delta = enumeration.enclosure(value), vector["delta"]
            if not found.lower - VECTOR_ACCURACY <= delta <= found.upper + VECTOR_ACCURACY:
                yield f"{delta} is not in {found}"


@pytest.mark.slow
def test_vectors_that_were_made_elsewhere() -> None:
    assert list(vector_complaints()) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_three_answers_agree(kind: str, seed: int) -> None:
    case = drawn(kind, seed)
    found = answers(case)
    assert found.agree, found
    assert {"reference", "ball"} <= set(found.bounds)
    assert "honest" in kind or "fast" in found.bounds
    assert found.bounds["reference"].relative_gap <= 1e-2


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_three_answers_agree_for_two_thousand_mechanisms(kind: str) -> None:
    assert len(KINDS) * MANY >= 2000
    for seed in range(1000, 1000 + MANY):
        found = answers(drawn(kind, seed))
        assert found.agree, (kind, seed, found)
        assert {"reference", "ball"} <= set(found.bounds)


Law = dict[tuple[int, ...], mp.mpf]


def dictionary(mechanism: Mechanism, x: int, count: int) -> Law:
    """The law of the counts as the definition says it, with ``count`` masses of every noise."""
    central = mp.exp(-mp.mpf(mechanism.central.step.numerator) / mechanism.central.step.denominator)
    noises = [((1,), 1, central), ((-1,), 1, central)]
    for atom, parts in mechanism.atoms.items():
        noises += [
            (atom, *(mp.mpf(v.numerator) / v.denominator for v in (n.r, n.p))) for n in parts
        ]
    messages = sorted({*range(1, mechanism.max_value + 1), *(m for a, *_ in noises for m in a)})
    law: Law = {tuple(int(m == x) for m in messages): mp.mpf(1)}
    for atom, r, p in noises:
        new: Law = defaultdict(mp.mpf)
        for (u, weight), k in product(law.items(), range(count)):
            mass = mp.binomial(k + r - 1, k) * (1 - p) ** r * p**k
            new[tuple(u[i] + k * atom.count(m) for i, m in enumerate(messages))] += weight * mass
        law = new
    return law


@pytest.mark.parametrize("name", FAMILIES)
def test_dictionaries_say_the_same(name: str) -> None:
    top, atoms = FAMILIES[name]
    central = ExactCentral(step=Fraction(5, 2))
    mechanism = Mechanism(top, dict.fromkeys(atoms, (QUIET,)), central)
    count = 9 if len(atoms) < 3 else 6
    laws = [dictionary(mechanism, x, count) for x in range(top + 1)]
    missing = float(1 - sum(laws[0].values()))
    for change in mechanism.changes("substitution"):
        for eps in (0.0, 0.7):
            p, q = laws[change.before], laws[change.after]
            truth = float(sum(max(p[u] - mp.exp(eps) * q.get(u, 0), 0) for u in p))
            found = Reference(mechanism).of_sequence([change], eps)
            assert found.upper - found.lower <= 1e-9
            assert found.lower <= truth + missing + 1e-12
            assert truth - math.exp(eps) * missing - 1e-12 <= found.upper


def test_two_releases_by_all_transcripts() -> None:
    """Every strategy: for each first outcome, the second change that is worst after it."""
    central = ExactCentral(step=Fraction(5, 2))
    mechanism = Mechanism(1, {(-1, 1): (QUIET,)}, central)
    laws = [dictionary(mechanism, x, 9) for x in (0, 1)]
    missing = 2 * float(1 - sum(laws[0].values()))
    eps = 0.7
    pairs = [[(float(p[u]), float(q.get(u, 0))) for u in p] for p, q in (laws, laws[::-1])]
    truth = max(
        math.fsum(
            max(
                math.fsum(max(p * p2 - math.exp(eps) * q * q2, 0.0) for p2, q2 in then)
                for then in pairs
            )
            for p, q in first
        )
        for first in pairs
    )
    found = Reference(mechanism, 2).enclose(eps).enclosure
    assert found.lower <= truth + missing + 1e-10
    assert truth - math.exp(eps) * missing - 1e-10 <= found.upper
    fixed = Reference(mechanism).of_sequence([Change(0, 1), Change(1, 0)], eps)
    same = Reference(mechanism, 2, same_change=True).enclose(eps).enclosure
    assert max(fixed.lower, same.lower) <= found.upper


@pytest.mark.parametrize(("releases", "dimension"), [(1, 1), (2, 1), (1, 2)])
def test_mpmath_and_doubles_agree(releases: int, dimension: int) -> None:
    mechanism = small_mechanism([(1.5, 0.1)], eps_central=3.0, dimension=dimension)
    coarse = Reference(mechanism, releases).enclose(0.5, gap=1e-2)
    fine = Reference(mechanism, releases).enclose(0.5, gap=1e-9, claim=1e-9)
    assert coarse.precision == 53 < fine.precision
    assert coarse.enclosure.lower <= fine.enclosure.lower
    assert fine.enclosure.upper <= coarse.enclosure.upper
    assert fine.enclosure.relative_gap <= 1e-15


def test_delta_far_below_the_doubles() -> None:
    mechanism = small_mechanism([(6.0, 0.3)], eps_central=2.0)
    found = Reference(mechanism).enclose(5.5, claim=1e-30)
    other = Notary(mechanism).enclose(5.5, claim=1e-30).enclosure
    assert found.met
    assert found.enclosure.lower <= other.upper
    assert other.lower <= found.enclosure.upper


def test_eps_beyond_the_doubles() -> None:
    mechanism = small_mechanism([(2.0, 1e-4)], eps_central=20.0)
    found = Reference(mechanism).enclose(800.0, gap=1e-3)
    other = Notary(mechanism).enclose(800.0, gap=1e-3).enclosure
    assert found.precision > 53
    assert found.enclosure.lower <= other.upper
    assert other.lower <= found.enclosure.upper


@pytest.mark.parametrize("name", ["1-1-1e-06-0.9", "1-4-1e-10-0.9", "1-0.5-1e-08-0.5"])
def test_files_that_are_shipped(name: str) -> None:
    file = load(SHIPPED / f"{name}.json")
    question = Question(eps=file.problem.eps, claim=file.problem.delta)
    found = prove(claimed_mechanism(file), question, tier="reference")
    assert found.enclosure.upper <= file.problem.delta
    assert found.enclosure.relative_gap <= 1e-3
    assert file.certificate is not None
    assert found.enclosure.lower <= file.certificate.delta_upper
    assert file.certificate.delta_lower <= found.enclosure.upper


def test_the_mass_beyond_a_table_is_bounded() -> None:
    mechanism = small_mechanism([(0.4, 0.9), (30.0, 0.5)], eps_central=1.0)
    for tail in (1e-2, 1e-9):
        for noise in noise_masses(mechanism, tail, 53):
            assert noise.lost < tail
            rest = 1 - sum(float(mass.mid) for mass in noise.masses)
            assert rest <= float(noise.lost) + 1e-14


_pair, _masses = View.pair, noise_masses


def swapped(self: View, before: int, after: int) -> Pair:
    return _pair(self, after, before)


def copies_not_shifted(self: View, before: int, after: int) -> Pair:
    found = _pair(self, before, after)
    return replace(found, g=found.f)


def without_the_input(self: View, before: int, after: int) -> Pair:
    return _pair(self, before, 0)


def short_tables(mechanism: Mechanism, tail: Any, bits: int) -> Any:
    """Tails are cut, and not counted."""
    return [replace(noise, lost=0) for noise in _masses(mechanism, 0.05, bits)]


@pytest.mark.parametrize(
    ("place", "mistake"),
    [
        ("definition.View.pair", swapped),
        ("definition.View.pair", copies_not_shifted),
        ("definition.View.pair", without_the_input),
        ("reference.noise_masses", short_tables),
    ],
)
def test_planted_mistakes_are_noticed(
    place: str, mistake: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"accounting.reference.{place}", mistake)
    assert next(vector_complaints(), None) is not None


def test_what_is_too_large_is_refused_before_memory_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    central = ExactCentral(step=Fraction(9, 20))
    loud = (ExactNoise(r=Fraction(12), p=Fraction(97, 100)),)
    atoms = {tuple([-1] * m + [m]): loud for m in range(1, 8)}
    three = dict(list(atoms.items())[:3])
    with pytest.raises(TooLarge, match=r"outcomes here.*--tier ball"):
        Reference(Mechanism(3, three, central)).enclose(1.0)
    with pytest.raises(TooLarge, match=r"8 messages take about 10.*--tier ball"):
        Reference(Mechanism(7, atoms, central)).enclose(1.0)
    quiet = small_mechanism([(1.0, 0.1)], eps_central=3.0)
    for same_change in (False, True):
        with pytest.raises(TooLarge, match="about 10"):
            Reference(quiet, 10_000, same_change).enclose(1.0)
    with pytest.raises(TooLarge, match="eps = 20000"):
        Reference(quiet).enclose(2e4)
    monkeypatch.setattr("accounting.reference.noise_masses.MOST_MASSES", 1000)
    with pytest.raises(TooLarge, match="more than 1,000 outcomes"):
        Reference(Mechanism(1, {(-1, 1): loud}, central)).enclose(1.0)


def test_a_deadline_ends_it() -> None:
    mechanism = small_mechanism([(12.0, 0.98)], eps_central=0.9)
    with pytest.raises(OutOfTime):
        Reference(mechanism).enclose(1.0, deadline=time.monotonic() - 1)


def test_what_was_found_before_the_refinement_became_too_large_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mechanism = small_mechanism([(2.0, 0.4)], eps_central=2.0)
    whole = Enumeration.__init__

    def only_coarse(self: Enumeration, *arguments: Any, bits: int) -> None:
        if arguments[2] < 1e-9:
            raise TooLarge("too fine")
        whole(self, *arguments, bits=bits)

    monkeypatch.setattr(Enumeration, "__init__", only_coarse)
    eps = 6.0
    found = Reference(mechanism).enclose(eps, gap=1e-2, claim=0.9)
    truth = Notary(mechanism).enclose(eps).enclosure
    assert found.enclosure.lower <= truth.upper
    assert truth.lower <= found.enclosure.upper


def audited(tmp_path: Path, data: dict[str, Any], *options: str) -> tuple[int, dict[str, Any]]:
    path = tmp_path / "small.json"
    path.write_text(json.dumps(data))
    done = CliRunner().invoke(app, ["audit", str(path), "--tier", "reference", "--json", *options])
    return done.exit_code, json.loads(done.stdout)


SMALL: dict[str, Any] = {
    "max_value": 1,
    "eps": 1.0,
    "delta": 0.25,
    "n": 1000,
    "eps_central": 1.0,
    "atoms": [{"atom": [-1, 1], "r": 2.0, "p": 0.5}],
}


@pytest.mark.parametrize(
    ("options", "data", "pairs", "lower", "upper"),
    [
        ((), {}, 2, 0.1794, 0.1795),
        (("--honest", "0.5"), {}, 2, 0.4082, 0.4083),
        (("--releases", "2"), {}, 2, 0.4234, 0.4235),
        (("--releases", "2", "--same-change"), {}, 2, 0.4234, 0.4235),
        ((), {"dimension": 3}, 3, 0.3803, 0.3804),
    ],
)
def test_audits(
    tmp_path: Path,
    options: tuple[str, ...],
    data: dict[str, Any],
    pairs: int,
    lower: float,
    upper: float,
) -> None:
    code, found = audited(tmp_path, {**SMALL, **data}, "--verdict-only", *options)
    assert code == (0 if upper < 0.25 else 1)
    assert found["proof"] == {"enumeration": pairs}
    assert lower < found["delta_lower"] <= found["delta_upper"] < upper
    assert found["sampler_deviation"] == 0


def test_an_audit_of_what_is_too_large_is_undecided(tmp_path: Path) -> None:
    code, found = audited(tmp_path, SMALL, "--releases", "30")
    assert code == 3
    assert found["verdict"] == "undecided"
    assert "outcomes" in found["reason"]
    assert "--tier ball" in found["reason"]


def test_certificates_are_made_by_the_other_tiers(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    path = str(EXAMPLES / "sum_to_2.json")
    done = CliRunner().invoke(app, ["certify", path, "--tier", "reference", "-o", str(out)])
    assert isinstance(done.exception, InvalidParameter)
    assert "tier = 'reference'; known: auto, ball" in str(done.exception)
    assert not out.exists()


def test_bounds_are_rounded_outward() -> None:
    mechanism = small_mechanism([(2.0, 0.4)], eps_central=2.0)
    change = Change(0, 1)
    enumeration = Enumeration(mechanism, 1.0, 1e-9, [(change.coordinates, 0)], [change], bits=53)
    for value in (0.0, 1e-12, 0.3, 1.0):
        found = enumeration.enclosure(value)
        assert isinstance(found, Enclosure)
        assert 0 <= found.lower <= value <= found.upper <= 1
