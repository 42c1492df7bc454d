"""The protocol from a certified file: randomizers, encoding, analyzer, simulation, commands."""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from test_generate import run
from test_laws import ALARM, chi_square, law

from accounting import InvalidConfiguration, InvalidParameter, Protocol
from accounting.configuration import Proposal
from accounting.rounding import configuration
from paramsearch import certify, load, parameters, save
from paramsearch.deploy import (
    Analyzer,
    Codec,
    RandomizedReals,
    Randomizer,
    SeededBits,
    SystemBits,
    Tape,
)
from paramsearch.deploy.analyzer import expected_messages, noise_quantile
from paramsearch.deploy.randomizer import Noise
from paramsearch.deploy.reading import portions
from paramsearch.deploy.simulate import Plan, simulate
from paramsearch.parameter_file import ParameterFile, from_json

SUM = {
    "max_value": 3,
    "eps": 2.0,
    "delta": 0.2,
    "n": 50,
    "eps_central": 1.5,
    "atoms": [
        {"atom": [-1, 1], "r": 3.0, "p": 0.6},
        {"atom": [2, -1, -1], "r": 3.0, "p": 0.6},
        {"atom": [3, -2, -1], "r": 3.0, "p": 0.6},
        {"atom": [-2, 1, 1], "r": 3.0, "p": 0.6},
    ],
}


@cache
def file(dimension: int = 1, honest: float = 1.0, n: int = 50) -> ParameterFile:
    proposal = Proposal.of({**SUM, "dimension": dimension, "delta": 0.5, "n": n})
    return certify(parameters(proposal, honest=honest))


def seeded(made: ParameterFile, seed: object = 1) -> Randomizer:
    return Randomizer(made, SeededBits(str(seed)), not_private=True)


# --- the randomizer


def test_only_certified_files_and_the_systems_bits_are_deployed() -> None:
    assert isinstance(Randomizer(file()).source, SystemBits)
    with pytest.raises(InvalidParameter, match="SeededBits does not protect"):
        Randomizer(file(), SeededBits(1))

    class Zeros(SystemBits):
        def _chunk(self) -> bytes:
            return bytes(64)

    with pytest.raises(InvalidParameter, match="Zeros does not protect"):
        Randomizer(file(), Zeros())
    with pytest.raises(InvalidParameter, match="no certificate"):
        Randomizer(parameters(Proposal.of(SUM)))
    forged = file().model_copy(update={"alphabet": (1, -1, 2, -2)})
    with pytest.raises(InvalidConfiguration):
        Randomizer(forged)


@pytest.mark.parametrize("value", [-1, 4, 1.5, math.nan, math.inf, True, "2", None, (0, 1)])
def test_wrong_values_are_refused_before_anything_is_sent(value: Any) -> None:
    randomizer = Randomizer(file(), Tape(""), not_private=True)  # not one bit may be read
    with pytest.raises(InvalidParameter):
        randomizer(value)
    with pytest.raises(InvalidParameter):
        randomizer.batch([1, value])


@pytest.mark.parametrize(
    "value", [1, (0, 4), (7, 1), (-1, 1), (0,), "x", None, (0, True), False, np.array([1, 9])]
)
def test_wrong_vectors(value: Any) -> None:
    randomizer = Randomizer(file(7), Tape(""), not_private=True)
    with pytest.raises(InvalidParameter):
        randomizer(value)


def test_the_law_of_one_users_messages() -> None:
    """Without events: the value alone, with probability e^-rate, found from all bit strings."""
    randomizer = Randomizer(file(), not_private=True)

    def draw(source: Any) -> int:
        randomizer._source = source
        return len(randomizer(2))

    found, short = law(draw, 13)
    none = math.exp(-float(randomizer.noise.rate) / 50)
    assert found[1] <= Fraction(none) + Fraction(1, 10**12)
    assert Fraction(none) - Fraction(1, 10**12) <= found[1] + short


