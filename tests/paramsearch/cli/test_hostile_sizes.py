"""Configurations that would take all memory or all time: refused, or answered within the budget."""

from __future__ import annotations

import json
import random
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from flint import arb
from limited import limited, refused
from places import SHIPPED
from program import run

from accounting import TooLarge, Undecided, halves
from accounting.base.balls import floor, precision
from accounting.model.configuration import Proposal, loads
from accounting.model.mechanism import MOST_PARTS, ExactNoise, noises
from accounting.model.question import Question
from accounting.proof.prove import prove
from paramsearch.certification.audit import mechanism_of
from paramsearch.certification.certify import certify
from paramsearch.deploy import Analyzer, Randomizer
from paramsearch.parameters.assembly import assemble, uncertified
from paramsearch.parameters.parameter_file import ParameterFile

SMALL: dict[str, Any] = {
    "max_value": 1,
    "eps": 1.0,
    "delta": 0.3,
    "n": 100,
    "eps_central": 1.0,
    "atoms": [{"atom": [-1, 1], "r": 2.0, "p": 0.5}],
}
NOISE = {"r": 12.0, "p": 0.9}


def written(tmp_path: Path, **changes: Any) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**SMALL, **changes}))
    return path


def verdict(path: Path, *options: str) -> tuple[int, dict[str, Any]]:
    done = limited("audit", path, "--json", *options)
    assert done.returncode in (0, 1, 3), (done.returncode, done.stderr)
    return done.returncode, json.loads(done.stdout)


def test_more_values_than_memory(tmp_path: Path) -> None:
    path = written(tmp_path, max_value=10**15)
    code, found = verdict(path)
    assert (code, found["worst_pair"]) == (1, [2, 0])
    assert "value 2 is unprotected" in refused(limited("profile", path))
    assert "max_value" in refused(limited("certify", path, "-o", tmp_path / "out.json"))


@pytest.mark.slow
@pytest.mark.parametrize(("r", "p"), [(1e-9, 1e-9), (0.1, 1e-20), (0.5, 1e-200), (3.0, 1e-30)])
def test_losses_far_apart(tmp_path: Path, r: float, p: float) -> None:
    """Next to no noise: a grid as fine as its spread would have hundreds of millions of cells."""
    atoms = [{"atom": [-1, 1], "r": r, "p": p}]
    path = written(tmp_path, eps_central=30, delta=0.5, atoms=atoms)
    code, found = verdict(path, "--budget", "20")
    assert (code, found["worst_pair"]) == (1, [0, 1])
    assert found["delta_lower"] > 0.99


@pytest.mark.parametrize(
    "family", [[[-1, -1, 2], [-2, 2], [-2, -1, 3]], [[-1, -1, 2], [-2, -1, 3], [-2, 2]]]
)
def test_a_tiny_eps_beside_a_large_central_one(tmp_path: Path, family: list[list[int]]) -> None:
    atoms = [{"atom": atom, **NOISE} for atom in ([-1, 1], *family)]
    path = written(tmp_path, max_value=3, eps_central=101, eps=1e-9, atoms=atoms)
    assert verdict(path, "--budget", "5")[0] == 1


@pytest.mark.slow
def test_a_family_with_millions_of_pairs_keeps_its_budget(tmp_path: Path) -> None:
    atoms = [{"atom": list(atom), **NOISE} for atom in halves(2000).atoms]
    path = written(tmp_path, max_value=2000, eps_central=0.9, delta=1e-6, atoms=atoms)
    code, found = verdict(path, "--budget", "10")
    assert code == 3
    assert "budget" in found["reason"]
    code, found = verdict(path, "--budget", "10", "--tier", "ball")
    assert code == 3
    assert "--tier fast" in found["reason"]


