"""Several releases: any sequence of changes, against enumeration and against each other."""

from __future__ import annotations

import json
import random
from datetime import date
from fractions import Fraction
from pathlib import Path

import jsonschema
import pytest
from places import EXAMPLES, SHIPPED
from small_claims import random_mechanism
from typer.testing import CliRunner

from accounting import (
    Configuration,
    Enclosure,
    InvalidConfiguration,
    InvalidParameter,
    Mechanism,
    NegativeBinomial,
    Protocol,
    Reference,
)
from accounting.composition.any_sequence import sequence
from accounting.evaluator.evaluate import evaluate
from accounting.model.change import Change
from accounting.model.configuration import Proposal
from accounting.model.question import Question
from accounting.notary.notary import Notary
from accounting.proof.directed_rounding import configuration
from accounting.proof.prove import prove
from accounting.proof.satisfied_eps import satisfied_eps
from paramsearch import Request, audit, generate, load
from paramsearch.certification.audit import mechanism_of
from paramsearch.cli.app import app
from paramsearch.parameters.claim import Claim
from paramsearch.parameters.file_schema import schema
from paramsearch.parameters.parameter_file import ParameterFile, dumps, from_json
from paramsearch.parameters.words import file_claim_in_words
from paramsearch.report import page as report
from paramsearch.report.sections import AuditedFile


def truth(mechanism: Mechanism, eps: float, releases: int) -> Enclosure:
    return Reference(mechanism, releases).enclose(eps, gap=1e-2).enclosure


def bounds(mechanism: Mechanism, eps: float, releases: int) -> tuple[Enclosure, Enclosure]:
    """By the notary (with adaptive lower bounds), and by the fast evaluators."""
    ball = Notary(mechanism, releases).enclose(eps, gap=1e-3, claim=None).enclosure
    config = configuration(mechanism, noise="less")
    assert config == configuration(mechanism, noise="more")  # the doubles it was made of
    return ball, Protocol(config, releases).delta(eps, gap=1e-3).enclosure


def check(mechanism: Mechanism, eps: float, releases: int, rng: random.Random) -> None:
    exact = truth(mechanism, eps, releases)
    found = bounds(mechanism, eps, releases)
    # within 1 % in eps of the worst sequence, which is adaptive, unless delta is flat there
    near = max(truth(mechanism, 0.99 * eps, releases).upper, 1.002 * exact.upper)
    for enclosure in found:
        assert enclosure.lower <= exact.upper
        assert exact.lower <= enclosure.upper <= near
    changes = mechanism.changes("substitution")
    for _ in range(5):
        sequence = [rng.choice(changes) for _ in range(releases)]
        fixed = Reference(mechanism).of_sequence(sequence, eps)
        assert fixed.lower <= min(enclosure.upper for enclosure in found)


def many(rng: random.Random, count: int) -> None:
    for _ in range(count):
        releases, double = rng.choice([(1, True), (2, True), (1, False), (2, False), (3, False)])
        mechanism = random_mechanism(rng, double=double, quiet=double or releases == 3)
        check(mechanism, rng.uniform(0.3, 2.5), releases, rng)


