"""The analyzer: estimates, intervals, and files of messages."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deployed import file, seeded
from hypothesis import given
from hypothesis import strategies as st
from program import run
from sampler_laws import ALARM
from scipy import stats

from accounting import InvalidParameter
from paramsearch import save
from paramsearch.deploy import (
    Analyzer,
    Codec,
    RandomizedReals,
    message_files,
)
from paramsearch.deploy.message_files import packed_portions, portions
from paramsearch.deploy.participation import most_messages
from paramsearch.deploy.simulate import Simulation, simulate


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
    most = most_messages(file(), 50)
    analyzer = Analyzer(file())
    analyzer.add(np.zeros(most, np.int64))
    assert "too many" not in (analyzer.result().implausible or "")
    analyzer.add([0])
    assert "counted twice" in (analyzer.result().implausible or "")


def test_the_bound_on_messages_holds() -> None:
    """Against the law itself: the messages of an atom are |s| times a negative binomial."""
    plan = Simulation(file(), 50, values="largest", runs=2000)
    assert max(run_.messages for run_ in simulate(plan).runs) <= most_messages(file(), 50)


def test_vectors_in_both_ways_of_adding() -> None:
    made = file(7)
    small, large = Analyzer(made), Analyzer(made)
    large._counts, large._sums = large._counts[:0], np.zeros(7, np.int64)
    symbols = seeded(made).batch([(i % 7, i % 4) for i in range(50)]).symbols
    small.add(symbols)
    large.add(symbols)
    assert small.sums.tolist() == large.sums.tolist()
    assert small.result().value.tolist() == small.sums.tolist()


def test_real_values_are_counted_from_the_smallest() -> None:
    made = file(n=2000)
    few = Analyzer(made, low=2.0, high=8.0, users=1500, allow_few=True).result(0.9)
    assert few.value[0] == 2.0 * 1500  # no message: everybody has the smallest value
    deviation = 2.0 * math.sqrt(0.75 * made.error.mse + 1500 / 4)
    assert few.standard_deviation == pytest.approx(deviation)
    assert "needs 2,000" in (few.implausible or "")
    with pytest.raises(InvalidParameter, match="too far apart"):
        Analyzer(made, low=-1e308, high=1e308)
    with pytest.raises(InvalidParameter, match="largest double"):
        Analyzer(made, low=-1e308, high=0.0).result()


def test_more_users_mean_more_noise() -> None:
    made = file()
    plan = Simulation(made, 200, values="zero", runs=800, seed=3)
    errors = np.array([run_.errors[0] for run_ in simulate(plan).runs])
    found = Analyzer(made, users=200).result(0.95)
    inside = int(np.count_nonzero(np.abs(errors) <= found.upper[0]))
    # of a sample; that the interval covers is proved by test_interval.py
    assert stats.binomtest(inside, 800, 0.95, alternative="less").pvalue > ALARM
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
        # a comma within quotes separates nothing
        ('id,symbol\n"a,b",0\n"a,c",1\n"a,b",2\n', 2, 0, 1),
        ('"id", "symbol"\n"say ""7,8""", "0"\n"say ""7""",1\n', 2, 0, 0),
        # quotes that do not match are the matter of their line
        ('id,symbol\n"a,0\nb,1\n"c""d"e,2\n"f",3\n', 2, 2, 0),
    ):
        (tmp_path / "odd.csv").write_text(text, encoding="utf-8")
        analyzer = Analyzer(file())
        for portion, ids in portions(tmp_path / "odd.csv"):
            analyzer.add(portion, ids)
        counts = analyzer.messages, analyzer.rejected, analyzer.duplicates
        assert counts == (messages, rejected, duplicates), text[:40]
    for text in ("0\n1\n", "id\n0\n", "a,b\n1,2\n", '"symbol\n1\n'):
        (tmp_path / "odd.csv").write_text(text)
        with pytest.raises(InvalidParameter, match="one must be 'symbol'"):
            list(portions(tmp_path / "odd.csv"))
    huge = pa.table({"symbol": pa.array([0, None, 2**64 - 1], pa.uint64()), "id": [[1], [2], [3]]})
    pq.write_table(huge, tmp_path / "huge.parquet")
    ((portion, ids),) = portions(tmp_path / "huge.parquet")
    assert portion.tolist() == [0, -1, 1 << 62]
    with pytest.raises(InvalidParameter, match="not an id"):
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


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.text(st.characters(exclude_categories=["C", "Z"]))),
        max_size=20,
    )
)
def test_a_csv_file_that_python_writes_is_read_as_it_is(rows: list[tuple[int, str]]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "m.csv"
        with path.open("w", newline="", encoding="utf-8") as made:
            writer = csv.writer(made)
            writer.writerows([("name, of the user", "id", "symbol")])
            writer.writerows([("x, y", name, symbol) for symbol, name in rows])
        found = [
            pair for portion, ids in portions(path) for pair in zip(portion, ids or (), strict=True)
        ]
    assert found == rows


@given(st.lists(st.integers(0, 5), max_size=50), st.integers(1, 20), st.integers(1, 40))
def test_packed_messages_are_read_as_they_were_packed(
    symbols: list[int], bits: int, rows: int
) -> None:
    """For every number of bits, in portions of any size."""
    codec = Codec((1, -1), dimension=1 << (bits - 1))
    assert codec.bits == bits
    symbols = [symbol % codec.symbols for symbol in symbols]
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_files, "_ROWS", 8 * rows)
        path = Path(folder) / "messages.bin"
        path.write_bytes(codec.pack(symbols))
        found = list(packed_portions(path, bits=bits, count=len(symbols)))
    assert [symbol for part, _ in found for symbol in part.tolist()] == symbols