@pytest.mark.slow
def test_columns_that_do_not_fit(tmp_path: Path) -> None:
    """Each value is defined by all smaller ones."""
    chain = [[-1, -1, 2], [-2, 2]]
    for m in range(3, 3000):
        chain += [[m, -(m - 1), -1], [-m, m - 1, 1]] if m > 3 else [[3, -2, -1], [-3, 3]]
    atoms = [{"atom": atom, **NOISE} for atom in ([-1, 1], *chain)]
    path = written(tmp_path, max_value=2999, atoms=atoms)
    assert verdict(path, "--budget", "5")[0] == 3
    assert verdict(path, "--budget", "5", "--tier", "ball")[0] == 3
    refused(limited("profile", path))


def test_a_kernel_that_takes_long_ends_with_the_budget(tmp_path: Path) -> None:
    """A thousand values that cannot be separated one by one: their kernel takes half a minute."""
    chance = random.Random(1)
    atoms = [{"atom": [-1, 1], **NOISE}]
    for _ in range(1900):
        values = [chance.choice([-1, 1]) * chance.randint(2, 1000) for _ in range(6)]
        ones = [-1 if sum(values) > 0 else 1] * abs(sum(values))
        atoms.append({"atom": values + ones, **NOISE})
    path = written(tmp_path, max_value=2, atoms=atoms)
    code, found = verdict(path, "--budget", "1")
    assert code == 3
    assert found["reason"].startswith("the budget was used up before every pair had a bound; ")


@pytest.mark.slow
def test_copies_of_an_atom_are_one(tmp_path: Path) -> None:
    atoms = [{"atom": atom, "r": 0.001, "p": 0.5} for atom in ([-1, 1], [-1, -1, 2])] * 20_000
    data = {**SMALL, "max_value": 2, "delta": 0.9, "atoms": atoms}
    mechanism = mechanism_of(Proposal.of(data))
    assert mechanism.atoms[-1, 1] == (ExactNoise(p=Fraction(1, 2), r=20_000 * Fraction(0.001)),)
    file = uncertified(Proposal.of(data))
    assert [entry.atom for entry in file.atoms] == [(-1, 1), (-1, -1, 2)]
    path = written(tmp_path, **data)
    assert verdict(path)[0] == 0
    assert "listed 20,000 times" in refused(limited("profile", path))
    whole = [{**entry, "r": 0.5} for entry in atoms]
    noise = loads(json.dumps({**data, "atoms": whole})).noise[-1, 1]
    assert [part.r for part in noise.parts] == [10_000.0]


def test_different_noises_of_an_atom_are_few() -> None:
    listed = [((-1, 1), ExactNoise(p=Fraction(1, 2 + i), r=Fraction(1))) for i in range(MOST_PARTS)]
    assert len(noises(listed)[-1, 1]) == MOST_PARTS
    with pytest.raises(TooLarge, match="different p"):
        noises([*listed, ((-1, 1), ExactNoise(p=Fraction(1, 1000), r=Fraction(1)))])


def test_merged_copies_are_the_same_noise() -> None:
    once = mechanism_of(Proposal.of(SMALL))
    atom = {"atom": [-1, 1], "r": 0.5, "p": 0.5}
    often = mechanism_of(Proposal.of({**SMALL, "atoms": [atom] * 4}))
    assert once == often
    assert prove(once, Question(eps=1.0)) == prove(often, Question(eps=1.0))


@pytest.mark.parametrize(
    "eps", ["1e30", *(pytest.param(eps, marks=pytest.mark.slow) for eps in (str(2**63), "1e7"))]
)
def test_an_enormous_eps(tmp_path: Path, eps: str) -> None:
    path = written(tmp_path)
    for tier in ("fast", "mixed", "ball"):
        code, found = verdict(path, "--eps", eps, "--tier", tier)
        assert (code, found["delta_upper"]) == (3, 1.0)
    assert "eps" in refused(limited("profile", path, "--eps", eps))


def test_a_deviation_is_a_number(tmp_path: Path) -> None:
    """e^eps times the sampler's deviation is more than any double; no two deltas differ so much."""
    path = written(tmp_path)
    assert verdict(path, "--eps", "999", "--tier", "fast")[1]["sampler_deviation"] <= 1
    done = limited("certify", path, "--eps", "999", "--tier", "fast", "--json")
    assert json.loads(done.stdout)["certificate"]["sampler_deviation"] == 1.0


