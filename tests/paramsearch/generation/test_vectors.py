"""Vectors with one value: a change touches two coordinates, each with noise of its own."""

from __future__ import annotations

import json
import random
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from program import run
from small_claims import small_mechanism

import accounting
from accounting import (
    Configuration,
    InvalidConfiguration,
    InvalidParameter,
    NegativeBinomial,
    Protocol,
    Reference,
    Violated,
)
from accounting.base.balls import above, precision
from accounting.estimator.estimate import Estimator
from accounting.model.change import Change
from accounting.model.configuration import Proposal
from accounting.model.mechanism import ExactCentral, ExactNoise, Mechanism
from accounting.model.problem import Problem
from accounting.model.proof_types import BALL_2D, Tier
from accounting.model.question import Question
from accounting.notary.notary import Notary
from accounting.proof.prove import prove
from paramsearch import (
    Request,
    audit,
    certify,
    generate,
    load,
    save,
    uncertified,
)
from paramsearch.comparison import published_noise
from paramsearch.parameters.assembly import rescaled
from paramsearch.parameters.file_schema import schema
from paramsearch.parameters.parameter_file import ParameterFile, digest, from_json
from paramsearch.report import page as report
from paramsearch.report.sections import AuditedFile

NB = NegativeBinomial
SMALL: dict[str, Any] = {
    "max_value": 2,
    "dimension": 7,
    "eps": 1.5,
    "delta": 0.01,
    "n": 1000,
    "eps_central": 0.6,
    "atoms": [
        {"atom": [-1, 1], "r": 6.0, "p": 0.9},
        {"atom": [2, -1, -1], "r": 5.0, "p": 0.9},
    ],
}


def ones(unit: tuple[float, float], eps_central: float, share: float = 1.0) -> Mechanism:
    """Pairs of numbers 0 and 1."""
    return small_mechanism([unit], eps_central=eps_central, share=share, dimension=2)


@pytest.mark.parametrize("seed", range(12))
def test_both_tiers_enclose_the_enumerated_counts(seed: int) -> None:
    rng = random.Random(seed)
    unit = round(rng.uniform(0.3, 4), 3), round(rng.uniform(0.1, 0.5), 3)
    eps_central, eps = round(rng.uniform(0.8, 3), 3), round(rng.uniform(0, 3), 3)
    truth = Reference(ones(unit, eps_central)).enclose(eps).enclosure
    tiers: tuple[Tier, ...] = ("ball", "fast", "mixed")
    for tier in tiers:
        found = prove(ones(unit, eps_central), Question(eps=eps), tier=tier)
        assert found.enclosure.lower <= truth.upper
        assert truth.lower <= found.enclosure.upper
        assert sum(found.covered.values()) == 3


@pytest.mark.parametrize("share", [0.5, 0.75])
def test_some_honest_users(share: float) -> None:
    unit, eps_central, eps = (1.3, 0.4), 1.5, 1.0
    truth = Reference(ones(unit, eps_central, share)).enclose(eps).enclosure
    fraction = Fraction(share)
    # the fraction thins the atom's noise, too: give it what is left after that
    mechanism = ones((unit[0] / share, unit[1]), eps_central).thinned(fraction)
    found = Notary(mechanism).enclose(eps)
    assert set(found.covered) == {BALL_2D}
    assert found.enclosure.lower <= truth.upper
    assert truth.lower <= found.enclosure.upper


def test_a_move_is_the_product_of_its_halves_for_several_releases() -> None:
    mechanism = audited(SMALL)
    for releases in (1, 2, 3):
        ball, fast = (
            prove(mechanism, Question(eps=2.0, releases=releases), tier=tier) for tier in _TIERS
        )
        assert ball.enclosure.lower <= fast.enclosure.upper
        assert fast.enclosure.lower <= ball.enclosure.upper
        assert ball.worst_change == fast.worst_change == Change(2, 2, moved=True)


_TIERS: tuple[Tier, ...] = ("ball", "fast")


def audited(data: dict[str, Any]) -> Mechanism:
    return audit(Proposal.of(data)).mechanism