def test_packed_messages_of_all_users(tmp_path: Path) -> None:
    """Was: refused as text, whatever was said."""
    save(file(), tmp_path / "file.json")
    symbols = seeded(file()).batch([2] * file().problem.n).symbols
    codec = Codec.of(file())
    assert codec.bits == 3
    text, packed = tmp_path / "messages.txt", tmp_path / "messages.bin"
    text.write_text("".join(f"{symbol}\n" for symbol in symbols))
    packed.write_bytes(codec.pack(symbols))
    usual = run("analyze", tmp_path / "file.json", text, "--json")
    count = str(len(symbols))
    found = run("analyze", tmp_path / "file.json", packed, "--packed", count, "--json")
    assert found.returncode == 0, found.stderr
    assert found.stdout == usual.stdout
    half = len(symbols) // 16 * 8
    parts = [tmp_path / "first.bin", tmp_path / "second.bin"]
    for part, some in zip(parts, (symbols[:half], symbols[half:]), strict=True):
        part.write_bytes(codec.pack(some))
    counts = ("--packed", str(half), "--packed", str(len(symbols) - half))
    both = run("analyze", tmp_path / "file.json", *parts, *counts, "--json")
    assert both.stdout == usual.stdout


def test_packed_messages_whose_number_is_wrong(tmp_path: Path) -> None:
    """The bytes of another number are refused, and nothing is taken for packed by itself."""
    save(file(), tmp_path / "file.json")
    codec, path = Codec.of(file()), tmp_path / "messages.bin"
    path.write_bytes(codec.pack([4] * 80))  # 30 bytes
    table = tmp_path / "messages.csv"
    table.write_bytes(path.read_bytes())
    more = tmp_path / "more.bin"
    more.write_bytes(codec.pack([4] * 78))  # as many, with six bits to spare
    for name, options, told in (
        (path, ("--packed", "83"), "has 30 bytes, but 83 packed messages of 3 bits take 32 bytes"),
        (path, ("--packed", "70"), "has 30 bytes, but 70 packed messages of 3 bits take 27 bytes"),
        (path, ("--packed", "79"), "has bits other than 0 after 79 packed messages of 3 bits"),
        (path, ("--packed", "-1"), "packed = -1 must be at least 0"),
        (path, ("--packed", "9" * 30), "packed = a number of many digits must be at most"),
        (path, ("--packed", "80", "--packed", "80"), "1 file of packed messages need"),
        (path, (), "If they are packed, --packed says how many they are"),
        (table, ("--packed", "80"), "has the ending of another format"),
    ):
        done = run("analyze", tmp_path / "file.json", name, *options)
        assert (done.returncode, done.stdout) == (2, ""), told
        assert told in done.stderr
        assert "Traceback" not in done.stderr
    (first,) = packed_portions(more, bits=3, count=78)
    assert first[0].tolist() == [4] * 78
    (longer,) = packed_portions(more, bits=3, count=80)  # what no byte can tell
    assert longer[0].tolist() == [4] * 78 + [0, 0]


@pytest.mark.parametrize(("count", "told"), [(17, "too few bytes"), (8, "too many bytes")])
def test_packed_messages_from_a_pipe(
    count: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    codec = Codec.of(file())
    stream = io.TextIOWrapper(io.BytesIO(codec.pack([4] * 16)))
    monkeypatch.setattr(message_files.sys, "stdin", stream)
    with pytest.raises(InvalidParameter, match=f"standard input has {told}"):
        list(packed_portions(Path("-"), bits=codec.bits, count=count))
