"""Bursts beside negative binomials, and beside the best noise that there can be at max_value 1.

Every infinitely divisible noise on 0, 1, 2, ... is compound Poisson: rates of k copies at once, for
k = 1, 2, ...  At max_value 1, with one atom, the rates with the fewest messages are found
numerically, by sequential quadratic programming; that is an estimate without a side.

    python benchmarks/bursts.py [--figure FILE.png] [--searches]

``--smoke`` takes one m, a coarse grid and a few steps, and searches at max_value 1 only.
"""

from __future__ import annotations

import csv
import math
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scripts
from scipy.optimize import minimize, minimize_scalar

from accounting.model.costs import central_messages
from accounting.model.laws.burst import Burst
from accounting.model.laws.negative_binomial import NegativeBinomial
from accounting.model.laws.noise import Law, NoiseSum
from paramsearch import Request, generate

EPS, DELTA, CENTRAL = 1.0, 1e-6, 0.9
HERE = Path(__file__).resolve().parent
AT_MOST = {(1, 0.9): 480, (5, 0.9): 4_560, (10, 0.9): 9_300, (20, 0.9): 19_600, (50, 0.9): 51_000,
           (200, 0.1): 58_000}  # fmt: skip
"""Most noise messages allowed, by (max_value, eps* / eps)."""
LENGTH, JUMPS = 1400, 90
"""Outcomes of a table, and the largest number of copies at once."""
Array = np.ndarray


@dataclass(frozen=True)
class Effort:
    """How thoroughly to look.

    Attributes:
        sizes: The values of m.
        starts: Those that the free rates start from.
        grid: Number of values of r that are compared first.
        halvings: Number of halvings of the interval of a mean.
        steps: Number of steps of the quadratic programming.
        searches: The problems to search, of ``AT_MOST``.
    """

    sizes: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 12, 16, 24, 48, 64)
    starts: tuple[int, ...] = (4, 8, 24)
    grid: int = 41
    halvings: int = 40
    steps: int = 300
    searches: tuple[tuple[int, float], ...] = tuple(AT_MOST)


SMOKE = Effort(sizes=(4,), starts=(4,), grid=3, halvings=8, steps=3, searches=((1, 0.9),))


def masses(rates: Array) -> Array:
    """Of the noise with these rates, by Panjer's recurrence."""
    weights = rates * np.arange(1, len(rates) + 1)
    found = np.zeros(LENGTH)
    found[0] = math.exp(-rates.sum())
    for k in range(1, LENGTH):
        some = found[max(0, k - len(rates)) : k][::-1]
        found[k] = weights[: len(some)] @ some / k
    return found


def with_geometric(mass: Array) -> Array:
    """The law of W: the smaller one of the two central noises is added."""
    q = math.exp(-2 * CENTRAL)
    out = np.empty(LENGTH)
    kept = 0.0
    for k in range(LENGTH):
        kept = (1 - q) * mass[k] + q * kept
        out[k] = kept
    return out


def divergences(w: Array) -> tuple[Array, Array]:
    """delta of the two changes, and their derivatives by the masses of W.

    exact_view.md, Theorem 2, for one atom: the mixtures have shifts 0, 1 and -1, 0, and of each
    only one case has losses above eps.
    """
    q = math.exp(-CENTRAL)
    values, slopes = [], []
    for share, shift, offset in ((1 / (1 + q), -1, CENTRAL), (q / (1 + q), 1, -CENTRAL)):
        scale = math.exp(EPS - offset)
        other = np.roll(w, -shift)
        other[0 if shift < 0 else -1] = 0.0
        above = w > scale * other
        values.append(share * (w - scale * other)[above].sum())
        back = np.roll(above.astype(float), shift)
        back[-1 if shift < 0 else 0] = 0.0
        slopes.append(share * (above - scale * back))
    return np.array(values), np.array(slopes)


def free_rates(start: Array, effort: Effort) -> Array:
    """Rates with about the fewest messages."""
    jumps = np.arange(1, len(start) + 1)

    def log_delta(x: Array) -> tuple[float, Array]:
        rates = np.exp(x)
        w = with_geometric(masses(rates))
        value, slope = divergences(w)
        worst = int(np.argmax(value))
        # d w(z) / d rate_k = w(z - k) - w(z)
        base = slope[worst] @ w
        by_rate = np.array([slope[worst][k:] @ w[:-k] - base for k in jumps])
        reached = max(float(value[worst]), 1e-300)  # of no matter where a step goes too far
        return math.log(reached / DELTA), by_rate * rates / reached

    cost = float(jumps @ start)
    found = minimize(
        lambda x: (float(jumps @ np.exp(x)) / cost, jumps * np.exp(x) / cost),
        np.log(start),
        jac=True,
        method="SLSQP",
        bounds=[(-25.0, 6.0)] * len(start),
        constraints={
            "type": "ineq",
            "fun": lambda x: -log_delta(x)[0],
            "jac": lambda x: -log_delta(x)[1],
        },
        options={"maxiter": effort.steps, "ftol": 1e-9},
    )
    return np.exp(found.x)


def law_of(mean: float, r: float, m: int) -> Law:
    made = {"mean": mean, "r": r}
    return Burst.from_mean(**made, m=m) if m else NegativeBinomial.from_mean(**made)


