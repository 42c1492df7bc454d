"""Randomizers, their bits, and the encoding of messages."""

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
from typing import Any

import numpy as np
import pytest
from deploy_vectors import VERSION, everything, path_of, randomized
from deployed import SUM, file, seeded
from hypothesis import given
from hypothesis import strategies as st
from sampler_laws import ALARM, chi_square, copies_cdf, law

from accounting import InvalidConfiguration, InvalidParameter
from accounting.base.errors import AccountingError, TooLarge
from accounting.base.strict_json import parse
from accounting.model.configuration import Proposal
from paramsearch import uncertified
from paramsearch.deploy import (
    Analyzer,
    Codec,
    RandomizedReals,
    Randomizer,
    SeededBits,
    SystemBits,
    Tape,
)
from paramsearch.deploy.noise_sampler import Noise
from paramsearch.parameters.parameter_file import from_json


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
        Randomizer(uncertified(Proposal.of(SUM)))
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


@pytest.mark.parametrize(("dimension", "bursts"), [(1, False), (3, False), (1, True), (3, True)])
def test_the_noise_of_all_users_has_the_files_law(dimension: int, bursts: bool) -> None:
    """Per atom and coordinate, drawn for all users at once and for two groups of them."""
    made = file(dimension, bursts=bursts)
    noise, source = Noise(made), SeededBits(3)
    atoms = [(1,), (-1,), *(entry.atom for entry in made.atoms)]
    whole: list[list[int]] = []
    parts: list[list[int]] = []
    for run_ in range(1500):
        for drawn, shares in ((whole, (50,)), (parts, (20, 30))):
            copies: Counter[tuple[int, ...]] = Counter()
            for users in shares if run_ % 2 else (50,):
                for events in noise.events_of(source, users):
                    here = events.coordinates == dimension - 1
                    copies[events.atom] += int(events.copies[here].sum())
            drawn.append([copies[atom] for atom in atoms])
    laws = [copies_cdf(entry) for entry in (made.central, made.central, *made.atoms)]
    for drawn in (whole, parts):
        for i, cdf in enumerate(laws):
            assert chi_square(np.array([row[i] for row in drawn]), cdf) > ALARM


@pytest.mark.parametrize("bursts", [False, True])
def test_messages_of_one_atom_have_its_law_one_by_one_and_in_batches(bursts: bool) -> None:
    """Where every input is 0, the message 3 comes from one atom alone."""
    made = file(bursts=bursts)
    cdf = copies_cdf(next(entry for entry in made.atoms if 3 in entry.atom))
    symbol, nothing = made.alphabet.index(3), np.zeros(50, np.int64)
    randomizer = seeded(made, "one atom")
    batch = [int((randomizer.batch(nothing).symbols == symbol).sum()) for _ in range(1500)]
    single = [sum(randomizer(0).count(symbol) for _ in range(50)) for _ in range(1500)]
    for drawn in (batch, single):
        assert chi_square(np.array(drawn), cdf) > ALARM


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


def test_a_batch_that_is_too_large_is_refused_before_anything_is_drawn() -> None:
    made = file(n=2)
    users = int(2**28 / made.cost.messages_per_user) + 1
    randomizer = Randomizer(made, Tape(""), not_private=True)
    with pytest.raises(TooLarge, match="split them into several batches"):
        randomizer.batch(np.zeros(users, np.int64))


def test_who_sends_what_in_a_batch() -> None:
    batch = seeded(file()).batch([0, 3, 0, 1], allow_few=True)  # who sends, not what it hides
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
            fresh = seeded(file(n=2)).noise._counts[1]
            shared = randomizer.noise._counts[1]
            for k, hazard in shared._hazards.items():
                assert hazard.low == fresh._hazard(k).low
    finally:
        sys.setswitchinterval(before)


def test_noise_belongs_to_any_user_of_a_batch() -> None:
    randomizer = seeded(file(), 12)
    parts = [randomizer.batch([0] * 5, allow_few=True) for _ in range(3000)]  # 5 are easy to count
    senders = np.concatenate([part.users for part in parts])
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


@pytest.mark.parametrize("name", ["integers", "bursts", "vectors", "reals"])
def test_the_published_vectors(name: str) -> None:
    """Bits to messages, symbols to bytes, messages to sums: as other languages have to do it."""
    data = json.loads(path_of(name).read_text())
    assert data["version"] == VERSION
    made = from_json(data["file"], source=name)
    for case in data["randomizer"]:
        tape = Tape(case["bits"])
        assert randomized(name, made, tape, case["value"]) == case["symbols"]
        assert tape.read == len(case["bits"])
    assert max(len(case["symbols"]) for case in data["randomizer"]) > 20
    for value in data["refused"]:
        with pytest.raises(InvalidParameter):
            randomized(name, made, Tape(""), value)
    codec = Codec.of(made)
    for case in data["encoder"]:
        assert codec.pack(case["symbols"]).hex() == case["packed"]
    for case in data["analyzer"]:
        analyzer = Analyzer(made)
        analyzer.add(case["symbols"])
        assert analyzer.sums.tolist() == case["sums"]
        assert analyzer.rejected == case["rejected"]


REFUSALS = json.loads(path_of("refusals").read_text())["cases"]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case["name"])
def test_the_published_refusals(case: dict[str, str]) -> None:
    with pytest.raises(AccountingError) as caught:
        Randomizer(from_json(parse(case["content"], source="the file"), source="the file"))
    assert case["about"] in str(caught.value)


def test_the_vectors_of_a_version_stay_as_they_are() -> None:
    """Whoever passed them still does: the program makes the same ones, apart from the certificate's
    versions and the hash over them."""
    for name, content in everything().items():
        published = json.loads(path_of(name).read_text())
        if name != "refusals":
            for key in ("randomizer", "refused", "encoder", "analyzer", "version"):
                assert published[key] == json.loads(json.dumps(content[key]))


def test_the_messages_of_a_call_are_in_a_random_order() -> None:
    """The true value, which no noise has here, is as often in one place as in another."""
    source = SeededBits("order")
    randomizer = Randomizer(file(), source, not_private=True)
    places = []
    while len(places) < 2000:
        values = [randomizer.codec.message(symbol)[1] for symbol in randomizer(3)]
        if len(values) == 3 and values.count(3) == 1:
            places.append(values.index(3))
    assert chi_square(np.array(places), lambda k: (k + 1) / 3) > ALARM


def test_a_batch_does_not_list_the_true_values_first() -> None:
    batch = seeded(file(), 5).batch([3] * 25 + [0] * 25)
    first = Codec.of(file()).symbol((0, 3))
    assert set(batch.symbols[:25].tolist()) != {first}
    assert batch.users[:25].tolist() != sorted(batch.users[:25].tolist())
