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
ignore rounding.  Times are medians after a warm-up call; what a ratio compares is run in turns.

A batch is all ordered pairs of random columns; its time per pair is compared with the peer's time
for the single product.  Every pair gets both bounds, but only the largest divergence is held to the
gap that is asked for; the share of pairs within the target is printed, and a second batch asks
for a tenth of the gap to raise it.

    python benchmarks/versus_dp_accounting.py [--repeats 5] [--csv FILE]

``--smoke`` takes a gap of 30% once, and a batch of five columns.
"""

from __future__ import annotations

import csv
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scripts
from dp_accounting.pld import pld_pmf
from dp_accounting.pld import privacy_loss_distribution as pld

from accounting import Enclosure, LinearQueries, NegativeBinomial, product_divergence
from accounting.base.arrays import FloatArray

# r about 11 and means between 400 and 1200 with a true divergence of 1.5129e-6: the first mean was
# found by bisection with product_divergence, the others were picked
R = (11.4, 10.8, 11.2, 10.6, 11.0)
MEANS = (776.45, 430.0, 620.0, 410.0, 480.0)
SHIFTS = (-2, -1, 1, -1, 1)
EPS = 0.1
TARGETS = (0.01, 0.001)
COLUMNS, SEED = 60, 1
SMOKE_TARGETS, SMOKE_COLUMNS = (0.3,), 5
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
        mass = np.array(
            [head + math.lgamma(k + r) - math.lgamma(k + 1) + k * math.log(p) for k in range(size)]
        )
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
    return composed(
        [
            pld.from_two_probability_mass_functions(
                low, up, pessimistic_estimate=upper, value_discretization_interval=interval
            )
            for low, up in masses
        ]
    )


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
    upper: Callable[[], float]
    lower: Callable[[], float] | None


def coarsest(gap_at: Callable[[float], float], target: float) -> tuple[float, float]:
    """The largest interval of the ladder that reaches the target, and the gap it has."""
    for step in range(60):
        interval = 0.01 * 2 ** (-step / 4)
        gap = gap_at(interval)
        if gap <= target:
            return interval, gap
    raise RuntimeError(f"the peer does not reach a gap of {target}")


def find_peers(truth: Enclosure, target: float) -> list[Peer]:
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

    fine, fine_gap = coarsest(bucket_gap, target)
    wide, wide_gap = coarsest(dot_gap, target)
    return [
        Peer(
            "buckets",
            fine,
            fine_gap,
            lambda: buckets(masses, fine, upper=True),
            lambda: buckets(masses, fine, upper=False),
        ),
        Peer("dots", wide, wide_gap, lambda: dots(factors, wide), None),
    ]


def noises() -> list[NegativeBinomial]:
    return [NegativeBinomial.from_mean(mean=mean, r=r) for mean, r in zip(MEANS, R, strict=True)]


def ours(gap: float) -> Enclosure:
    return product_divergence(noises(), SHIFTS, eps=EPS, gap=gap)


def batch(gap: float, count: int) -> tuple[Enclosure, FloatArray]:
    """The largest divergence of all pairs of so many columns, and the gap of every pair."""
    shape = (count, len(MEANS))
    columns = np.random.default_rng(SEED).integers(-2, 2, size=shape, endpoint=True)
    worst, _, lower, upper = LinearQueries.of(columns, noises()).delta(eps=EPS, gap=gap)
    return worst, (upper - lower) / np.maximum(upper, 5e-324)


def round_robin(calls: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """Median seconds of every call; they take turns, so that a busy machine slows all alike.

    A turn of a quick call is several runs, so that caches are as warm as for a slow one.
    """
    seconds: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats):
        for call, of_call in zip(calls, seconds, strict=True):
            turn: list[float] = []
            while len(turn) < 5 and sum(turn) < 0.1:
                begin = time.perf_counter()
                call()
                turn.append(time.perf_counter() - begin)
            of_call += turn
    return [statistics.median(of_call) for of_call in seconds]


@dataclass(frozen=True)
class Ratios:
    """How many times longer the peer takes; ``both`` where it has both bounds."""

    upper: float
    both: float | None

    @staticmethod
    def of(upper: float, lower: float | None, ours: float) -> Ratios:
        return Ratios(upper / ours, None if lower is None else (upper + lower) / ours)

    def verdicts(self, what: str, required: float) -> list[str]:
        """Both bounds are what ours gives; the upper one alone favours the peer."""
        return [
            f"* {what}, {bound}: {ratio:.1f}x, required {required:.0f}x: "
            + ("met" if ratio >= required else "NOT met")
            for bound, ratio in (("both bounds", self.both), ("upper bound", self.upper))
            if ratio is not None
        ]


def compare(
    target: float, peer: Peer, repeats: int, columns: int
) -> tuple[Row, list[Row], list[str]]:
    """A row for the single product, rows for the batches, and the verdicts."""
    gaps = (target, target / 10)
    calls: list[Callable[[], object]] = [
        lambda: ours(peer.gap),
        *(lambda gap=gap: batch(gap, columns) for gap in gaps),
        peer.upper,
    ]
    if peer.lower is not None:
        calls.append(peer.lower)
    single, loose, tight, upper, *rest = round_robin(calls, repeats)
    lower = rest[0] if rest else None
    found = ours(peer.gap)
    ratios = Ratios.of(upper, lower, single)
    row: Row = {
        "target": f"{target:.1%}",
        "peer": peer.way,
        "interval": f"{peer.interval:.2e}",
        "peer gap": f"{peer.gap:.2%}",
        "peer upper, ms": f"{1e3 * upper:.1f}",
        "peer both, ms": "-" if lower is None else f"{1e3 * (upper + lower):.1f}",
        "our gap": f"{(found.upper - found.lower) / found.upper:.2%}",
        "ours, ms": f"{1e3 * single:.2f}",
        "upper/ours": f"{ratios.upper:.1f}",
        "both/ours": "-" if ratios.both is None else f"{ratios.both:.1f}",
    }
    batch_rows: list[Row] = []
    verdicts = ratios.verdicts(f"{peer.way}, single", SINGLE)
    for gap, seconds in zip(gaps, (loose, tight), strict=True):
        worst, reached = batch(gap, columns)
        per_pair = seconds / len(reached)
        ratios = Ratios.of(upper, lower, per_pair)
        batch_rows.append(
            {
                "target": f"{target:.1%}",
                "peer": peer.way,
                "asked of the worst pair": f"{gap:.2%}",
                "pairs": len(reached),
                "pairs within target": f"{(reached <= target).mean():.0%}",
                "largest delta": f"{worst.upper:.3g}",
                "ours, us per pair": f"{1e6 * per_pair:.1f}",
                "upper/ours": f"{ratios.upper:.0f}",
                "both/ours": "-" if ratios.both is None else f"{ratios.both:.0f}",
            }
        )
        verdicts += ratios.verdicts(f"{peer.way}, per pair in a batch at {gap:.1%}", BATCH)
    return row, batch_rows, verdicts


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
    parser = scripts.parser(__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--csv", type=Path, help="write the measurements here")
    chosen = parser.parse_args()
    targets, columns, repeats = TARGETS, COLUMNS, chosen.repeats
    if chosen.smoke:
        targets, columns, repeats = SMOKE_TARGETS, SMOKE_COLUMNS, 1
    truth = ours(1e-4)
    batch(targets[0], columns)
    print(f"The divergence is in {truth} (ours, at a gap of 0.01%).\n")
    rows: list[Row] = []
    batch_rows: list[Row] = []
    verdicts: list[str] = []
    for target in targets:
        scripts.say(f"looking for the peer's grids with a gap of {target:.1%}")
        for peer in find_peers(truth, target):
            scripts.say(f"{peer.way}, {repeats} times")
            row, batched, said = compare(target, peer, repeats, columns)
            rows.append(row)
            batch_rows += batched
            verdicts += said if target == targets[0] else []
    print(markdown(rows))
    print(f"\nBatches, per pair, next to the single product of the peer:\n\n{markdown(batch_rows)}")
    print(f"\nRequirements, at {targets[0]:.0%}:\n", *verdicts, sep="\n")
    if chosen.csv:
        write_csv(chosen.csv, [*rows, *batch_rows])


if __name__ == "__main__":
    main()
