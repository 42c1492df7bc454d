"""Guards of soundness are typed errors, which hold under ``python -O`` as well.

pytest rewrites the assertions of test files into ``if`` statements, so these tests mean the same
there; the first one fails if they do not.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from places import ROOT, SHIPPED

from accounting import (
    Configuration,
    Enclosure,
    ExactBurst,
    ExactCentral,
    ExactNoise,
    InvalidParameter,
    Mechanism,
    NegativeBinomial,
    Protocol,
    Question,
    Reference,
    Undecided,
)
from accounting.base.deadline import sets_deadline
from accounting.base.errors import AccountingError, InternalError, required
from accounting.composition import any_sequence
from accounting.composition.change_profiles import change_profiles
from accounting.composition.dominating_pair import DominatingPair
from accounting.composition.lower_law import Focus, LowerLaw
from accounting.composition.several_mechanisms import Releases
from accounting.evaluator import tilted_losses
from accounting.evaluator.grid_plan import GridPlan
from accounting.evaluator.pair_error_terms import PairBounds
from accounting.evaluator.view_pairs import ViewPairs
from accounting.proof.fast_proof import prove_any_sequence
from accounting.proof.prove import prove
from paramsearch import load
from paramsearch.deploy.exact_events import RationalProbability
from paramsearch.parameters import parameter_file
from paramsearch.parameters.parameter_file import save

HELPERS = "ignore:assertions not in test modules:pytest.PytestConfigWarning"
"""Assertions in helpers of the tests do vanish; those of tests do not."""
PAIR = DominatingPair(1 / 16, 0, np.array([0.5, 0.25]), 0.25)
LAW = LowerLaw(1 / 16, 0, np.array([0.5, 0.25]), 0.25)
FOCUS = Focus(1.0, 1e-12)


def protocol(releases: int = 1) -> Protocol:
    atoms = [((-1, 1), NegativeBinomial.from_mean(mean=300, r=12))]
    return Protocol(Configuration.of(1, atoms, eps_central=0.45), releases)


@pytest.mark.xfail(strict=True, raises=AssertionError)
def test_assertions_of_tests_are_executed() -> None:
    assert not __debug__ or sys.flags.optimize
    assert not sys.flags.optimize  # fails under -O


def test_no_assert_statement_in_the_packages() -> None:
    """It would vanish under ``python -O``, and with it what it guards."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for package in ("accounting", "paramsearch")
        for path in sorted((ROOT / package).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assert)
    ]
    assert not found


@pytest.mark.skipif(sys.flags.optimize > 0, reason="this is such a run")
def test_the_guards_hold_without_assertions() -> None:
    """These tests under ``python -O``; .ci/run does so with a larger share."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-W", HELPERS, __file__],
        cwd=ROOT,
        env={**os.environ, "PYTHONOPTIMIZE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "1 xfailed" in done.stdout


def test_a_defect_is_no_question_that_is_too_hard() -> None:
    """Code that passes over an AccountingError does not pass over a wrong answer."""
    assert not issubclass(InternalError, AccountingError)
    assert required(0, "a number") == 0
    with pytest.raises(InternalError, match="a number is missing"):
        required(None, "a number")


def test_bounds_that_cross_are_no_enclosure() -> None:
    for lower, upper in ((0.2, 0.1), (float("nan"), 1.0), (0.0, float("nan"))):
        with pytest.raises(InternalError, match="not an enclosure"):
            Enclosure(lower, upper)


@pytest.mark.parametrize("lower", [0.2, float("nan")])
def test_bounds_of_the_evaluator_that_cross(lower: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def crossed(pairs: ViewPairs, *_: object) -> PairBounds:
        return PairBounds(np.full(pairs.pair_count, lower), np.full(pairs.pair_count, 0.1))

    monkeypatch.setattr("accounting.evaluator.evaluate.evaluate_on_grid", crossed)
    with pytest.raises(InternalError, match="the bounds crossed"):
        protocol().delta(1.0)


@pytest.mark.parametrize("claim", [None, 1e-9, 0.5])
def test_bounds_of_sequences_that_cross(
    claim: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are reported, and not hidden by the larger of both."""
    one = protocol().one_release
    known = any_sequence.sequence_bounds(one, 1.0, 2, gap=0.1)
    monkeypatch.setattr(any_sequence, "_lower", lambda *_, **__: 2 * known.upper)
    with pytest.raises(InternalError, match="the bounds crossed"):
        any_sequence.sequence_bounds(one, 1.0, 2, gap=0.1, claim=claim)
    noise = ExactNoise(r=Fraction(12), p=Fraction(24, 25))
    mechanism = Mechanism(1, {(-1, 1): (noise,)}, ExactCentral(step=Fraction(9, 20)))
    with pytest.raises(InternalError, match="the bounds crossed"):
        prove_any_sequence(mechanism, Question(eps=1.0, releases=2), 0.1, lambda _: None)