def test_without_the_moves_the_bound_is_false(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a proof that forgets the second coordinate does not contain the truth."""
    unit, eps_central, eps = (2.0, 0.4), 1.0, 1.0
    mechanism = ones(unit, eps_central)
    truth = Reference(mechanism).enclose(eps).enclosure
    assert truth.lower <= Notary(mechanism).enclose(eps).enclosure.upper
    monkeypatch.setattr(Mechanism, "changes", lambda *_: [Change(0, 1), Change(1, 0)])
    assert Notary(mechanism).enclose(eps).enclosure.upper < truth.lower


def test_every_move_is_at_least_each_of_its_halves() -> None:
    """Who sees both coordinates sees one of them; and the vector protocol contains the other."""
    config = Proposal.of(SMALL).configuration()
    vectors = Protocol(config).delta(1.5)
    single = Protocol(Proposal.of({**SMALL, "dimension": 1}).configuration()).delta(1.5)
    upper = dict(zip(vectors.changes, vectors.upper, strict=True))
    lower = dict(zip(single.changes, single.lower, strict=True))
    assert len(upper) == 6 + 4
    for j in (1, 2):
        for k in (1, 2):
            halves = lower[Change(j, 0)], lower[Change(0, k)]
            assert max(halves) <= upper[Change(j, k, moved=True)]
    assert all(lower[change] <= upper[change] for change in lower)


def test_the_samplers_deviation_counts_for_both_coordinates() -> None:
    central = ExactCentral(p=Fraction(1, 2), rate=Fraction(7, 10))
    noise = {(-1, 1): (ExactNoise(r=Fraction(2), p=Fraction(1, 2)),)}
    with precision(128):
        one = Mechanism(1, noise, central).deviation(1.0, 1, "substitution")
        two = Mechanism(1, noise, central, 2).deviation(1.0, 1, "substitution")
        single = Mechanism(1, noise, central, 2).deviation(1.0, 1, "zero-out")
        assert above(abs(single - one)) < 1e-30
        assert above(abs(two - 2 * one)) < 1e-30
        assert one > 0


@pytest.mark.parametrize(("top", "share", "mean"), [(1, 0.4, 110.0), (4, 0.45, 600.0)])
def test_estimates_of_moves(top: int, share: float, mean: float) -> None:
    family = accounting.ones(top)
    atoms = [(atom, NB.from_mean(mean=mean, r=15.0)) for atom in family.atoms]
    protocol = Protocol(Configuration.of(top, atoms, eps_central=share, dimension=2))
    truth = protocol.delta(1.0, gap=1e-3)
    parts = [noise.parts[0] for noise in protocol.view_pairs.noises]
    x = np.log([[part.mean for part in parts], [part.r for part in parts]])
    estimator = Estimator(protocol.view_pairs, eps=1.0, delta=truth.enclosure.upper)
    found = estimator.log_delta(x)
    worst = int(np.argmax(truth.lower))
    assert abs(found[worst] - np.log(truth.upper[worst])) < 0.03
    assert truth.changes[worst] == Change(top, top, moved=True)
    value, gradient = estimator.gradient(x, np.array([worst]))
    assert value[0] == found[worst]
    for t in range(2):
        for i in range(x.shape[1]):
            step = np.zeros_like(x)
            step[t, i] = 1e-5
            ends = [estimator.log_delta(x + s * step, np.array([worst]))[0] for s in (-1, 1)]
            slope = (ends[1] - ends[0]) / 2e-5
            assert abs(slope - gradient[0, t, i]) < 0.02 * np.abs(gradient).max()


def test_a_file_for_vectors(tmp_path: Path) -> None:
    file = certify(uncertified(Proposal.of(SMALL)))
    assert file.format == "correlated-noise-parameters/2"
    assert file.dimension == 7
    certificate = file.certificate
    assert certificate is not None
    assert sum(certificate.proof.values()) == 6 + 4
    assert certificate.worst_pair == (2, 0, 0, 2)
    alone = uncertified(Proposal.of({**SMALL, "dimension": 1}))
    assert alone.format == "correlated-noise-parameters/1"
    assert abs(file.cost.noise_messages - 7 * alone.cost.noise_messages) < 1e-9
    assert file.cost.bits_per_message == 5  # 7 coordinates with 3 values
    assert file.error.mse == alone.error.mse
    data = file.model_dump(mode="json")
    jsonschema.validate(data, schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**data, "format": alone.format}, schema())
    save(file, tmp_path / "file.json")
    assert load(tmp_path / "file.json") == file
    found = audit(file)
    assert found.verdict == "certified"
    assert found.confirmed
    again = certify(rescaled(file, 50))
    assert again.dimension == 7
    assert again.problem.n == 50


def test_a_violated_claim_names_the_move(tmp_path: Path) -> None:
    proposal = Proposal.of({**SMALL, "delta": 1e-4})
    with pytest.raises(Violated, match="the value 2 of one coordinate becomes 2 of another"):
        certify(uncertified(proposal))
    found = audit(proposal)
    assert found.verdict == "violated"
    assert found.satisfied_eps is not None
    assert found.satisfied_eps.upper > 1.5
    source = AuditedFile(source="x.json", sha256="0" * 64, audited_on=date(2021, 7, 18))
    report.write(tmp_path / "page.html", found, proposal, source)
    text = (tmp_path / "page.html").read_text()
    assert "the value 2 of one coordinate becomes 2 of another" in text
    assert "vectors of dimension 7" in text


def test_what_is_private_for_numbers_may_not_be_for_vectors() -> None:
    """The claim lies between: integers hold, vectors do not."""
    single = audit(Proposal.of({**SMALL, "dimension": 1, "delta": 1e-3}))
    vectors = audit(Proposal.of({**SMALL, "delta": 1e-3}))
    assert (single.verdict, vectors.verdict) == ("certified", "violated")


def _changed(file: ParameterFile, **changes: Any) -> dict[str, Any]:
    data = json.loads(json.dumps(file.model_dump(mode="json")))
    for where, value in changes.items():
        part, _, name = where.partition("__")
        if name:
            data[part][name] = value
        else:
            data[part] = value
    return {**data, "sha256": digest(data)}


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"format": "correlated-noise-parameters/1"}, "format"),
        ({"problem__dimension": 1}, "problem.dimension = 1"),
        ({"problem__dimension": 1 << 31}, "problem.dimension"),
        ({"problem__dimension": 2.5}, "problem.dimension"),
        ({"certificate__worst_pair": [2, 0, 1, 2]}, "no change"),
        ({"certificate__worst_pair": [2, 0, 0, 0]}, "no change"),
        ({"certificate__worst_pair": [2, 0, 0, 3]}, "no change"),
        ({"certificate__worst_pair": [2, 0, 0]}, "worst_pair"),
        ({"certificate__proof": {"ball": 6}}, "10 ordered pairs"),
    ],
)
def test_refused(changes: dict[str, Any], cause: str) -> None:
    file = certify(uncertified(Proposal.of(SMALL)))
    with pytest.raises(InvalidConfiguration, match=cause):
        from_json(_changed(file, **changes), source="x")


def test_format_1_has_no_dimension_and_no_moves() -> None:
    file = certify(uncertified(Proposal.of({**SMALL, "dimension": 1})))
    for changes in ({"problem__dimension": 2}, {"certificate__worst_pair": [2, 0, 0, 2]}):
        with pytest.raises(InvalidConfiguration):
            from_json(_changed(file, **changes), source="x")


def test_the_dimension_is_part_of_what_is_recomputed() -> None:
    vectors = certify(uncertified(Proposal.of(SMALL)))
    smaller = from_json(_changed(vectors, problem__dimension=5), source="x")
    found = audit(smaller)
    assert found.verdict == "rejected"
    assert "cost" in found.reason


@pytest.mark.parametrize("dimension", [0, -1, 1.5, "2", True, 1 << 31])
def test_odd_dimensions(dimension: Any) -> None:
    with pytest.raises(InvalidParameter, match="dimension"):
        Proposal.of({**SMALL, "dimension": dimension})


@pytest.mark.parametrize("top", [1, 3])
def test_generated_for_less_than_by_halving_eps(top: int) -> None:
    """The paper's way is (eps/2, delta/2) in each coordinate."""
    request = Request(n=10_000, eps=1.0, delta=1e-6, max_value=top, tries=6, dimension=50)
    made = generate(request)
    assert made.optimality is not None
    assert made.optimality.proven == made.optimality.listed
    assert audit(made.file).verdict == "certified"
    halved = Request(n=10_000, eps=0.5, delta=5e-7, max_value=top, tries=6)
    usual = generate(halved).file
    assert made.file.error.rmse <= 1.001 * usual.error.rmse
    assert made.file.cost.noise_messages < 0.75 * 50 * usual.cost.noise_messages


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    problem = ("--n", "1000", "--eps", "1", "--delta", "1e-6", "--max-value", "1")
    arguments = ("generate-sparse", *problem, "--tries", "2", "-o", str(path))
    done = run(*arguments, "--dimension", "1")
    assert done.returncode == 2
    assert "dimension = 1" in done.stderr
    assert not path.exists()
    done = run(*arguments, "--dimension", "20")
    assert done.returncode == 0, done.stderr
    assert "a vector of dimension 20" in done.stdout
    file = load(path)
    assert file.dimension == 20
    half = Problem(n=1000, eps=0.5, delta=5e-7, max_value=1)
    (theorem, _) = published_noise(half, central_fraction=file.central.eps_central / 0.5)
    messages = 1 + 20 * theorem.noise_messages / 1000
    assert f"{messages:,.5g} messages and {6 * messages:,.5g} bits per user" in done.stdout
    done = run(*arguments, "--dimension", "30", "--resume")
    assert done.returncode == 2
    assert "dimension = 20, not 30" in done.stderr
    done = run("audit", str(path), "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["dimension"] == 20
    done = run("generate", *problem, "-o", str(path), "--resume")
    assert done.returncode == 2
