"""Too few users: their noise protects nobody, so that nobody may overlook it."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from deployed import SUM, file, seeded
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from places import ROOT
from program import run
from scipy import stats

import paramsearch
from accounting.model.configuration import Proposal
from paramsearch import certify, load, save, uncertified
from paramsearch.deploy import Analyzer, NotMessages, RandomizedReals, Randomizer, TooFew
from paramsearch.deploy.noise_sampler import Noise
from paramsearch.deploy.participation import (
    CountedNoise,
    least_count,
    noticed_below,
    only_noise,
    required_users,
    share_of,
)
from paramsearch.deploy.simulate import Simulation, simulate
from paramsearch.parameters.file_schema import schema
from paramsearch.parameters.parameter_file import ParameterFile

SHIPPED = Path(paramsearch.__file__).parent / "data" / "files" / "5-1-1e-06-0.9.json"


@cache
def noisy(honest: float = 1.0, dimension: int = 1) -> ParameterFile:
    """For 400 users, with enough noise to be missed."""
    atoms = [{**entry, "r": 12.0, "p": 0.9} for entry in SUM["atoms"]]  # type: ignore[attr-defined]  # a list
    problem = {**SUM, "atoms": atoms, "n": 400, "delta": 0.5, "dimension": dimension}
    return certify(uncertified(Proposal.of(problem), honest=honest))


def chance_of_fewer(made: ParameterFile, counted: Callable[[int], bool], least: int) -> mpf:
    """P(count < least) of the noise of the honest fraction, from the masses; the terms of a sum
    of positive numbers in doubles, 1e-9 of it being far more than its rounding errors."""
    law = np.zeros(least)
    law[:1] = 1.0
    central = (made.central.r, made.central.p)
    parts = [((1,), *central), ((-1,), *central)]
    parts += [(entry.atom, entry.r, entry.p) for entry in made.atoms]
    log = mpf(0)
    for elements, r, text in parts:
        size, p, shape = sum(map(counted, elements)), Fraction(text), r * made.problem.honest
        shape *= made.dimension
        if size == 0:
            continue
        log += shape * mp.log(mpf((1 - p).numerator) / (1 - p).denominator)
        k = np.arange((least - 1) // size)
        mass = np.zeros(least)
        mass[::size][: len(k) + 1] = np.cumprod([1.0, *(float(p) * (shape + k) / (k + 1))])
        law = np.convolve(law, mass)[:least]
    return mp.exp(log) * mpf(float(law.sum())) * (1 + mpf("1e-9"))


@pytest.mark.parametrize("kind", ["shipped", "honest", "vectors"])
@pytest.mark.parametrize("noise", [True, False])
def test_a_false_alarm_is_as_rare_as_is_said(kind: str, noise: bool) -> None:
    made = {"shipped": load(SHIPPED), "honest": noisy(0.5), "vectors": noisy(dimension=3)}[kind]

    def counted(value: int) -> bool:
        return only_noise(made, value) if noise else True

    least = least_count(made, counted)
    assert least > 50
    assert chance_of_fewer(made, counted, least) <= 1e-9
    # and it is not far from the best one: a little more would happen too often
    assert chance_of_fewer(made, counted, round(1.15 * least)) > 1e-9


def test_noise_too_small_to_be_missed() -> None:
    """Nothing at all is likelier than 1e-9."""
    assert least_count(file(), lambda _: True) == 0
    assert chance_of_fewer(file(), lambda _: True, 1) > 1e-9


def test_how_many_users_are_enough() -> None:
    assert required_users(noisy(0.5)) == 200
    assert [share_of(1000, honest) for honest in (0.1, 0.07, 0.95, 1.0)] == [100, 70, 950, 1000]
    assert share_of(7, 0.5) == 4


@pytest.mark.parametrize("value", [5, 0])
def test_a_file_for_a_million_used_by_a_thousand(value: int, tmp_path: Path) -> None:
    made = load(SHIPPED)
    with pytest.raises(TooFew, match=r"1,000 users who add noise are too few.*1,000,000"):
        seeded(made).batch([value] * 1000)
    symbols = seeded(made).batch([value] * 1000, allow_few=True).symbols
    for strict in (True, False):
        analyzer = Analyzer(made, strict=strict)
        analyzer.add(symbols)
        with pytest.raises(TooFew, match=r"only noise sends (are|is) too few: the 1,000,000 users"):
            analyzer.result()
    with pytest.raises(TooFew, match="1,000 users"):
        Analyzer(made, users=1000)
    allowed = Analyzer(made, allow_few=True)
    allowed.add(symbols)
    assert "too few" in (allowed.result().implausible or "")
    messages = tmp_path / "messages.txt"
    messages.write_text("".join(f"{symbol}\n" for symbol in symbols))
    for option in ((), ("--strict",)):
        done = run("analyze", str(SHIPPED), str(messages), *option)
        assert (done.returncode, done.stdout) == (2, "")
        assert "too few" in done.stderr
        assert "--allow-few" in done.stderr
    done = run("analyze", str(SHIPPED), str(messages), "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["failure"]["kind"] == "TooFew"
    done = run("analyze", str(SHIPPED), str(messages), "--strict", "--allow-few", "--json")
    assert done.returncode == 0, done.stderr
    assert "too few" in json.loads(done.stdout)["implausible"]


def test_values_do_not_make_up_for_noise() -> None:
    """Many messages, but too few that only noise sends; in both ways of counting."""
    made = load(SHIPPED)
    tabled, summed = Analyzer(made), Analyzer(made)
    summed._counts, summed._sums = summed._counts[:0], np.zeros(1, np.int64)
    symbols = seeded(made).batch([5] * 100_000, allow_few=True).symbols
    for analyzer in (tabled, summed):
        analyzer.add(symbols)
        with pytest.raises(TooFew, match="only noise"):
            analyzer.result()
    assert tabled.noise_messages == summed.noise_messages > 0


def test_messages_that_were_lost() -> None:
    """Values 1..5 are sent by noise, too: without the others, the total is what tells."""
    made = load(SHIPPED)
    analyzer = Analyzer(made)
    analyzer.add([made.alphabet.index(-1)] * 1500)
    with pytest.raises(TooFew, match=r"1,500 messages are too few.*1,000,000 users"):
        analyzer.result()


@pytest.mark.parametrize("dimension", [1, 3])
def test_enough_users_are_no_alarm(dimension: int) -> None:
    """All of them, or the fraction that the file is made for; more than n as well."""
    for honest, users in ((1.0, 400), (1.0, 1000), (0.5, 200), (0.5, 400)):
        made = noisy(honest, dimension)
        value = 0 if dimension == 1 else (1, 0)
        analyzer = Analyzer(made, users=users)
        analyzer.add(seeded(made, (honest, users)).batch([value] * users).symbols)
        assert analyzer.result().implausible is None
    with pytest.raises(TooFew, match=r"199 users.*needs 200 \(0\.5 of the n = 400\)"):
        Analyzer(noisy(0.5), users=199)


def test_real_values_in_a_batch() -> None:
    reals = RandomizedReals(seeded(noisy()), low=0.0, high=1.0)
    with pytest.raises(TooFew):
        reals.batch([0.5] * 399)
    assert len(reals.batch([0.5] * 399, allow_few=True).symbols)
    assert len(reals.batch([0.5] * 400).symbols)


def test_simulations_of_too_few(tmp_path: Path) -> None:
    with pytest.raises(TooFew, match="399 users"):
        Simulation(noisy(), 399)
    with pytest.raises(TooFew, match="200 users"):
        Simulation(noisy(), 400, honest=0.5)
    Simulation(noisy(0.5), 400, honest=0.5)
    Simulation(noisy(0.5), 200)
    assert len(simulate(Simulation(noisy(), 10, allow_few=True, path="users")).runs) == 1
    path = tmp_path / "file.json"
    save(noisy(), path)
    done = run("simulate", str(path), "--users", "100")
    assert (done.returncode, done.stdout) == (2, "")
    assert "100 users" in done.stderr
    done = run("simulate", str(path), "--users", "100", "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["failure"]["kind"] == "TooFew"
    done = run("simulate", str(path), "--users", "100", "--allow-few", "--json")
    assert done.returncode == 0, done.stderr
    assert "100 users" in json.loads(done.stdout)["implausible"]
    assert "warning" in run("simulate", str(path), "--users", "100", "--allow-few").stdout


def test_what_is_no_file_of_messages(tmp_path: Path) -> None:
    """Was: estimate 0, between -520 and 520, exit code 0."""
    path, other, good = tmp_path / "file.json", tmp_path / "day.json", tmp_path / "good.txt"
    save(file(), path)
    other.write_text('{\n "monday": 1,\n "tuesday": 2\n}\n')
    good.write_text("0\n" * 40)
    for names in ([other], [good, other]):
        done = run("analyze", str(path), *map(str, names), "--allow-few")
        assert (done.returncode, done.stdout) == (2, "")
        assert "day.json: 4 of 4 are not symbols" in done.stderr
    done = run("analyze", str(path), "--json", stdin="x\n0\ny\n")
    assert done.returncode == 2
    assert json.loads(done.stdout)["failure"]["kind"] == "NotMessages"
    assert "standard input: 2 of 3" in done.stderr
    assert run("analyze", str(path), stdin="x\n0\ny\n0\n").returncode == 0
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 9)
    command = [sys.executable, "-m", "paramsearch", "analyze", str(path)]
    with (tmp_path / "binary").open("rb") as binary:
        raw = subprocess.run(command, stdin=binary, capture_output=True, check=False, timeout=600)
    assert raw.returncode == 2
    assert b"are not symbols" in raw.stderr
    analyzer = Analyzer(file(), allow_few=True)
    analyzer.add([99, 0, 99])
    with pytest.raises(NotMessages, match="2 of 3"):
        analyzer.result()


def test_values_from_standard_input(tmp_path: Path) -> None:
    """The command line of a process is no secret."""
    path, vectors = tmp_path / "file.json", tmp_path / "vectors.json"
    save(file(), path)
    save(file(3), vectors)
    done = run("randomize", str(path), "--value", "-", "--json", stdin="3\r\n0")
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout)["coordinate_and_value"]
    assert [0, 3] in first
    done = run("randomize", str(path), "--value", "-", "--low", "0", "--high", "1", stdin="0.25\n")
    assert done.returncode == 0, done.stderr
    done = run("randomize", str(vectors), "--value", "-", "--json", stdin="2 3\n0 1\n")
    first, second = json.loads(done.stdout)["coordinate_and_value"]
    assert [2, 3] in first
    assert [0, 1] in second
    for name, options, text in (
        (path, (), ""),
        (path, (), "1 2\n"),
        (path, (), "x\n"),
        (path, (), "4\n"),
        (path, (), "3\n\n0\n"),
        (path, ("--value", "1"), "1\n"),
        (vectors, ("--coordinate", "1"), "1\n"),
        (vectors, (), "1\n"),
        (vectors, (), "3 1\n"),
    ):
        done = run("randomize", str(name), "--value", "-", *options, stdin=text)
        assert (done.returncode, done.stdout) == (2, ""), text
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("text", ["3\n \n0\n", "3\n\n", "3\n\r\n0"])
def test_a_blank_line_is_a_missing_value(text: str, tmp_path: Path) -> None:
    """Was: left out in silence."""
    path, vectors = tmp_path / "file.json", tmp_path / "vectors.json"
    save(file(), path)
    save(file(3), vectors)
    pairs = text.replace("3", "2 3").replace("0", "0 1")
    for name, lines in ((path, text), (vectors, pairs)):
        done = run("randomize", str(name), "--value", "-", stdin=lines)
        assert (done.returncode, done.stdout) == (2, "")
        assert "line 2 of standard input is blank, so a user's value is missing" in done.stderr


@pytest.mark.parametrize(
    ("dimension", "options", "text", "told"),
    [
        (1, (), "1\n2\n9\n0\n", "line 3 of standard input: value = 9 "),
        (1, (), "1\n-1\n", "line 2 of standard input: value = -1 "),
        (1, (), "1\n2\n0\n2.5\n", "line 4 of standard input: value '2.5' is not an integer"),
        (1, (), "1\n2 2\n", "line 2 of standard input has 2 entries, not one value: '2 2'"),
        (1, ("--low", "0", "--high", "1"), "0.5\n1.5\n", "line 2 of standard input: value 1.5 "),
        (1, ("--low", "0", "--high", "1"), "x\n", "line 1 of standard input: value 'x' is not a"),
        (1, ("--low", "0", "--high", "1"), "0\nnan\n", "line 2 of standard input: value = nan"),
        (3, (), "0 1\n3 1\n", "line 2 of standard input: coordinate = 3 "),
        (3, (), "0 1\n2 1\n2 7\n", "line 3 of standard input: value = 7 "),
        (3, (), "0 1\nx 1\n", "line 2 of standard input: coordinate 'x' is not an integer"),
        (3, (), "0 1\n1\n", "line 2 of standard input has 1 entry, not a coordinate and a value"),
    ],
)
def test_a_bad_line_is_named(
    dimension: int, options: tuple[str, ...], text: str, told: str, tmp_path: Path
) -> None:
    """Was: the value alone, which may be on any of a million lines."""
    path = tmp_path / "file.json"
    save(file(dimension), path)
    done = run("randomize", path, "--value", "-", *options, stdin=text)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {told}"), done.stderr


def test_what_the_shuffler_must_hide_is_said_and_true() -> None:
    made = load(SHIPPED)
    nothing = math.exp(-float(Noise(made).rate) / made.problem.n)
    assert f"{nothing:.4f}" == "0.9997"
    readme = (ROOT / "paramsearch" / "deploy" / "README.md").read_text(encoding="utf-8")
    section = readme.split("## What the shuffler must hide")[1].split("\n## ")[0]
    assert "0.9997" in section
    described = schema()["description"]
    for text in (section, Randomizer.__doc__ or "", described):
        for word in (
            "multiset",
            "how many messages|number of messages",
            "order",
            "ids? |identifiers ",
        ):
            assert re.search(word, " ".join(text.split())), word
    assert "--value -" in section
    batch = seeded(file()).batch([3] * 50)
    sent = [file().alphabet[symbol] for symbol in batch.symbols]
    assert sent.count(3) >= 50
    assert sent[:50] != [3] * 50  # the true values do not come first
    assert "shuffled together" in (Randomizer.batch.__doc__ or "")


@pytest.mark.parametrize("share", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("alarm", [1e-3, 1e-9])
def test_both_tails_of_a_count(share: float, alarm: float) -> None:
    """Of two NB(r share, p), one counted twice, against the masses."""
    r, p = np.array([12.0, 30.0]), np.array([0.9, 0.75])
    noise = CountedNoise(np.array([2.0, 1.0]), r, p, 1 - p, np.zeros(2))
    low, high = noise.fewest(share, alarm), noise.most(share, alarm)
    length = 3 * high
    twice = np.zeros(length)
    twice[::2] = stats.nbinom.pmf(np.arange(len(twice[::2])), r[0] * share, 1 - p[0])
    law = np.convolve(twice, stats.nbinom.pmf(np.arange(length), r[1] * share, 1 - p[1]))[:length]
    assert law[:low].sum() <= alarm
    assert law[high + 1 :].sum() <= alarm
    # and neither is far from the best bound
    assert law[: round(1.2 * low) + 2].sum() > alarm
    assert law[round(0.8 * high) :].sum() > alarm


def test_messages_of_another_file(tmp_path: Path) -> None:
    """Was: an estimate with a warning, and exit code 0."""
    ten = load(SHIPPED.with_name("10-1-1e-06-0.9.json"))
    symbols = seeded(ten).batch([2] * ten.problem.n).symbols
    right, wrong = Analyzer(ten), Analyzer(load(SHIPPED))
    right.add(symbols)
    assert right.result().implausible is None
    messages = symbols[symbols < wrong.codec.symbols]  # nothing else would give it away
    wrong.add(messages)
    assert re.search(
        r"messages have the value -\d, where .* made with another file",
        wrong.result().implausible or "",
    )
    path = tmp_path / "messages.txt"
    path.write_text("".join(f"{symbol}\n" for symbol in messages))
    for options in ((), ("--strict",)):
        done = run("analyze", SHIPPED, path, *options)
        assert (done.returncode, done.stdout) == (2, "")
        assert "made with another file" in done.stderr
        assert "--users if more than n took part; --allow-odd goes on anyway" in done.stderr
    done = run("analyze", SHIPPED, path, "--json")
    assert done.returncode == 2
    assert "made with another file" in json.loads(done.stdout)["failure"]["message"]
    done = run("analyze", SHIPPED, path, "--allow-odd")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("warning ")
    done = run("analyze", SHIPPED, path, "--allow-odd", "--json")
    assert done.returncode == 0, done.stderr
    assert "made with another file" in json.loads(done.stdout)["implausible"]


def sent(made: ParameterFile, **counts: int) -> Analyzer:
    """What an analyzer has read after this many messages of each value, x1 or m1 for 1 or -1."""
    analyzer = Analyzer(made)
    for name, count in counts.items():
        value = int(name[1:]) * (-1 if name[0] == "m" else 1)
        analyzer.add([made.alphabet.index(value)] * count)
    return analyzer


def test_an_impossible_sum() -> None:
    """Was: no word, since every count is possible.  50 users with values up to 3."""
    usual = {"m1": 20, "m2": 4, "x1": 60}
    possible = sent(file(), x2=30, x3=10, **usual)
    assert int(possible.sums[0]) == 122
    assert possible.result().implausible is None
    too_large = sent(file(), x2=50, x3=50, **usual)
    assert int(too_large.sums[0]) == 282
    assert too_large.unlike_file() is not None
    assert "the messages sum to 282, where this file has between -" in str(too_large.unlike_file())
    too_small = sent(file(), x1=0, m1=60, m2=20)
    assert int(too_small.sums[0]) == -100
    assert "the messages sum to -100, where" in str(too_small.unlike_file())


@given(
    kind=st.sampled_from([(1, False), (1, True), (3, False)]),
    seed=st.integers(0, 10_000),
    value=st.integers(0, 3),
)
@settings(max_examples=60, deadline=None)
def test_messages_of_the_file_are_no_alarm(kind: tuple[int, bool], seed: int, value: int) -> None:
    dimension, bursts = kind
    made = file(dimension, bursts=bursts)
    own = value if dimension == 1 else (seed % 3, value)
    analyzer = Analyzer(made)
    analyzer.add(seeded(made, seed).batch([own] * made.problem.n).symbols)
    assert analyzer.unlike_file() is None


@pytest.mark.parametrize("tabled", [True, False])
def test_messages_of_another_histogram(tabled: bool) -> None:
    """One coordinate fewer, or a smaller alphabet: a coordinate without noise."""
    made, other = noisy(dimension=3), noisy(dimension=4)
    symbols = seeded(made).batch([(i % 3, 1) for i in range(400)]).symbols
    for used, odd in ((made, None), (other, "0 messages of coordinate 3 are only noise")):
        analyzer = Analyzer(used)
        if not tabled:
            analyzer._counts = analyzer._counts[:0]
            analyzer._sums = np.zeros(used.dimension, np.int64)
        analyzer.add(symbols)
        found = analyzer.result().implausible
        assert found is None if odd is None else found is not None and odd in found


def test_fewer_users_than_are_assumed() -> None:
    """The certificate needs half of them, the estimate of real values the number of all."""
    made = noisy(0.5)
    symbols = seeded(made).batch([0] * 220).symbols
    for users in (220, 400):
        analyzer = Analyzer(made, users=users)
        analyzer.add(symbols)
        assert analyzer.result().implausible is None  # the noise varies more than that
    many = Analyzer(made, users=1500)
    many.add(symbols)
    assert "too few for 1,500 users" in (many.result().implausible or "")
    below = noticed_below(made, 1500)
    assert 220 < below < 1500
    assert noticed_below(file(), 50) == 0


def test_how_few_users_would_show(tmp_path: Path) -> None:
    """5% missing do not show; that is said, with the number of users that would."""
    made = load(SHIPPED)
    n = made.problem.n
    below = noticed_below(made, n)
    for users, noticed in ((round(0.5 * below), True), (round(0.95 * n), False)):
        analyzer = Analyzer(made, allow_few=True)
        analyzer.add(seeded(made).batch([5] * users, allow_few=True).symbols)
        assert (analyzer.result().implausible is not None) == noticed
        path = tmp_path / f"{users}.txt"
        path.write_text("".join(f"{i}\n" for i in np.repeat(np.arange(7), analyzer.by_value)))
        if not noticed:
            done = run("analyze", str(SHIPPED), str(path))
            assert f"only below about {below:,}" in " ".join(done.stdout.split())