@pytest.mark.parametrize("dimension", [1, 3])
def test_the_noise_of_all_users_has_the_files_law(dimension: int) -> None:
    """Per atom and coordinate, copies are NB(r, p); two cells of the batch and of single calls."""
    made = file(dimension)
    noise, source = Noise(made), SeededBits(3)
    whole: list[list[int]] = []
    parts: list[list[int]] = []
    for run_ in range(1500):
        for drawn, shares in ((whole, (50,)), (parts, (20, 30))):
            copies: Counter[int] = Counter()
            for users in shares if run_ % 2 else (50,):
                for coordinate, which, times in noise.events(source, users):
                    if coordinate == dimension - 1:
                        copies[which] += times
            drawn.append([copies[i] for i in range(len(noise.atoms))])
    laws = [(made.central.r, Fraction(made.central.p))] * 2
    laws += [(entry.r, Fraction(entry.p)) for entry in made.atoms]
    for drawn in (whole, parts):
        for i, (r, p) in enumerate(laws):
            found = np.array([row[i] for row in drawn])
            assert chi_square(found, lambda k: stats.nbinom.cdf(k, r, float(1 - p))) > ALARM


def test_a_batch_is_many_single_calls() -> None:
    """Sums of messages and their number: the same means, by batch and one by one."""
    made = file()
    values = [0, 1, 2, 3, 3] * 10
    sums, counts = [], []
    for seed in range(300):
        randomizer = seeded(made, seed)
        for symbols in (
            [s for value in values for s in randomizer(value)],
            randomizer.batch(np.array(values)).symbols.tolist(),
        ):
            sums.append(sum(randomizer.codec.message(s)[1] for s in symbols))
            counts.append(len(symbols))
    error = np.array(sums) - sum(values)
    for half in (error[0::2], error[1::2]):
        assert abs(half.mean()) < 5 * math.sqrt(made.error.mse / 300)
    expected = 40 + made.cost.noise_messages
    for half in (counts[0::2], counts[1::2]):
        assert abs(np.mean(half) - expected) < 5 * np.std(half) / math.sqrt(300)


def test_who_sends_what_in_a_batch() -> None:
    batch = seeded(file()).batch([0, 3, 0, 1])
    codec = Codec.of(file())
    own = {
        (user, codec.message(int(s))[1]) for s, user in zip(batch.symbols, batch.users, strict=True)
    }
    assert {(1, 3), (3, 1)} <= own
    assert set(batch.users.tolist()) <= {0, 1, 2, 3}


def test_the_bits_are_those_of_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[bytes] = []
    system = os.urandom

    def recorded(size: int) -> bytes:
        given.append(system(size))
        return given[-1]

    monkeypatch.setattr(os, "urandom", recorded)
    source = SystemBits()
    found = "".join(f"{source.bits(size):0{size}b}" for size in (1, 7, 64, 300, 3, 700))
    everything = "".join(f"{byte:08b}" for chunk in given for byte in chunk)
    assert everything.startswith(found)


def test_copies_of_a_source_have_bits_of_their_own() -> None:
    source = SystemBits()
    source.bits(5)
    for other in (copy.deepcopy(source), copy.copy(source), pickle.loads(pickle.dumps(source))):
        assert other.bits(256) != source.bits(256)


