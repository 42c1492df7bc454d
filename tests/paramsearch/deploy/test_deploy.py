"""The protocol as a whole: its error, simulations, an empirical audit, and the commands."""

from __future__ import annotations

import json
import math
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deployed import file
from program import run
from sampler_laws import ALARM, chi_square
from scipy import stats

from accounting import Protocol
from accounting.model.change import Change
from accounting.model.configuration import Proposal
from accounting.proof.directed_rounding import configuration
from paramsearch import certify, load, save, uncertified
from paramsearch.deploy import (
    SeededBits,
)
from paramsearch.deploy.noise_sampler import Noise
from paramsearch.deploy.simulate import Simulation, simulate


def test_the_error_is_discrete_laplace() -> None:
    made = file()
    errors = np.array(
        [run_.errors[0] for run_ in simulate(Simulation(made, 50, runs=6000, seed=5)).runs]
    )
    step = 0.5
    q = math.exp(-step)

    def cdf(k: np.ndarray) -> np.ndarray:
        """Of |Z|: P(|Z| <= k) = 1 - 2 q^(k+1) / (1 + q)."""
        return 1 - 2 * q ** (k + 1) / (1 + q)

    assert chi_square(np.abs(errors).astype(int), cdf) > ALARM
    positive = int((errors > 0).sum())
    assert stats.binomtest(positive, int((errors != 0).sum())).pvalue > ALARM


@pytest.mark.parametrize("path", ["users", "aggregate"])
@pytest.mark.parametrize("dimension", [1, 3])
def test_simulations_agree_with_the_file(path: Any, dimension: int) -> None:
    outcome = simulate(Simulation(file(dimension), 50, runs=300, path=path, seed=2))
    assert abs(outcome.messages.deviation) < 5
    assert abs(outcome.mse.deviation) < 5


def test_fewer_honest_users_add_less_noise() -> None:
    plan = Simulation(
        file(), 50, values="zero", runs=400, honest=0.5, allow_few=True
    )  # to see the loss
    outcome = simulate(plan)
    assert abs(outcome.messages.deviation) < 5
    assert outcome.messages.expected == pytest.approx(file().cost.noise_messages / 2)


def test_the_best_distinguisher_reaches_delta_from_below() -> None:
    """Views of +1 and -1 counts at max_value 1, weak noise: the likelihood ratio test on samples.

    Its advantage P(S) - e^eps Q(S) is an unbiased estimate of the exact delta; any other set does
    no better.  Five standard errors on either side.
    """
    weak = {"max_value": 1, "eps": 0.4, "delta": 0.2, "n": 1, "eps_central": 0.6,
            "atoms": [{"atom": [-1, 1], "r": 2.0, "p": 0.6}]}  # fmt: skip
    made = certify(uncertified(Proposal.of(weak)))
    exact = Protocol(configuration(made.mechanism(), noise="more")).delta_of(
        Change(1, 0), 0.4, gap=1e-4
    )
    k = np.arange(600)
    q = float(Fraction(made.central.p))
    central = (1 - q) * q**k
    atom = stats.nbinom.pmf(k[:120], made.atoms[0].r, float(1 - Fraction(made.atoms[0].p)))

    def mass(plus: int, minus: int) -> float:
        both = k[: max(0, min(plus, minus, 119) + 1)]
        return float((atom[both] * central[plus - both] * central[minus - both]).sum())

    noise, source = Noise(made), SeededBits(8)
    scale, count = math.exp(0.4), 12_000

    def view(value: int) -> tuple[int, int]:
        counts = Counter({1: value})
        for event in noise.events(source):  # of the only user
            for element in event.atom:
                counts[element] += event.copies
        return counts[1], counts[-1]

    def tells(seen: tuple[int, int]) -> bool:
        plus, minus = seen
        return mass(plus - 1, minus) > scale * mass(plus, minus) if plus else False

    first = np.array([tells(view(1)) for _ in range(count)])
    second = np.array([tells(view(0)) for _ in range(count)])
    found = first.mean() - scale * second.mean()
    error = math.sqrt((first.var() + scale**2 * second.var()) / count)
    assert exact.enclosure.lower > 0.03
    assert exact.enclosure.lower - 5 * error <= found <= exact.enclosure.upper + 5 * error
    worse = np.array([view(1)[0] > 3 for _ in range(count)]).mean()
    worse -= scale * np.array([view(0)[0] > 3 for _ in range(count)]).mean()
    assert worse <= exact.enclosure.upper + 5 * error


@pytest.mark.slow
def test_a_generated_file_end_to_end(tmp_path: Path) -> None:
    """n = 1e5, max_value 5, 200 runs of every user's randomizer: three standard errors."""
    path = tmp_path / "file.json"
    problem = ("--n", "100000", "--eps", "1", "--delta", "1e-6", "--max-value", "5")
    assert run("generate", *problem, "-o", str(path)).returncode == 0
    outcome = simulate(Simulation(load(path), 100_000, runs=200, path="users", seed=4))
    assert abs(outcome.messages.deviation) < 3
    assert abs(outcome.mse.deviation) < 3


def test_commands(tmp_path: Path) -> None:
    path, messages = tmp_path / "file.json", tmp_path / "messages.txt"
    save(file(), path)
    done = run("randomize", str(path), "--value", "3", "--value", "0", "--value", "2")
    assert done.returncode == 0, done.stderr
    messages.write_text(done.stdout + "999\n")
    three = ("--users", "3", "--allow-few")  # of 50, which is an error otherwise
    done = run("analyze", str(path), str(messages), *three, "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["rejected"] == 1
    assert answer["lower"] <= answer["estimate"] <= answer["upper"]
    done = run("analyze", str(path), str(messages), "--strict")
    assert done.returncode == 2
    assert "999" in done.stderr
    done = run("simulate", str(path), "--runs", "5", "--json")
    assert json.loads(done.stdout)["users"] == 50
    for wrong in (
        ("randomize", str(path), "--value", "4"),
        ("randomize", str(path), "--value", "x"),
        ("randomize", str(path), "--value", "1", "--coordinate", "0"),
        ("randomize", str(path), "--value", "1", "--low", "0"),
        ("analyze", str(path), str(tmp_path / "none.txt")),
        ("analyze", str(path), str(messages), "--confidence", "1"),
        ("randomize", str(path), "--value", "1", "--clip"),
        ("randomize", str(path), "--value", "1", "--low", "0", "--high", "1", "--coordinate", "0"),
        ("simulate", str(path), "--users", "10000000000000"),
        ("simulate", str(path), "--values", "odd"),
    ):
        done = run(*wrong)
        assert done.returncode == 2, wrong
        assert "Traceback" not in done.stderr
        assert done.stdout == ""