@pytest.mark.parametrize("seed", range(4))
def test_truth_is_inside_for_random_mechanisms(seed: int) -> None:
    many(random.Random(seed), 3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_truth_is_inside_for_five_hundred_mechanisms(seed: int) -> None:
    many(random.Random(seed), 25)


ROWS = [
    ("same_change_3_2_1e-6", 2, 1.0, 1e-6, 7.00e-6, {(0, 2): 1, (3, 0): 1}),
    ("same_change_5_2_1e-6", 2, 1.0, 1e-6, 8.26e-6, {(0, 5): 1, (5, 2): 1}),
    ("same_change_3_2_1e-10", 2, 1.0, 1e-10, 1.09e-8, {(0, 2): 1, (3, 0): 1}),
    ("same_change_3_3_1e-10", 3, 1.0, 1e-10, 3.60e-8, {(0, 2): 1, (3, 0): 2}),
]


@pytest.mark.parametrize(("name", "releases", "eps", "delta", "reached", "changes"), ROWS)
@pytest.mark.parametrize("tier", ["ball", "mixed", "fast"])
def test_files_for_the_same_change_do_not_cover_others(
    name: str,
    releases: int,
    eps: float,
    delta: float,
    reached: float,
    changes: dict[tuple[int, int], int],
    tier: str,
) -> None:
    file = load(EXAMPLES / f"{name}.json")
    assert file.problem.same_change
    found = audit(file, Claim.of(file, releases=releases), tier=tier, explain=False)
    assert (found.verdict, found.claim.same_change) == ("violated", False)
    assert found.proof is not None
    assert found.proof.enclosure.lower >= reached
    # and the sequence of changes is a violation by itself
    own = of_sequence(file, changes, eps)
    assert own.lower >= reached > delta
    assert own.lower <= found.proof.enclosure.upper


def of_sequence(file: ParameterFile, changes: dict[tuple[int, int], int], eps: float) -> Enclosure:
    protocol = Protocol(configuration(file.mechanism(), noise="more"))
    witness = tuple(
        (protocol.changes.index(Change(*pair)), times) for pair, times in changes.items()
    )
    found = evaluate(sequence(protocol.view_pairs, witness), eps, gap=1e-3)
    return Enclosure(float(found.lower[0]), float(found.upper[0]))


@pytest.mark.parametrize("name", [row[0] for row in ROWS])
def test_files_for_the_same_change_keep_their_meaning(name: str) -> None:
    file = load(EXAMPLES / f"{name}.json")
    assert file.format == "correlated-noise-parameters/1"
    found = audit(file, explain=False)
    assert (found.verdict, found.claim.same_change, found.confirmed) == ("certified", True, True)
    assert "only if the user makes the same change in every one" in file_claim_in_words(file)


def test_the_shipped_file_does_not_hold_for_two_releases_at_the_double_eps() -> None:
    file = load(SHIPPED / "5-1-1e-06-0.9.json")
    found = audit(file, Claim.of(file, releases=2, eps=2.0, delta=1e-8), explain=False)
    assert found.verdict == "violated"
    assert found.proof is not None
    assert found.proof.enclosure.lower >= 8.86e-8
    assert of_sequence(file, {(0, 3): 1, (5, 0): 1}, 2.0).lower >= 8.84e-8
    same = audit(
        file, Claim.of(file, releases=2, same_change=True, eps=2.0, delta=1e-8), explain=False
    )
    assert same.verdict == "certified"


@pytest.mark.parametrize("tier", [pytest.param("ball", marks=pytest.mark.slow), "fast"])
@pytest.mark.parametrize(
    ("name", "releases", "eps", "delta"),
    [("5-1-1e-06-0.9", 30, 22.7, 6e-5), ("5-0.25-1e-06-0.9", 100, 9.35, 2e-4)],
)
def test_many_releases_cost_little_more_than_the_same_change(
    name: str, releases: int, eps: float, delta: float, tier: str
) -> None:
    mechanism = load(SHIPPED / f"{name}.json").mechanism()
    proof = prove(mechanism, Question(eps=eps, releases=releases, claim=delta), tier=tier)
    assert proof.enclosure.upper <= delta
    same = prove(
        mechanism, Question(eps=eps, releases=releases, claim=delta, same_change=True), tier="fast"
    )
    assert same.enclosure.lower <= proof.enclosure.upper


@pytest.mark.slow
def test_both_proofs_agree_on_ten_thousand_releases() -> None:
    mechanism = load(SHIPPED / "5-1-1e-06-0.9.json").mechanism()
    found = [
        prove(mechanism, Question(eps=3470.0, releases=10_000, claim=1e-6), tier=tier).enclosure
        for tier in ("ball", "fast")
    ]
    assert max(e.lower for e in found) <= min(e.upper for e in found)
    assert max(e.upper for e in found) <= 1.1 * min(e.upper for e in found) < 1e-6


def test_the_notary_encloses_what_adaptive_sequences_attain() -> None:
    """The induction is an equality, so the lower and the upper bound meet."""
    mechanism = load(EXAMPLES / "same_change_3_2_1e-6.json").mechanism()
    found = Notary(mechanism, 2).enclose(1.0, gap=1e-3, claim=None)
    assert found.met
    assert found.enclosure.relative_gap <= 1e-3
    assert found.sequence_lower < 0.95 * found.enclosure.lower


def test_more_releases_and_less_noise_give_larger_delta() -> None:
    mechanism = load(EXAMPLES / "same_change_3_2_1e-6.json").mechanism()
    less = mechanism.thinned(Fraction(9, 10))
    found = {
        (name, t): Notary(m, t).enclose(1.0, gap=1e-2, claim=1e-6).enclosure
        for name, m in (("all", mechanism), ("thinned", less))
        for t in (1, 2)
    }
    assert found["all", 1].upper < found["all", 2].lower
    assert found["all", 2].upper < found["thinned", 2].lower


def test_vectors_may_move_differently_in_every_release() -> None:
    noise = [((-1, 1), NegativeBinomial(6.0, 0.9)), ((-1, -1, 2), NegativeBinomial(5.0, 0.9))]
    flat = Configuration.of(2, noise, eps_central=0.5)
    vectors = Configuration.of(2, noise, eps_central=0.5, dimension=7)
    number, vector = (Protocol(c, 2).delta(1.2, gap=1e-2) for c in (flat, vectors))
    assert number.enclosure.upper < vector.enclosure.lower
    same = Protocol(vectors, 2, same_change=True).delta(1.2, gap=1e-2)
    assert same.enclosure.lower <= vector.enclosure.upper
    # a value that moves makes two changes at once: four releases of numbers cover two of vectors
    four = Protocol(flat, 4).delta(1.2, gap=1e-2)
    assert vector.enclosure.lower <= four.enclosure.upper
    assert any(made.change.moved for made in vector.worst_sequence)


@pytest.mark.parametrize(
    ("noise", "eps_central", "releases", "eps"),
    [
        ((0.3, 0.2), 2.0, 2, 3.0),  # finite losses cannot reach eps: infinite ones decide
        ((0.3, 0.2), 2.0, 3, 5.0),
        ((1e-8, 1e-8), 1.0, 9, 1.0),  # hardly any loss is finite
    ],
)
def test_where_finite_losses_do_not_decide(
    noise: tuple[float, float], eps_central: float, releases: int, eps: float
) -> None:
    atoms = [{"atom": [-1, 1], "r": noise[0], "p": noise[1]}]
    proposal = Proposal.of({"max_value": 1, "eps_central": eps_central, "atoms": atoms})
    fast = Protocol(proposal.configuration(), releases).delta(eps, gap=1e-2).enclosure
    assert fast.upper - fast.lower <= 1e-2 * fast.upper
    mechanism = mechanism_of(proposal)
    ball = Notary(mechanism, releases).enclose(eps, gap=1e-2, claim=0.5).enclosure
    assert ball.lower <= fast.upper
    assert fast.lower <= ball.upper


def test_epsilon_and_profile_of_any_sequence() -> None:
    file = load(EXAMPLES / "same_change_3_2_1e-6.json")
    eps = satisfied_eps(file.mechanism(), 1e-6, releases=2)
    assert eps is not None
    assert 1.0 < eps.lower <= eps.upper <= 1.1
    assert (
        prove(file.mechanism(), Question(eps=eps.upper, releases=2, claim=1e-6)).enclosure.upper
        <= 1e-6
    )
    protocol = Protocol(configuration(file.mechanism(), noise="less"), 2)
    points = protocol.profile([0.8, 1.0, 1.2])
    uppers = [enclosure.upper for _, enclosure in points]
    assert uppers == sorted(uppers, reverse=True)


def test_what_several_releases_cannot_be_asked() -> None:
    config = configuration(load(EXAMPLES / "same_change_3_2_1e-6.json").mechanism(), noise="less")
    with pytest.raises(InvalidParameter, match="same_change"):
        Protocol(config, 2).delta_of(Change(0, 1), 1.0)
    mechanism = load(EXAMPLES / "same_change_3_2_1e-6.json").mechanism()
    with pytest.raises(InvalidParameter, match="10,001"):
        prove(mechanism, Question(eps=1.0, releases=10_001))


def test_the_worst_case_is_said_with_what_it_attains() -> None:
    path = str(EXAMPLES / "same_change_3_2_1e-6.json")
    shown = CliRunner().invoke(app, ["audit", path, "--releases", "2", "--delta", "1e-5"]).stdout
    assert "every change chosen by what was published before; first input" in shown
    assert "delta at least 7.0" in shown  # of the sequence that is fixed in advance
    done = CliRunner().invoke(app, ["audit", path, "--releases", "2", "--delta", "1e-5", "--json"])
    data = json.loads(done.stdout)
    assert 7.0e-6 < data["worst_sequence_delta_lower"] < 7.1e-6 < data["delta_lower"]
    assert sum(step["times"] for step in data["worst_sequence"]) == 2


def test_the_same_change_of_one_release_is_refused() -> None:
    example = str(EXAMPLES / "sum_to_2.json")
    for command in (["profile", example], ["audit", example], ["certify", example, "-o", "x.json"]):
        failed = CliRunner().invoke(app, [*command, "--same-change"])
        assert failed.exit_code != 0
        assert isinstance(failed.exception, InvalidParameter)
        assert "--same-change" in str(failed.exception)


@pytest.mark.slow
def test_generated_files_cover_any_sequence() -> None:
    made = generate(Request(n=1000, eps=1.0, delta=1e-6, max_value=2, releases=2, tries=2)).file
    assert made.format == "correlated-noise-parameters/3"
    assert not made.problem.same_change
    assert "however the user's inputs change in each" in file_claim_in_words(made)
    certificate = made.certificate
    assert certificate is not None
    assert certificate.delta_upper <= 1e-6
    assert certificate.delta_lower >= 0.97 * certificate.delta_upper
    assert audit(made).verdict == "certified"
    data = json.loads(dumps(made))
    jsonschema.Draft202012Validator(schema()).validate(data)
    for wrong in ({"changes": "same"}, {"releases": 1}, {"releases": 10_001}):
        with pytest.raises(InvalidConfiguration):
            from_json({**data, "problem": {**data["problem"], **wrong}}, source="x")
    old = dict(data["problem"])
    del old["changes"]
    with pytest.raises(InvalidConfiguration, match="format"):
        from_json({**data, "problem": old}, source="x")


def test_commands_say_what_is_covered() -> None:
    path = str(EXAMPLES / "same_change_3_2_1e-6.json")
    for options, words in (
        ([], "only if the user makes the same change in every one"),
        (["--releases", "2"], "however the user's inputs change in each"),
        (["--releases", "2", "--same-change"], "only if the user makes the same change"),
    ):
        shown = CliRunner().invoke(app, ["audit", path, *options, "--delta", "1e-5"])
        assert shown.exit_code == 0
        assert words in shown.stdout


@pytest.mark.slow
def test_the_report_says_what_is_covered(tmp_path: Path) -> None:
    file = load(EXAMPLES / "same_change_3_2_1e-6.json")
    pages = {}
    for same in (False, True):
        found = audit(file, Claim.of(file, releases=2, same_change=same, delta=1e-5))
        page = tmp_path / f"{same}.html"
        source = AuditedFile(source="x.json", sha256="0" * 64, audited_on=date(2021, 7, 18))
        report.write(page, found, file, source)
        pages[same] = page.read_text(encoding="utf-8")
    assert "over all sequences of changes" in pages[False]
    assert "however the user" in pages[False]
    assert "only if the user makes the same change" in pages[True]
    assert "over all sequences of changes" not in pages[True]