def least_mean(m: int, effort: Effort) -> tuple[float, float]:
    """The mean and the r of the cheapest noise of one law; m = 0 is the negative binomial."""
    from accounting.evaluator.noise_tables import noise_table

    def mean_at(log_r: float) -> float:
        low, high = 50.0, 2000.0
        for _ in range(effort.halvings):
            middle = math.sqrt(low * high)
            law = law_of(middle, math.exp(log_r), m)
            w = with_geometric(noise_table(NoiseSum.of(law), LENGTH).mass)
            low, high = (middle, high) if divergences(w)[0].max() > DELTA else (low, middle)
        return high

    # several local minima: outcomes enter and leave the sum as r changes
    grid = np.linspace(math.log(13.5), math.log(30), effort.grid)
    best = float(min(grid, key=mean_at))
    width = float(grid[1] - grid[0])
    found = minimize_scalar(
        mean_at,
        bounds=(best - width, best + width),
        method="bounded",
        options={"maxiter": effort.steps},
    )
    return min((mean_at(x), math.exp(x)) for x in (best, float(found.x)))


def rates_of(law: Burst) -> Array:
    """The rates of 1, 2, ... copies at once."""
    sizes = [
        law.rate * math.comb(j + law.m - 2, j - 1) * (1 - law.p) ** law.m * law.p ** (j - 1)
        for j in range(1, JUMPS + 1)
    ]
    return np.maximum(np.array(sizes), 1e-9)


def draw(path: Path, means: dict[int, float], least: float) -> None:
    import matplotlib.pyplot as plt

    central = central_messages(CENTRAL)
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    sizes = [m for m in means if m]
    axes.plot(sizes, [2 * means[m] + central for m in sizes], "o-", label="bursts")
    axes.axhline(2 * means[0] + central, color="C1", label="negative binomial")
    axes.axhline(2 * least + central, color="C2", linestyle="--", label="free rates (numerically)")
    axes.set(xscale="log", xlabel="m", ylabel="noise messages")
    axes.set_xticks(sizes, [str(m) for m in sizes])
    axes.minorticks_off()
    axes.legend()
    figure.savefig(path, dpi=150)


def search(max_value: int, fraction: float) -> str:
    """A row: what a search without the package's table finds with bursts, certified."""
    request = Request(
        n=1_000_000,
        eps=EPS,
        delta=DELTA,
        max_value=max_value,
        central_fraction=fraction,
        noise="burst",
        cold=True,
    )
    begun = time.perf_counter()
    file = generate(request).file
    seconds = time.perf_counter() - begun
    assert file.certificate is not None
    found, other = file.cost.noise_messages, negative_binomial(max_value, fraction)
    return (
        f"| {max_value:,} | {fraction} | {other:,.1f} | {found:,.1f} | {found / other:.3f} | "
        f"{AT_MOST[max_value, fraction]:,} | {file.certificate.delta_upper:.6g} | "
        f"{', '.join(file.certificate.proof)} | {seconds:.1f} |"
    )


def negative_binomial(max_value: int, fraction: float) -> float:
    """What the same search found with the other law, from the results that are kept."""
    with (HERE / "results" / "search.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if (int(row["max_value"]), float(row["eps*/eps"])) == (max_value, fraction):
                return float(row["found"])
    return math.nan


def main() -> None:
    parser = scripts.parser(__doc__)
    parser.add_argument("--figure", type=Path, metavar="FILE.png")
    parser.add_argument("--searches", action="store_true", help="search with bursts as well")
    asked = parser.parse_args()
    effort = SMOKE if asked.smoke else Effort()
    central = central_messages(CENTRAL)
    means: dict[int, float] = {}
    spread: dict[int, float] = {}
    for m in (0, *effort.sizes):
        scripts.say(f"the least mean of bursts, m = {m}" if m else "the least mean")
        means[m], spread[m] = least_mean(m, effort)
    found = []
    for m in effort.starts:
        scripts.say(f"free rates from m = {m}")
        start = Burst.from_mean(mean=means[m], r=spread[m], m=m)
        found.append(free_rates(rates_of(start), effort))
    least, free = min(
        ((float(np.arange(1, JUMPS + 1) @ rates), rates) for rates in found), key=lambda it: it[0]
    )
    print("| noise at max_value 1 | messages | of the negative binomial's |")
    print("|---|--:|--:|")
    whole = 2 * means[0] + central
    for m, mean in means.items():
        name = f"bursts, m = {m}" if m else "negative binomial"
        print(f"| {name} | {2 * mean + central:.1f} | {(2 * mean + central) / whole:.3f} |")
    print(f"| free rates | {2 * least + central:.1f} | {(2 * least + central) / whole:.3f} |")
    kept = np.flatnonzero(free > 1e-6 * free.max()) + 1
    top = int(np.argmax(free)) + 1
    print(
        f"\nThe free rates have {free.sum():.1f} events, of {kept[0]} to {kept[-1]} copies at "
        f"once, {least / free.sum():.1f} on average, most often {top}."
    )
    if asked.figure is not None:
        draw(asked.figure, means, least)
    if asked.searches:
        print("\nWhat searches find, certified (`--noise burst --cold`):\n")
        print(
            "| max_value | eps*/eps | negative binomial | bursts | ratio | at most | delta at most "
            "| proof | seconds |"
        )
        print("|--:|--:|--:|--:|--:|--:|--:|---|--:|")
        for row in effort.searches:
            scripts.say(f"search at max_value {row[0]}")
            print(search(*row), flush=True)


if __name__ == "__main__":
    main()