def forged(*, p: Fraction | None = None, rate: Fraction | None = None) -> ParameterFile:
    """A file with a certificate that was not made for its noise, and that is otherwise as it is."""
    true = certify(uncertified(Proposal.of(SMALL)))
    (entry,) = true.atoms
    noise = ExactNoise(p=p or Fraction(entry.p), rate=rate or Fraction(entry.rate))
    central = true.mechanism().central
    return assemble(true.problem, central, [(entry.atom, noise)], true.provenance, true.certificate)


def test_rates_that_nobody_can_send() -> None:
    for file in (forged(rate=Fraction(10**300)), forged(p=1 - Fraction(1, 10**50))):
        with pytest.raises(TooLarge, match="would send about"):
            Randomizer(file)


def test_powers_of_a_p_next_to_one() -> None:
    """With few bits, p^(2^191) is a ball whose end no memory could hold as an integer."""
    file = forged(p=1 - Fraction(1, 1 << 192), rate=Fraction(1, 10**300))
    with pytest.raises(TooLarge, match="is too small: one event may have more than"):
        Randomizer(file)
    with precision(64), pytest.raises(Undecided):
        floor(arb(2) ** (arb(2) ** 60))


def test_an_analysis_of_an_enormous_r() -> None:
    analyzer = Analyzer(forged(p=Fraction(1, 1 << 190), rate=Fraction(10**243)), users=480681950131)
    with pytest.raises(ValueError, match="are too few"):
        analyzer.result()


def test_an_analysis_of_a_p_that_is_no_double() -> None:
    with pytest.raises(ValueError, match="as a double"):
        Analyzer(forged(p=1 - Fraction(1, 10**50))).result()


def test_estimates_of_an_eps_next_to_nothing(tmp_path: Path) -> None:
    """Losses that are more bins of width eps away than any integer once were written elsewhere."""
    atoms = [{"atom": [-1, 1], "r": 4.0, "p": 0.5}, {"atom": [-1, 1], "r": 2.0, "p": 0.7}]
    path = written(tmp_path, eps_central=0.9, atoms=atoms)
    for eps in ("1e-200", "5e-324", "1e-20"):
        assert verdict(path, "--tier", "light", "--eps", eps, "--delta", "1e-120")[0] == 1


LONG = "9" * 5000


@pytest.mark.parametrize(
    "command",
    [
        ("audit", "{file}"),
        ("profile", "{file}"),
        ("certify", "{file}", "-o", "{out}"),
        ("audit", "{configuration}"),
        ("randomize", "{file}", "--value", "1"),
        ("randomize", "{good}", "--value", LONG),
        ("randomize", "{good}", "--value", f"-{LONG}"),
        ("rescale", "{good}", "--n", LONG, "-o", "{out}"),
        ("rescale", "{good}", "--n", f"{LONG}e{LONG}", "-o", "{out}"),
        ("compose", f"{{good}}:{LONG}", "--eps", "1"),
        ("table", "{grid}", "-o", "{out}"),
    ],
)
def test_a_number_of_thousands_of_digits_is_refused_in_our_words(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    """Was: an internal error, or the advice to use sys.set_int_max_str_digits."""
    good = SHIPPED / "1-1-1e-06-0.9.json"
    places = {name: tmp_path / name for name in ("file", "configuration", "grid", "out")}
    places["file"].write_text(good.read_text().replace('"n": 1000000', f'"n": {LONG}'))
    places["configuration"].write_text(json.dumps(SMALL).replace('"n": 100', f'"n": {LONG}'))
    places["grid"].write_text(f"eps = [1]\ndelta = [1e-6]\nmax_value = [{LONG}]\n")
    done = run(*(word.format(good=good, **places) for word in command))
    assert (done.returncode, done.stdout) == (2, "")
    assert not places["out"].exists()
    assert "int_max_str_digits" not in done.stderr
    assert "internal error" not in done.stderr
    assert len(done.stderr) < 900
    assert re.search("digits|larger|whole number|number of releases", done.stderr)