def test_threads_may_share_a_randomizer() -> None:
    """Every bit is given once, and a hazard is the same whoever computes it first."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(3):
            source = SystemBits()
            randomizer = seeded(file(n=2))
            with ThreadPoolExecutor(8) as pool:
                found = list(pool.map(lambda _: source.bits(64), range(4000)))
                list(pool.map(randomizer, [1] * 200))
            assert len(set(found)) == len(found)
            assert max(found) < 1 << 64
            fresh = seeded(file(n=2)).noise._events[1]
            shared = randomizer.noise._events[1]
            for k, hazard in shared._hazards.items():
                assert hazard.low == fresh._hazard(k).low
    finally:
        sys.setswitchinterval(before)


def test_noise_belongs_to_any_user_of_a_batch() -> None:
    randomizer = seeded(file(), 12)
    senders = np.concatenate([randomizer.batch([0] * 5).users for _ in range(3000)])
    events = np.unique(senders, return_counts=True)[1]
    assert len(events) == 5
    # messages come in clumps: compare with the spread between users, not with Poisson
    assert events.std() < 0.2 * events.mean()


def test_a_child_process_does_not_repeat_its_parents_bits() -> None:
    source = SystemBits()
    source.bits(3)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - in the child
        os.write(write, source.bits(256).to_bytes(32, "big"))
        os._exit(0)
    os.waitpid(child, 0)
    assert int.from_bytes(os.read(read, 32), "big") != source.bits(256)


@given(st.floats(-3, 5), st.integers(0, 2**32))
def test_rounding_of_reals(value: float, seed: int) -> None:
    reals = RandomizedReals(seeded(file(), seed), low=-3.0, high=5.0)
    exact = (Fraction(value) + 3) * Fraction(3, 8)
    assert reals.rounded(value) in {math.floor(exact), math.ceil(exact)}


def test_rounding_keeps_the_mean_exactly() -> None:
    reals = RandomizedReals(Randomizer(file(), not_private=True), low=0.0, high=3.0)

    def draw(source: Any) -> int:
        reals.randomizer._source = source
        return reals.rounded(1.375)

    found, short = law(draw, 12)
    assert short == 0
    assert found == {1: Fraction(5, 8), 2: Fraction(3, 8)}


def test_reals_outside_are_refused_or_clipped() -> None:
    reals = RandomizedReals(seeded(file()), low=0.0, high=1.0)
    for value in (-0.1, 1.1, math.nan, math.inf):
        with pytest.raises(InvalidParameter):
            reals(value)
    clipped = RandomizedReals(seeded(file()), low=0.0, high=1.0, clip=True)
    assert clipped.rounded(7.0) == 3
    with pytest.raises(InvalidParameter):
        clipped.rounded(math.nan)
    with pytest.raises(InvalidParameter, match="less than high"):
        RandomizedReals(seeded(file()), low=1.0, high=1.0)


# --- the encoding


@given(st.integers(1, 1000), st.integers(2, 40), st.data())
def test_packing(dimension: int, size: int, data: st.DataObject) -> None:
    codec = Codec(tuple(range(size)), dimension)
    symbols = data.draw(st.lists(st.integers(0, codec.symbols - 1), max_size=30))
    packed = codec.pack(symbols)
    assert len(packed) == -(-len(symbols) * codec.bits // 8)
    assert list(codec.unpack(packed, len(symbols))) == symbols
    assert codec.pack(np.array(symbols, np.int64)) == packed
    assert [codec.symbol(codec.message(symbol)) for symbol in symbols] == symbols


def test_the_width_is_the_files() -> None:
    for made in (file(), file(7)):
        assert Codec.of(made).bits == made.cost.bits_per_message
    with pytest.raises(InvalidParameter):
        Codec.of(file()).symbol((0, 17))
    with pytest.raises(InvalidParameter):
        list(Codec.of(file()).unpack(b"\0", 100))


@pytest.mark.parametrize("name", ["integers", "vectors"])
def test_the_published_vectors(name: str) -> None:
    """Bits to messages, symbols to bytes, messages to sums: as other languages have to do it."""
    data = json.loads((Path(__file__).parent / "vectors" / f"{name}.json").read_text())
    made = from_json(data["file"], source=name)
    for case in data["randomizer"]:
        tape = Tape(case["bits"])
        value = tuple(case["value"]) if isinstance(case["value"], list) else case["value"]
        assert Randomizer(made, tape, not_private=True)(value) == case["symbols"]
        assert tape.read == len(case["bits"])
    assert max(len(case["symbols"]) for case in data["randomizer"]) > 20
    codec = Codec.of(made)
    for case in data["encoder"]:
        assert codec.pack(case["symbols"]).hex() == case["packed"]
    for case in data["analyzer"]:
        analyzer = Analyzer(made)
        analyzer.add(case["symbols"])
        assert analyzer.sums.tolist() == case["sums"]
        assert analyzer.rejected == case["rejected"]


# --- the analyzer


@given(st.lists(st.integers(-3, 9), max_size=200), st.integers(1, 50))
def test_portions_do_not_matter(symbols: list[int], size: int) -> None:
    whole, pieces = Analyzer(file()), Analyzer(file())
    whole.add(np.array(symbols, np.int64))
    for i in range(0, len(symbols), size):
        pieces.add(iter(symbols[i : i + size]))
    codec = whole.codec
    good = [s for s in symbols if 0 <= s < codec.symbols]
    truth = sum(codec.message(s)[1] for s in good)
    assert whole.sums.tolist() == pieces.sums.tolist() == [truth]
    assert whole.rejected == pieces.rejected == len(symbols) - len(good)


def test_garbage() -> None:
    strict = Analyzer(file(), strict=True)
    with pytest.raises(InvalidParameter, match="message 2 is 77"):
        strict.add([1, 77])
    for wrong in ([1.5], ["1"], [True], np.array([1.0])):
        with pytest.raises(InvalidParameter):
            Analyzer(file()).add(wrong)  # type: ignore[arg-type] - what is refused


def test_ids_tell_copies_apart() -> None:
    analyzer = Analyzer(file())
    analyzer.add([0, 0, 0], ids=["a", "b", "a"])
    analyzer.add([0], ids=["b"])
    assert (analyzer.messages, analyzer.duplicates) == (2, 2)
    analyzer.add(iter([1, 1]), ids=[None, ""])
    analyzer.add([], ids=[])
    assert (analyzer.messages, analyzer.duplicates) == (4, 2)
    with pytest.raises(InvalidParameter, match="'a' comes twice"):
        Analyzer(file(), strict=True).add([0, 0], ids=["a", "a"])


def test_too_many_messages_are_noticed() -> None:
    most = expected_messages(file(), 50)
    analyzer = Analyzer(file())
    analyzer.add(np.zeros(most, np.int64))
    assert analyzer.result().implausible is None
    analyzer.add([0])
    assert "counted twice" in (analyzer.result().implausible or "")


def test_the_bound_on_messages_holds() -> None:
    """Against the law itself: the messages of an atom are |s| times a negative binomial."""
    plan = Plan(file(), 50, values="largest", runs=2000)
    assert max(run_.messages for run_ in simulate(plan).runs) <= expected_messages(file(), 50)


@pytest.mark.parametrize("honest", [1.0, 0.5])
@pytest.mark.parametrize("miss", [0.3, 0.05, 1e-4])
def test_the_interval_covers(honest: float, miss: float) -> None:
    """By the law of z+ - z-, summed directly."""
    made = file(honest=honest)
    reach = noise_quantile(made, miss)
    k = np.arange(4000)
    mass = stats.nbinom.pmf(k, made.central.r, float(1 - Fraction(made.central.p)))
    apart = np.abs(np.subtract.outer(k[:400], k[:400])) > reach
    assert (np.outer(mass[:400], mass[:400]) * apart).sum() <= miss
    half = noise_quantile(made, miss, 0.5)
    few = stats.nbinom.pmf(k, made.central.r / 2, float(1 - Fraction(made.central.p)))
    apart = np.abs(np.subtract.outer(k[:400], k[:400])) > half
    assert (np.outer(few[:400], few[:400]) * apart).sum() <= miss
    apart = np.abs(np.subtract.outer(k[:400], k[:400])) > reach
    if honest == 1.0:  # exact there: one less would not do
        apart = np.abs(np.subtract.outer(k[:400], k[:400])) > reach - 1
        assert reach == 0 or (np.outer(mass[:400], mass[:400]) * apart).sum() > miss


def test_vectors_in_both_ways_of_adding() -> None:
    made = file(7)
    small, large = Analyzer(made), Analyzer(made)
    large._counts, large._sums = large._counts[:0], np.zeros(7, np.int64)
    symbols = seeded(made).batch([(i % 7, i % 4) for i in range(50)]).symbols
    small.add(symbols)
    large.add(symbols)
    assert small.sums.tolist() == large.sums.tolist()
    assert small.result().value.tolist() == small.sums.tolist()


def test_the_interval_of_real_values_has_both_parts() -> None:
    made = file(n=2000)
    found = Analyzer(made, low=2.0, high=8.0, users=1500).result(0.9)
    reach = noise_quantile(made, 0.05, 0.75) + math.sqrt(1500 * math.log(4 / 0.1) / 2)
    assert found.value[0] == 2.0 * 1500  # no message: everybody has the smallest value
    assert found.upper[0] - found.value[0] == pytest.approx(2.0 * reach)
    deviation = 2.0 * math.sqrt(0.75 * made.error.mse + 1500 / 4)
    assert found.standard_deviation == pytest.approx(deviation)
    assert "fewer than the 2,000" in (found.implausible or "")
    with pytest.raises(InvalidParameter, match="too far apart"):
        Analyzer(made, low=-1e308, high=1e308)


def test_more_users_mean_more_noise() -> None:
    made = file()
    plan = Plan(made, 200, values="zero", runs=800, seed=3)
    errors = np.array([run_.errors[0] for run_ in simulate(plan).runs])
    found = Analyzer(made, users=200).result(0.95)
    assert np.mean(np.abs(errors) <= found.upper[0]) >= 0.95
    assert abs((errors**2).mean() - found.standard_deviation**2) < 5 * (errors**2).std() / 28


def test_real_values_end_to_end() -> None:
    made = file(n=2000)
    randomizer = RandomizedReals(seeded(made), low=-1.0, high=1.0)
    values = np.linspace(-1, 1, 2000) ** 3
    analyzer = Analyzer(made, low=-1.0, high=1.0)
    analyzer.add(randomizer.batch(values).symbols)
    found = analyzer.result(1 - 1e-6)
    assert found.lower[0] <= values.sum() <= found.upper[0]
    assert abs(found.value[0] - values.sum()) < 5 * found.standard_deviation


def test_files_of_messages(tmp_path: Path) -> None:
    symbols = [0, 3, 99, 2, 1, 0]
    (tmp_path / "m.txt").write_text("".join(f"{s}\n" for s in symbols) + "\nrubbish\n")
    (tmp_path / "m.csv").write_text(
        "id,symbol\n" + "".join(f"{i},{s}\n" for i, s in enumerate(symbols))
    )
    table = pa.table({"symbol": pa.array([*symbols, None], pa.int16())})
    pq.write_table(table, tmp_path / "m.parquet")
    with pa.ipc.new_file(tmp_path / "m.arrow", table.schema) as sink:
        sink.write_table(table)
    sums = []
    for name in ("m.txt", "m.csv", "m.parquet", "m.arrow"):
        analyzer = Analyzer(file())
        for portion, ids in portions(tmp_path / name):
            analyzer.add(portion, ids)
        sums.append(analyzer.sums.tolist())
        assert analyzer.messages == 5
        assert analyzer.rejected == (1 if name == "m.csv" else 2)
    assert sums[0] == sums[1] == sums[2] == sums[3]
    for text, messages, rejected, duplicates in (
        ("\ufeffid,symbol\n7,0\n7,0\n", 1, 0, 1),
        ("symbol,id\n0,\n1,\n2\n", 3, 0, 0),
        ('symbol\n0\n"\n1\n1\n', 3, 1, 0),
        ("symbol\n" + "9" * 200_000 + "\n1\n", 1, 1, 0),
        ("symbol\n+1\n1_0\n-0\n2.0\n3\n", 1, 4, 0),
    ):
        (tmp_path / "odd.csv").write_text(text, encoding="utf-8")
        analyzer = Analyzer(file())
        for portion, ids in portions(tmp_path / "odd.csv"):
            analyzer.add(portion, ids)
        counts = analyzer.messages, analyzer.rejected, analyzer.duplicates
        assert counts == (messages, rejected, duplicates), text[:40]
    for text in ("0\n1\n", "id\n0\n", "a,b\n1,2\n"):
        (tmp_path / "odd.csv").write_text(text)
        with pytest.raises(InvalidParameter, match="one must be 'symbol'"):
            list(portions(tmp_path / "odd.csv"))
    huge = pa.table({"symbol": pa.array([0, None, 2**64 - 1], pa.uint64()), "id": [[1], [2], [3]]})
    pq.write_table(huge, tmp_path / "huge.parquet")
    ((portion, ids),) = portions(tmp_path / "huge.parquet")
    assert portion.tolist() == [0, -1, 1 << 62]
    with pytest.raises(InvalidParameter, match="no id"):
        Analyzer(file()).add(portion, ids)
    (tmp_path / "two.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InvalidParameter, match="symbol"):
        list(portions(tmp_path / "two.csv"))
    pq.write_table(pa.table({"symbol": [0.5]}), tmp_path / "float.parquet")
    with pytest.raises(InvalidParameter, match="not integers"):
        list(portions(tmp_path / "float.parquet"))
    (tmp_path / "broken.parquet").write_text("no")
    with pytest.raises(InvalidParameter, match="cannot be read"):
        list(portions(tmp_path / "broken.parquet"))


# --- the whole


def test_the_error_is_discrete_laplace() -> None:
    made = file()
    errors = np.array([run_.errors[0] for run_ in simulate(Plan(made, 50, runs=6000, seed=5)).runs])
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
    outcome = simulate(Plan(file(dimension), 50, runs=300, path=path, seed=2))
    assert abs(outcome.messages.deviation) < 5
    assert abs(outcome.mse.deviation) < 5


def test_fewer_honest_users_add_less_noise() -> None:
    outcome = simulate(Plan(file(), 50, values="zero", runs=400, honest=0.5))
    assert abs(outcome.messages.deviation) < 5
    assert outcome.messages.expected == pytest.approx(file().cost.noise_messages / 2)


def test_the_best_distinguisher_reaches_delta_from_below() -> None:
    """Views of +1 and -1 counts at max_value 1, weak noise: the likelihood ratio test on samples.

    Its advantage P(S) - e^eps Q(S) is an unbiased estimate of the exact delta; any other set does
    no better.  Five standard errors on either side.
    """
    weak = {"max_value": 1, "eps": 0.4, "delta": 0.2, "n": 20, "eps_central": 0.6,
            "atoms": [{"atom": [-1, 1], "r": 2.0, "p": 0.6}]}  # fmt: skip
    made = certify(parameters(Proposal.of(weak)))
    exact = Protocol(configuration(made.mechanism(), noise="more")).pair(1, 0, 0.4, gap=1e-4)
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
        for _, which, copies in noise.events(source, 20):
            for element in noise.atoms[which]:
                counts[element] += copies
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
    outcome = simulate(Plan(load(path), 100_000, runs=200, path="users", seed=4))
    assert abs(outcome.messages.deviation) < 3
    assert abs(outcome.mse.deviation) < 3


# --- the commands


def test_commands(tmp_path: Path) -> None:
    path, messages = tmp_path / "file.json", tmp_path / "messages.txt"
    save(file(), path)
    done = run("randomize", str(path), "--value", "3", "--value", "0", "--value", "2")
    assert done.returncode == 0, done.stderr
    messages.write_text(done.stdout + "999\n")
    done = run("analyze", str(path), str(messages), "--users", "3", "--json")
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
