"""Speed next to Google's dp_accounting: the product of five negative binomials, at equal gaps.

The peer puts the privacy loss of every factor on a grid, composes, and reads off delta.  For each
target gap (1% decides, the smaller one is for information) the coarsest grid is taken that reaches
it, from a ladder with steps of 2^(1/4).  Two ways to use the peer are measured:

* buckets: ``from_two_probability_mass_functions``, rounding up for an upper bound and down for a
  lower one.  Its gap is (upper - lower)/upper.
* dots: its connect-the-dots discretisation, ``create_pmf_pessimistic_connect_dots``, fed with the
  hockey-stick curve of every factor, which the user has to write (``dots`` below).  It has no lower
  bound, so its gap is that of its upper bound to our certified lower bound.

The peer's time holds discretisation, composition and query, but not the making of the masses it is
given, which favours the peer.  Ours holds everything from (r, p) on; only roots of unity are kept
from the warm-up.  Ours gives both bounds, with rounding and truncation errors inside; the peer's
ignore rounding.  Times are medians after a warm-up call.

A batch is all ordered pairs of random columns; its time per pair is compared with the peer's time
for the single product.  Every pair gets both bounds, but only the largest divergence is held to the
gap that is asked for; the share of pairs within the target is printed, and a second batch asks
for a tenth of the gap to raise it.

    python benchmarks/versus_dp_accounting.py [--repeats 5] [--csv FILE]
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from dp_accounting.pld import pld_pmf
from dp_accounting.pld import privacy_loss_distribution as pld

from accounting import Enclosure, LinearQueries, NegativeBinomial, product_divergence
from accounting.arrays import FloatArray

# r about 11 and means between 400 and 1200 with a true divergence of 1.5129e-6: the first mean was
# found by bisection with product_divergence, the others were picked
R = (11.4, 10.8, 11.2, 10.6, 11.0)
MEANS = (776.45, 430.0, 620.0, 410.0, 480.0)
SHIFTS = (-2, -1, 1, -1, 1)
EPS = 0.1
TARGETS = (0.01, 0.001)
COLUMNS, SEED = 60, 1
SINGLE, BATCH = 100, 1000
"""The ratios that are required, at the first target."""

Row = dict[str, object]


@dataclass(frozen=True)
class Factor:
    """Log-masses on the same outcomes: ``upper`` of the shifted noise, ``lower`` of the noise."""

    lower: FloatArray
    upper: FloatArray

    @staticmethod
    def of(noise: NegativeBinomial, shift: int) -> Factor:
        """Cut in the upper tail at masses of 1e-18, which takes less than 1e-14 from delta."""
        r, p = noise.r, noise.p
        head = r * math.log1p(-p) - math.lgamma(r)
        size = math.ceil(noise.mean + 40 * math.sqrt(noise.variance))
        mass = np.array([
            head + math.lgamma(k + r) - math.lgamma(k + 1) + k * math.log(p) for k in range(size)
        ])
        mass = mass[: np.flatnonzero(mass > math.log(1e-18))[-1] + 1]
        before = np.full(abs(shift), -math.inf)
        if shift > 0:
            return Factor(mass, np.concatenate([before, mass[:-shift]]))
        return Factor(np.concatenate([before, mass])[: len(mass)], mass)

    @property
    def dictionaries(self) -> tuple[dict[int, float], dict[int, float]]:
        lower, upper = (
            {k: m for k, m in enumerate(part.tolist()) if m > -math.inf}
            for part in (self.lower, self.upper)
        )
        return lower, upper


Distribution = pld.PrivacyLossDistribution


def composed(parts: Sequence[Distribution]) -> float:
    total = parts[0]
    for part in parts[1:]:
        total = total.compose(part)
    return float(total.get_delta_for_epsilon(EPS))


def buckets(
    masses: Sequence[tuple[dict[int, float], dict[int, float]]], interval: float, *, upper: bool
) -> float:
    return composed([
        pld.from_two_probability_mass_functions(
            low, up, pessimistic_estimate=upper, value_discretization_interval=interval
        )
        for low, up in masses
    ])


def dots(factors: Sequence[Factor], interval: float) -> float:
    return composed([Distribution(dotted(factor, interval)) for factor in factors])


def dotted(factor: Factor, interval: float) -> pld_pmf.PLDPmf:
    p, q = np.exp(factor.upper), np.exp(factor.lower)
    both = (p > 0) & (q > 0)
    loss = (factor.upper[both] - factor.lower[both]) / interval
    order = np.argsort(loss)
    loss = loss[order]
    grid = np.unique(np.concatenate([np.floor(loss), np.ceil(loss)]))
    above = [
        np.append(np.cumsum(mass[both][order][::-1])[::-1], 0.0)[np.searchsorted(loss, grid)]
        for mass in (p, q)
    ]
    curve = p[q == 0].sum() + above[0] - np.exp(grid * interval) * above[1]
    curve = np.minimum.accumulate(np.clip(curve, 0.0, 1.0))
    return pld_pmf.create_pmf_pessimistic_connect_dots(interval, grid.astype(np.int64), curve)


@dataclass(frozen=True)
class Peer:
    """One way to use the peer, at the coarsest grid that reaches a gap."""

    way: str
    interval: float
    gap: float
    upper_seconds: float
    both_seconds: float | None


def median_seconds(work: Callable[[], object], repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def coarsest(gap_at: Callable[[float], float], target: float) -> tuple[float, float]:
    """The largest interval of the ladder that reaches the target, and the gap it has."""
    for step in range(60):
        interval = 0.01 * 2 ** (-step / 4)
        gap = gap_at(interval)
        if gap <= target:
            return interval, gap
    raise RuntimeError(f"the peer does not reach a gap of {target}")


def measure_peers(truth: Enclosure, target: float, repeats: int) -> list[Peer]:
    factors = [Factor.of(noise, shift) for noise, shift in zip(noises(), SHIFTS, strict=True)]
    masses = [factor.dictionaries for factor in factors]

    def bucket_gap(interval: float) -> float:
        upper, lower = (buckets(masses, interval, upper=side) for side in (True, False))
        if upper < truth.lower or lower > truth.upper:
            raise RuntimeError(f"[{lower}, {upper}] does not contain {truth}")
        return (upper - lower) / upper

    def dot_gap(interval: float) -> float:
        upper = dots(factors, interval)
        if upper < truth.lower:
            raise RuntimeError(f"{upper} is below {truth}")
        return (upper - truth.lower) / upper

    interval, gap = coarsest(bucket_gap, target)
    above, below = (
        median_seconds(lambda side=side: buckets(masses, interval, upper=side), repeats)
        for side in (True, False)
    )
    found = [Peer("buckets", interval, gap, above, above + below)]
    interval, gap = coarsest(dot_gap, target)
    alone = median_seconds(lambda: dots(factors, interval), repeats)
    return [*found, Peer("dots", interval, gap, alone, None)]


def noises() -> list[NegativeBinomial]:
    return [NegativeBinomial.from_mean(mean=mean, r=r) for mean, r in zip(MEANS, R, strict=True)]


def ours(gap: float) -> Enclosure:
    return product_divergence(noises(), SHIFTS, eps=EPS, gap=gap)


@dataclass(frozen=True)
class Batch:
    asked: float
    worst: Enclosure
    gaps: FloatArray
    seconds: float

    @property
    def seconds_per_pair(self) -> float:
        return self.seconds / len(self.gaps)


def measure_batch(gap: float, repeats: int) -> Batch:
    shape = (COLUMNS, len(MEANS))
    columns = np.random.default_rng(SEED).integers(-2, 2, size=shape, endpoint=True)

    def work() -> tuple[Enclosure, tuple[int, int], FloatArray, FloatArray]:
        return LinearQueries.of(columns, noises()).delta(eps=EPS, gap=gap)

    worst, _, lower, upper = work()
    gaps = (upper - lower) / np.maximum(upper, 5e-324)
    return Batch(gap, worst, gaps, median_seconds(work, repeats))


def single_row(target: float, peer: Peer, repeats: int) -> tuple[Row, float]:
    """Ours is asked for the gap that the peer reached."""
    found = ours(peer.gap)
    seconds = median_seconds(lambda: ours(peer.gap), repeats)
    both = peer.both_seconds
    return {
        "target": f"{target:.1%}",
        "peer": peer.way,
        "interval": f"{peer.interval:.2e}",
        "peer gap": f"{peer.gap:.2%}",
        "peer upper, ms": f"{1e3 * peer.upper_seconds:.1f}",
        "peer both, ms": f"{1e3 * both:.1f}" if both else "-",
        "our gap": f"{(found.upper - found.lower) / found.upper:.2%}",
        "ours, ms": f"{1e3 * seconds:.2f}",
        "upper/ours": f"{peer.upper_seconds / seconds:.1f}",
        "both/ours": f"{both / seconds:.1f}" if both else "-",
    }, seconds


def batch_row(target: float, batch: Batch, peers: Sequence[Peer]) -> Row:
    row: Row = {
        "asked": f"{batch.asked:.2%}",
        "pairs": len(batch.gaps),
        "largest delta": f"{batch.worst.upper:.3g}",
        f"pairs within {target:.1%}": f"{(batch.gaps <= target).mean():.0%}",
        "ours, us per pair": f"{1e6 * batch.seconds_per_pair:.1f}",
    }
    for peer in peers:
        row[f"{peer.way} upper/ours"] = f"{peer.upper_seconds / batch.seconds_per_pair:.0f}"
        if peer.both_seconds:
            row[f"{peer.way} both/ours"] = f"{peer.both_seconds / batch.seconds_per_pair:.0f}"
    return row


def verdict(peer: Peer, single: float, batch: Batch) -> str:
    """Both bounds are what ours gives; the upper one alone favours the peer."""
    lines = []
    times = {"both bounds": peer.both_seconds, "upper bound": peer.upper_seconds}
    for bound, seconds in times.items():
        for name, of_ours, wanted in (
            ("single", single, SINGLE), ("per pair in a batch", batch.seconds_per_pair, BATCH)
        ):
            if seconds is not None:
                ratio = seconds / of_ours
                met = "met" if ratio >= wanted else "NOT met"
                lines.append(
                    f"* {peer.way}, {bound}, {name}: {ratio:.1f}x, required {wanted}x: {met}"
                )
    return "\n".join(lines)


def markdown(rows: Sequence[Row]) -> str:
    head = list(rows[0])
    lines = [head, ["---"] * len(head), *([str(row[key]) for key in head] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)))
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed next to Google's dp_accounting.")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--csv", type=Path, help="write the measurements here")
    chosen = parser.parse_args()
    truth = ours(1e-4)
    print(f"The divergence is in {truth} (ours, at a gap of 0.01%).\n")
    measure_batch(TARGETS[0], 1)
    rows: list[Row] = []
    singles: dict[str, float] = {}
    first: list[Peer] = []
    for target in TARGETS:
        peers = measure_peers(truth, target, chosen.repeats)
        first = first or peers
        for peer in peers:
            row, seconds = single_row(target, peer, chosen.repeats)
            rows.append(row)
            singles.setdefault(peer.way, seconds)
    print(markdown(rows))
    target = TARGETS[0]
    batches = [measure_batch(gap, chosen.repeats) for gap in (target, target / 10)]
    batch_rows = [batch_row(target, batch, first) for batch in batches]
    print(f"\nBatches, next to one pair of the peer at {target:.0%}:\n\n{markdown(batch_rows)}")
    print(f"\nRequirements, at {target:.0%}:\n")
    for peer in first:
        print(verdict(peer, singles[peer.way], batches[0]))
    if chosen.csv:
        write_csv(chosen.csv, [*rows, *batch_rows])


if __name__ == "__main__":
    main()
