"""How fast the deployed protocol runs, beside numpy's inexact sampler in the same run.

Exact: every user's noise from integers and fair bits.  numpy: ``negative_binomial`` for every atom
and user, in floating point, which is what a client without the compound Poisson form would do.
Bursts, the second noise law, are sampled exactly too, beside the negative binomial.

    python benchmarks/deploy.py [--users 1000000] [--max-value 50] [--messages 50000000]

``--smoke`` takes 1,000 users, max_value 2 and 10,000 messages, and measures once.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scripts

from accounting.model.laws.noise import NoiseLaw
from paramsearch import Request, generate
from paramsearch.deploy import Analyzer, Randomizer, SeededBits
from paramsearch.deploy.message_files import portions
from paramsearch.parameters.parameter_file import ParameterFile


def some_file(users: int, max_value: int, law: NoiseLaw) -> ParameterFile:
    """Any certified file will do; this is not about the search."""
    request = Request(
        n=users,
        eps=1.0,
        delta=1e-6,
        max_value=max_value,
        noise=law,
        tries=1,
        budget=2.0,
        tier="fast",
    )
    return generate(request).file


def least_seconds(*works: Callable[[], object], times: int) -> list[float]:
    """The shortest time of each, measured in turns, so that all meet the same load."""
    least = [math.inf] * len(works)
    for _ in range(times):
        for i, work in enumerate(works):
            begun = time.perf_counter()
            work()
            least[i] = min(least[i], time.perf_counter() - begun)
    return least


def inexact(file: ParameterFile, users: int) -> None:
    """The noise of every user by numpy."""
    random = np.random.default_rng(1)
    for r, p in [(file.central.r, file.central.p)] * 2 + [(e.r, e.p) for e in file.atoms]:
        random.negative_binomial(r / users, float(1 - Fraction(p)), size=users)


def seconds_single(file: ParameterFile, calls: int) -> float:
    """With the operating system's bits, as deployed."""
    randomizer = Randomizer(file)
    begun = time.perf_counter()
    for _ in range(calls):
        randomizer(1)
    return (time.perf_counter() - begun) / calls


def messages_per_second(file: ParameterFile, count: int) -> dict[str, float]:
    symbols = np.random.default_rng(1).integers(len(file.alphabet), size=count).astype(np.uint8)
    table = pa.table({"symbol": symbols})
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(table, Path(folder) / "messages.parquet")
        with pa.ipc.new_file(Path(folder) / "messages.arrow", table.schema) as sink:
            sink.write_table(table, max_chunksize=1 << 20)
        for name in ("messages.parquet", "messages.arrow"):
            analyzer = Analyzer(file)
            begun = time.perf_counter()
            for portion, ids in portions(Path(folder) / name):
                analyzer.add(portion, ids)
            found[name] = count / (time.perf_counter() - begun)
            assert analyzer.messages == count
    return found


def main() -> None:
    parser = scripts.parser(__doc__)
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--max-value", type=int, default=50)
    parser.add_argument("--messages", type=int, default=50_000_000)
    asked = parser.parse_args()
    times, calls = 7, 20_000
    if asked.smoke:
        asked.users, asked.max_value, asked.messages = 1_000, 2, 10_000
        times, calls = 1, 100
    scripts.say("two files to measure with")
    file, bursts = (
        some_file(asked.users, asked.max_value, law) for law in ("negative-binomial", "burst")
    )
    users = asked.users
    values = np.random.default_rng(0).integers(asked.max_value + 1, size=users)
    one, other = (Randomizer(of, SeededBits(1), not_private=True) for of in (file, bursts))
    scripts.say(f"batches of {users:,} users")
    batch, of_bursts = least_seconds(
        lambda: one.batch(values), lambda: other.batch(values), times=times
    )
    noise, burst_noise = least_seconds(
        *(lambda of=of: list(of.noise.events_of(of.source, users)) for of in (one, other)),
        times=times,
    )
    scripts.say("numpy's sampler")
    (by_numpy,) = least_seconds(lambda: inexact(file, users), times=1)
    print(f"{users:,} users, max_value {asked.max_value}, {len(file.atoms)} atoms, one core")
    print(f"exact, batch        {users / batch:14,.0f} users per second")
    print(f"numpy, inexact      {users / by_numpy:14,.0f} users per second")
    print(f"exact over numpy    {by_numpy / batch:14.1f} times as fast")
    print(f"exact, single call  {1e6 * seconds_single(file, calls):14.1f} microseconds")
    print(f"bursts, batch       {users / of_bursts:14,.0f} users per second")
    print(f"bursts over exact   {batch / of_bursts:14.2f} times as fast")
    print(f"  their noise alone {noise / burst_noise:14.2f} times as fast")
    print(f"bursts, single call {1e6 * seconds_single(bursts, calls):14.1f} microseconds")
    scripts.say(f"analyzing {asked.messages:,} messages")
    for name, speed in messages_per_second(file, asked.messages).items():
        print(f"{name:20}{speed:14,.0f} messages per second")


if __name__ == "__main__":
    main()
