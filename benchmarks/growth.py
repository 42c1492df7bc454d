"""How time and memory of the accounting grow with max_value.

Measured: seconds (the fastest of a few runs, each with a new ``Protocol``), number of ordered pairs
and peak memory of ``Protocol(config).delta(1.0)``: rigorous, all pairs, the worst one to a relative
gap of 1%; and of the estimates of all pairs that a search works with.  Families are hubs, and ones
below 9; the noise has r = 12 and means that make delta(1) about 1e-6.  Memory is given twice: what
the call itself allocates at its peak (tracemalloc, in one more run that is not timed), and the
largest resident size of the process, which is about 160 MiB before any work.  Every size has a
process of its own.  A warm-up call compiles the kernels and is not counted.

    python benchmarks/growth.py [--sizes 5 20 50] [--large] [--search] [--csv FILE]

``--smoke`` measures two small sizes once.
"""

from __future__ import annotations

import csv
import math
import multiprocessing
import resource
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import scripts

from accounting import (
    Configuration,
    NegativeBinomial,
    NoiseSum,
    Protocol,
    hubs,
    ones,
)
from accounting.estimator.estimate import Estimator
from accounting.model.family import UNIT

EPS, EPS_CENTRAL, R, GAP, TARGET = 1.0, 0.9, 12.0, 0.01, 1e-6
SIZES, LARGE = (5, 20, 50, 200), 1000
# delta(1) is within a factor of 2 of 1e-6 (1000: a guess from 200); --search finds such scales
SCALES = {5: 560.0, 20: 730.0, 50: 730.0, 200: 730.0, 1000: 730.0}
LONG_ENOUGH = 20.0
"""Seconds after which a size is not run again."""


@dataclass(frozen=True)
class Outcome:
    """What a pass answers: delta as text, how many pairs, whether the gap was reached."""

    delta: str
    pairs: int
    met: bool | None


@dataclass(frozen=True)
class Measurement:
    max_value: int
    name: str
    outcome: Outcome
    runs: int
    seconds: float
    allocated_mib: float
    process_mib: float


def rigorous(config: Configuration) -> Outcome:
    found = Protocol(config).delta(EPS, gap=GAP)
    return Outcome(str(found.enclosure), len(found.changes), found.met)


def estimate(config: Configuration) -> Outcome:
    """Without proofs, as a search would ask: choosing the grid is included."""
    view_pairs = Protocol(config).view_pairs
    parts = [noise.parts[0] for noise in view_pairs.noises]
    parameters = np.log([[part.mean for part in parts], [part.r for part in parts]])
    found = Estimator(view_pairs, eps=EPS, delta=TARGET).log_delta(parameters)
    return Outcome(f"about {math.exp(found.max()):.4g}", len(found), None)


PASSES: dict[str, Callable[[Configuration], Outcome]] = {
    "rigorous": rigorous,
    "estimate": estimate,
}
"""What is measured at every size; another entry is another block of rows."""

COLUMNS: dict[str, Callable[[Measurement], object]] = {
    "pass": lambda m: m.name,
    "max_value": lambda m: m.max_value,
    "pairs": lambda m: m.outcome.pairs,
    "delta": lambda m: m.outcome.delta,
    "gap reached": lambda m: {True: "yes", False: "no", None: "-"}[m.outcome.met],
    "runs": lambda m: m.runs,
    "seconds": lambda m: f"{m.seconds:.3g}",
    "us per pair": lambda m: f"{1e6 * m.seconds / m.outcome.pairs:.0f}",
    "allocated MiB": lambda m: f"{m.allocated_mib:.3g}",
    "process MiB": lambda m: f"{m.process_mib:.0f}",
}


def configuration(max_value: int, scale: float) -> Configuration:
    family = hubs(max_value) if max_value >= 9 else ones(max_value)
    reach = np.abs(family.columns).max(axis=0)
    noise = {}
    for elements, largest in zip(family.atoms, reach.tolist(), strict=True):
        size = max(largest, max_value) if elements == UNIT else 0.5 * largest
        noise[elements] = NoiseSum.of(NegativeBinomial.from_mean(mean=scale * size, r=R))
    return Configuration(family, noise, EPS_CENTRAL)