@pytest.mark.parametrize("lift", [1 / 16, 1.0, -1e-9, float("nan")])
def test_losses_are_raised_by_less_than_a_step(lift: float) -> None:
    with pytest.raises(Undecided, match=r"grid has a step of 0.0625: ask for a wider gap"):
        PAIR.profile(-3, 8, lift)


def coarser_errors(monkeypatch: pytest.MonkeyPatch, error: float) -> None:
    """Let the masses of every factor have this relative error."""
    found = tilted_losses._Cells.errors
    monkeypatch.setattr(
        tilted_losses._Cells, "errors", lambda *given: np.maximum(found(*given), error)
    )


def test_a_grid_too_fine_for_the_errors_of_masses_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first grid has a step of 1.3e-3, the next one of 4.7e-4, and errors raise losses by 8e-4:
    the bounds of the first one stand, and contain the truth."""
    one = protocol().one_release
    truth = any_sequence.sequence_bounds(one, 1.0, 2, gap=1e-3)
    coarser_errors(monkeypatch, 4e-4)
    found = any_sequence.sequence_bounds(one, 1.0, 2, gap=1e-3)
    assert not found.settled
    assert 0 < found.lower <= truth.lower < truth.upper <= found.upper < 1.5 * truth.upper
    coarser_errors(monkeypatch, 1e-2)
    with pytest.raises(Undecided, match=r"rounding errors may raise every loss by 0.02"):
        any_sequence.sequence_bounds(one, 1.0, 2, gap=1e-3)


def test_compositions_take_a_coarser_grid_for_the_errors_of_masses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pairs = protocol().view_pairs
    releases = Releases(pairs, pairs, 2)
    finest = releases.profiles(1.0, gap=1e-4)
    coarser_errors(monkeypatch, 1e-4)
    with pytest.raises(Undecided, match="rounding errors"):
        change_profiles(pairs, 1.0, 2, gap=1e-4, dyadic=True)
    found = releases.profiles(1.0, gap=1e-4)
    assert found.step > 2e-4
    assert finest.step < found.step
    coarser_errors(monkeypatch, 1e-2)
    with pytest.raises(Undecided, match="rounding errors"):
        releases.profiles(1.0, gap=1e-4)


def test_pairs_on_different_grids_do_not_compose() -> None:
    with pytest.raises(InvalidParameter, match=r"steps 0.0625 and 0.125 do not compose"):
        PAIR.composed(PAIR.coarser(), 1.0)
    for times in (0, -1):
        with pytest.raises(InvalidParameter, match="at least 1"):
            PAIR.powered(times, tilt=1.0, tolerance=0.1, spare=0.0)
        with pytest.raises(InvalidParameter, match="at least 1"):
            LAW.power(times, focus=FOCUS, tolerance=0.1)


@pytest.mark.parametrize("step", [0.01, 0.3, 0.0, -0.5, float("inf"), float("nan")])
def test_laws_from_below_have_a_step_that_divides_exactly(step: float) -> None:
    with pytest.raises(InvalidParameter, match="not a power of two"):
        LowerLaw.of(protocol().view_pairs, 0, step=step, focus=FOCUS, within=(-1.0, 1.0))


def test_laws_from_below_are_those_of_one_release() -> None:
    pairs = replace(protocol().view_pairs, releases=2)
    with pytest.raises(InvalidParameter, match="2 releases"):
        LowerLaw.of(pairs, 0, step=0.25, focus=FOCUS, within=(-1.0, 1.0))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("step", 0.0),
        ("step", 0.0626),
        ("step", float("nan")),
        ("size", 1000),
        ("size", 2),
        ("tilt", -1.0),
        ("tilt", float("inf")),
    ],
)
def test_a_plan_keeps_what_the_proofs_assume(field: str, value: float) -> None:
    given = {"eps": 1.0, "step": 1 / 16, "size": 1024, "origin": -512, "tilt": 3.0, "first": -100}
    caps = {"other_tilts": np.zeros(0), "cap": np.ones(1), "central_cap": np.ones(1)}
    GridPlan(**given, **caps)  # type: ignore[arg-type]  # a mapping of several types
    with pytest.raises(InvalidParameter, match=f"{field} = "):
        GridPlan(**{**given, field: value}, **caps)  # type: ignore[arg-type]  # the same


def test_noises_of_different_kinds_do_not_add_up() -> None:
    half, third = Fraction(1, 2), Fraction(1, 3)
    for one, other in (
        (ExactNoise(p=half, r=Fraction(2)), ExactNoise(p=third, r=Fraction(2))),
        (ExactNoise(p=half, r=Fraction(2)), ExactNoise(p=half, rate=Fraction(2))),
        (ExactBurst(rate=half, p=half, m=2), ExactBurst(rate=half, p=half, m=3)),
    ):
        with pytest.raises(InvalidParameter, match="do not add up"):
            one.plus(other)  # type: ignore[arg-type]  # both are of one class
    with pytest.raises(InvalidParameter, match="neither a rate nor r"):
        ExactNoise(p=half).shape()
    with pytest.raises(InvalidParameter, match="neither p nor a step"):
        ExactCentral().loss()


@pytest.mark.parametrize("value", [Fraction(-1, 9), Fraction(10, 9)])
def test_a_sampler_takes_probabilities_alone(value: Fraction) -> None:
    with pytest.raises(InvalidParameter, match="not a probability"):
        RationalProbability(value)


def test_a_deadline_is_a_number() -> None:
    with pytest.raises(InvalidParameter, match="deadline = 'noon'"):
        sets_deadline(lambda **_: None)(deadline="noon")


def test_a_file_that_would_be_read_differently_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = load(SHIPPED / "1-1-1e-06-0.9.json")
    other = load(SHIPPED / "2-1-1e-06-0.9.json")
    save(file, tmp_path / "a.json")
    assert load(tmp_path / "a.json") == file
    monkeypatch.setattr(parameter_file, "from_json", lambda *_, **__: other)
    with pytest.raises(InternalError, match="would not be read"):
        save(file, tmp_path / "b.json")
    assert not (tmp_path / "b.json").exists()


def test_every_proof_contains_the_truth() -> None:
    """Small mechanisms, against the definition: with or without assertions in the packages."""
    for r, p, eps in ((12, Fraction(9, 10), 1.0), (3, Fraction(4, 5), 0.7), (1, Fraction(1, 2), 2)):
        noise = ExactNoise(r=Fraction(r), p=p)
        mechanism = Mechanism(1, {(-1, 1): (noise,)}, ExactCentral(step=Fraction(9, 20)))
        for releases in (1, 2):
            truth = Reference(mechanism, releases).enclose(eps).enclosure
            question = Question(eps=eps, releases=releases)
            for tier in ("fast", "ball"):
                found = prove(mechanism, question, tier=tier).enclosure  # type: ignore[arg-type]
                assert found.lower <= truth.upper
                assert truth.lower <= found.upper
                assert found.upper - found.lower <= 0.1 * truth.upper