def find_scale(max_value: int) -> float:
    """A scale with delta(1) within a factor of 2 of the target; delta falls as the scale grows."""
    low, high, scale = 0.0, math.inf, SCALES.get(max_value, 650.0)
    for _ in range(12):
        delta = Protocol(configuration(max_value, scale)).delta(EPS, gap=0.2).enclosure
        if delta.lower > TARGET / 2 and delta.upper < TARGET * 2:
            return round(scale, 1)
        if delta.upper > TARGET:
            low = scale
        else:
            high = scale
        scripts.say(f"max_value {max_value}: scale {scale:.1f} gives {delta}")
        scale = (low + high) / 2 if low and high < math.inf else low * 1.5 or high / 1.5
    raise RuntimeError(f"no scale found for max_value = {max_value}")


def allocated_mib(work: Callable[[], object]) -> float:
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / (1 << 20)


def process_mib() -> float:
    """The largest resident size of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def measure(max_value: int, scale: float, name: str, repeats: int) -> Measurement:
    work = PASSES[name]
    work(configuration(9, 650.0))
    config = configuration(max_value, scale)
    seconds: list[float] = []
    while len(seconds) < repeats and sum(seconds) < LONG_ENOUGH:
        begin = time.perf_counter()
        outcome = work(config)
        seconds.append(time.perf_counter() - begin)
    process = process_mib()
    allocated = allocated_mib(lambda: work(config))
    return Measurement(max_value, name, outcome, len(seconds), min(seconds), allocated, process)


def exponent(x: Sequence[float], y: Sequence[float]) -> float:
    return math.log(y[1] / y[0]) / math.log(x[1] / x[0])


def growth(found: Sequence[Measurement]) -> list[dict[str, object]]:
    """Exponents between successive sizes of one pass: value ~ max_value^exponent."""
    rows: list[dict[str, object]] = []
    for a, b in pairwise(found):
        if a.name != b.name:
            continue
        size = (a.max_value, b.max_value)
        rows.append(
            {
                "pass": a.name,
                "from": a.max_value,
                "to": b.max_value,
                "exponent of pairs": f"{exponent(size, (a.outcome.pairs, b.outcome.pairs)):.2f}",
                "exponent of time": f"{exponent(size, (a.seconds, b.seconds)):.2f}",
                "exponent of memory": f"{exponent(size, (a.allocated_mib, b.allocated_mib)):.2f}",
            }
        )
    return rows


def markdown(rows: Sequence[dict[str, object]]) -> str:
    head = list(rows[0])
    lines = [head, ["---"] * len(head), *([str(row[key]) for key in head] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    parser = scripts.parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--large", action="store_true", help=f"also max_value = {LARGE}")
    parser.add_argument("--search", action="store_true", help="find the scales again")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--csv", type=Path, help="write the measurements here")
    chosen = parser.parse_args()
    if chosen.smoke:
        chosen.sizes, chosen.repeats = [2, 5], 1
    sizes = [*chosen.sizes, *([LARGE] if chosen.large else [])]
    known = {} if chosen.search else SCALES
    scales = {n: known[n] if n in known else find_scale(n) for n in sizes}
    scripts.say(f"scales: {scales}")
    found: list[Measurement] = []
    for name in PASSES:
        for n in sizes:
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                found.append(pool.submit(measure, n, scales[n], name, chosen.repeats).result())
            scripts.say(f"{name}, max_value {n}: {found[-1].seconds:.3g} s")
    rows = [{title: cell(m) for title, cell in COLUMNS.items()} for m in found]
    print(markdown(rows))
    if growing := growth(found):
        print(f"\nGrowth, as an exponent of max_value:\n\n{markdown(growing)}")
    if chosen.csv:
        with chosen.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(COLUMNS))
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
