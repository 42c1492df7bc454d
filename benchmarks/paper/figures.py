"""Every figure of the paper's evaluation, with our configuration as an extra line, and its numbers.

    python benchmarks/paper/figures.py --output FOLDER [--recompute] [--rents FILE]

Each picture has a CSV file beside it; ``report.md`` holds what the paper states beside what is
measured here.  The correlated noise has three lines: the paper's theorem, its refined bound with t'
from the dominance program, and ours, from the parameter files in ``paramsearch/data``, which
``--recompute`` makes anew (an hour on two cores).

The rent experiment's census extract cannot be shipped.  ``--rents FILE`` reads one: a text file
with an integer rent on each line, or a CSV file with a column RENT; rents of 400 and more are left
out.
Without it a synthetic stand-in is used: 66,994,267 log-normal rents below 400 with a median of 27.
Communication does not depend on the data, only the rounding part of the error does.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from accounting.baselines import (
    Baseline,
    DiscreteLaplace,
    FragmentedRappor,
    Laplace,
    NonPrivate,
    SplitAndMix,
)
from accounting.baselines.interface import value_bits
from accounting.model.problem import Problem
from paramsearch import Request, generate, save
from paramsearch.comparison import certified_noise, published_noise, shipped_file
from paramsearch.tables.cell import Cell

DATA = Path(__file__).parents[2] / "paramsearch" / "data" / "files"
SIZES = (1, 2, 5, 10, 20, 50, 100)
EPS = (0.25, 0.5, 1.0, 2.0, 4.0)
DELTA = (1e-4, 1e-6, 1e-8, 1e-10)
RENT_SIZES, RENT_FRACTION = (20, 50, 100, 200), 0.1
RENTS, RENT_BELOW = 66_994_267, 400
COLOURS = {
    "non-private": ("#000000", ":"),
    "discrete Laplace (central)": ("#000000", "--"),
    "Laplace (central)": ("#56b4e9", "--"),
    "IKOS split and mix": ("#e69f00", "-."),
    "fragmented RAPPOR": ("#cc79a7", "-."),
    "correlated noise, paper's theorem": ("#f0a080", "-"),
    "correlated noise, paper's refined": ("#d55e00", "-"),
    "correlated noise, ours": ("#0072b2", "-"),
}
MARKS = dict(zip(COLOURS, "x+1Dsv^o", strict=True))
Curve = dict[str, list[tuple[float, float]]]


def wanted() -> list[tuple[int, float, float, float]]:
    """The problems of all figures: (max_value, eps, delta, central fraction)."""
    found = [(size, 1.0, 1e-6, 0.9) for size in SIZES]
    found += [(5, eps, 1e-6, 0.9) for eps in EPS] + [(5, 1.0, delta, 0.9) for delta in DELTA]
    found += [(size, 1.0, 1e-6, RENT_FRACTION) for size in RENT_SIZES]
    return list(dict.fromkeys(found))


def recompute(again: bool) -> None:
    """Make the files that are missing, or all."""
    DATA.mkdir(parents=True, exist_ok=True)
    for problem in wanted():
        path = DATA / f"{Cell(*problem).name}.json"
        if path.exists() and not again:
            continue
        max_value, eps, delta, fraction = problem
        request = Request(
            n=1_000_000,
            eps=eps,
            delta=delta,
            max_value=max_value,
            central_fraction=fraction,
            budget=60 + 3.0 * max_value,
        )
        made = generate(request)
        save(made.file, path)
        print(f"{path.name}: {made.file.cost.noise_messages:,.0f} noise messages", flush=True)
    shipped_file.cache_clear()


def lines(problem: Problem, fraction: float = 0.9) -> list[Baseline]:
    """What the paper's figures show, and ours."""
    file = shipped_file(
        max_value=problem.max_value,
        eps=problem.eps,
        delta=problem.delta,
        central_fraction=fraction,
    )
    assert file is not None, f"no file for {problem}; --recompute makes it"
    published = list(published_noise(problem, central_fraction=fraction))
    if problem.max_value == 1:  # there the theorem is that of Ghazi et al. 2020, the same twice
        names = ("correlated noise, paper's theorem", "correlated noise, paper's refined")
        published = [_renamed(line, name) for line, name in zip(published, names, strict=True)]
    return [
        NonPrivate(problem),
        DiscreteLaplace(problem),
        SplitAndMix(problem),
        FragmentedRappor(problem),
        *published,
        certified_noise(problem, file),
    ]


def _renamed(line: Baseline, name: str) -> Baseline:
    from dataclasses import replace

    return replace(line, name=name)  # type: ignore[type-var]  # they are dataclasses


def curve(
    problems: Sequence[tuple[float, Problem]],
    of: Callable[[Baseline], float],
    *,
    without: Sequence[str] = (),
    fraction: float = 0.9,
) -> Curve:
    found: Curve = {}
    for x, problem in problems:
        for line in lines(problem, fraction):
            if line.name not in without:
                found.setdefault(line.name, []).append((x, of(line)))
    return found


def root(line: Baseline) -> float:
    return math.sqrt(line.mse)


def bits(line: Baseline) -> float:
    return line.bits


def draw(
    folder: Path,
    name: str,
    found: Curve,
    *,
    x: str,
    y: str,
    title: str,
    log_x: bool = True,
    log_y: bool = True,
) -> None:
    """The picture, and its numbers beside it."""
    figure = Figure(figsize=(6.6, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for label, points in found.items():
        colour, style = COLOURS[label]
        axes.plot(*zip(*points, strict=True), style, marker=MARKS[label], markersize=4,
                  color=colour, label=label)  # fmt: skip
    axes.set_xscale("log" if log_x else "linear")
    axes.set_yscale("log" if log_y else "linear")
    places = sorted({at for points in found.values() for at, _ in points})
    if len(places) <= 8:
        axes.set_xticks(places, [f"{at:g}" for at in places])
        axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, fontsize=9)
    axes.grid(True, which="both", alpha=0.2)
    axes.legend(fontsize=7)
    figure.savefig(folder / f"{name}.png", dpi=180)
    with (folder / f"{name}.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([x, *found])
        for i, (at, _) in enumerate(next(iter(found.values()))):
            writer.writerow([repr(at), *(repr(points[i][1]) for points in found.values())])


def summation(folder: Path) -> None:
    """The figures on integers."""
    n = 1_000_000
    usual = "ε = 1, δ = 1e-6"
    # without error, or with the error of ours; and with the bits of the non-private sum
    hidden = ("non-private", "correlated noise, paper's theorem",
              "correlated noise, paper's refined")  # fmt: skip
    central = ("discrete Laplace (central)",)
    by_size = [(float(size), Problem(n=n, eps=1.0, delta=1e-6, max_value=size)) for size in SIZES]
    draw(folder, "rmse_by_max_value", curve(by_size, root, without=hidden),
         x="Δ", y="RMSE of the sum", title=f"{usual}, n = {n:,}")  # fmt: skip
    draw(folder, "bits_by_max_value", curve(by_size, bits, without=central),
         x="Δ", y="expected bits per user", title=f"{usual}, n = {n:,}")  # fmt: skip
    by_n = [(10.0**k, Problem(n=10**k, eps=1.0, delta=1e-6, max_value=5)) for k in range(3, 10)]
    draw(folder, "bits_by_n", curve(by_n, bits, without=central),
         x="n", y="expected bits per user", title=f"{usual}, Δ = 5")  # fmt: skip
    by_eps = [(eps, Problem(n=n, eps=eps, delta=1e-6, max_value=5)) for eps in EPS]
    by_delta = [(delta, Problem(n=n, eps=1.0, delta=delta, max_value=5)) for delta in DELTA]
    for name, label, problems, fixed in (
        ("eps", "ε", by_eps, "δ = 1e-6"),
        ("delta", "δ", by_delta, "ε = 1"),
    ):
        title = f"n = {n:,}, Δ = 5, {fixed}"
        draw(folder, f"rmse_by_{name}", curve(problems, root, without=hidden),
             x=label, y="RMSE of the sum", title=title)  # fmt: skip
        draw(folder, f"bits_by_{name}", curve(problems, bits, without=central),
             x=label, y="expected bits per user", title=title)  # fmt: skip
        far = ("IKOS split and mix", "correlated noise, paper's theorem", *central)
        draw(folder, f"bits_by_{name}_without_ikos", curve(problems, bits, without=far),
             x=label, y="expected bits per user", title=title, log_y=False)  # fmt: skip


def laplace(folder: Path) -> float:
    """Laplace against Discrete Laplace for max_value 1; returns the largest ratio for eps < 1."""
    grid = np.linspace(0.02, 1.0, 50)
    found: Curve = {}
    for eps in grid:
        problem = Problem(1_000_000, float(eps), 1e-6, 1)
        for line in (Laplace(problem), DiscreteLaplace(problem)):
            found.setdefault(line.name, []).append((float(eps), root(line)))
    draw(folder, "laplace", found, x="ε", y="RMSE of the sum", title="Δ = 1", log_x=False)
    pairs = zip(*found.values(), strict=True)
    return max(first[1] / second[1] for first, second in pairs)


def rents(path: Path | None) -> tuple[np.ndarray, str]:
    """How many have each rent 0..399, and where that is from."""
    if path is None:
        grid = np.arange(RENT_BELOW)
        weight = np.exp(-((np.log((grid + 0.5) / 27)) ** 2) / (2 * 0.8**2)) / (grid + 0.5)
        counts = np.floor(RENTS * weight / weight.sum()).astype(np.int64)
        counts[27] += RENTS - counts.sum()
        return counts, "SYNTHETIC stand-in, not census data"
    with path.open(newline="") as file:
        if path.suffix.lower() == ".csv":
            values = [int(row["RENT"]) for row in csv.DictReader(file)]
        else:
            values = [int(line) for line in file if line.strip()]
    kept = np.array([value for value in values if 0 <= value < RENT_BELOW], np.int64)
    return np.bincount(kept, minlength=RENT_BELOW), path.name


def rent(folder: Path, path: Path | None) -> dict[str, list[float]]:
    """RMSE of the sum of rents in dollars, and bits; returns the overheads by line."""
    counts, source = rents(path)
    n = int(counts.sum())
    errors: Curve = {}
    cost: Curve = {}
    overhead: dict[str, list[float]] = {}
    for size in RENT_SIZES:
        problem = Problem(n=n, eps=1.0, delta=1e-6, max_value=size)
        unit = RENT_BELOW / size
        rest = np.arange(RENT_BELOW) / unit % 1
        rounding = float(counts @ (rest * (1 - rest))) * unit**2
        for line in lines(problem, RENT_FRACTION):
            error = math.sqrt(line.mse * unit**2 + rounding)
            if line.name == "discrete Laplace (central)":  # the paper shows Laplace, not rounded
                errors.setdefault("Laplace (central)", []).append(
                    (size, math.sqrt(2) * RENT_BELOW / problem.eps)
                )
                continue
            errors.setdefault(line.name, []).append((size, error))
            cost.setdefault(line.name, []).append((size, line.bits))
            overhead.setdefault(line.name, []).append(line.bits / value_bits(problem) - 1)
    title = f"rents, n = {n:,}, ε = 1, δ = 1e-6, ε* = 0.1 ε; {source}"
    draw(folder, "rent_rmse", errors, x="Δ", y="RMSE of the sum in dollars", title=title)
    draw(folder, "rent_bits", cost, x="Δ", y="expected bits per user", title=title)
    return overhead


def _problem(n: int, max_value: int) -> Problem:
    return Problem(n=n, eps=1.0, delta=1e-6, max_value=max_value)


def report(folder: Path, ratio: float, overhead: dict[str, list[float]]) -> str:
    """What the paper states beside what is measured."""
    refined = dict(zip(RENT_SIZES, overhead["correlated noise, paper's refined"], strict=True))
    found = dict(zip(RENT_SIZES, overhead["correlated noise, ours"], strict=True))
    flips = [
        root(FragmentedRappor(Problem(n=10**k, eps=1.0, delta=1e-6, max_value=5)))
        for k in (4, 5, 6, 7)
    ]
    large, small = (root(FragmentedRappor(_problem(10**6, k))) for k in (200, 50))
    file = shipped_file(max_value=200, eps=1.0, delta=1e-6, central_fraction=RENT_FRACTION)
    assert file is not None
    problem = Problem(n=RENTS, eps=1.0, delta=1e-6, max_value=200)
    published = published_noise(problem, central_fraction=0.1)
    noise = next(line for line in published if "refined" in line.name)
    rows = [
        ("refined: bit overhead at Δ = 20 under 20%", f"{100 * refined[20]:.1f}%"),
        ("refined: bit overhead at Δ = 200 under 60%", f"{100 * refined[200]:.1f}%"),
        ("refined: about 20.1 million noise messages", f"{noise.noise_messages:,.0f}"),
        ("RAPPOR: overhead under 1%", f"{100 * max(overhead['fragmented RAPPOR']):.3f}%"),
        ("IKOS: more than 10 times the bits",
         f"{1 + min(overhead['IKOS split and mix']):.1f} times at least"),
        ("RAPPOR: RMSE grows as Δ^1.5", f"Δ^{math.log(large / small) / math.log(4):.3f}"),
        ("RAPPOR: RMSE for n = 1e4 to 1e7 within 1%",
         f"{100 * (max(flips) / min(flips) - 1):.3f}%"),
        ("Laplace within 5% of Discrete Laplace for ε < 1", f"{100 * (ratio - 1):.2f}%"),
        ("ours: at most 0.15% bit overhead at Δ = 200", f"{100 * found[200]:.3f}%"),
        ("ours: at most 100,000 noise messages at Δ = 200", f"{file.cost.noise_messages:,.0f}"),
        ("ours: at most 256 symbols at Δ = 200", f"{len(file.alphabet)}"),
    ]  # fmt: skip
    text = "| stated, or aimed at | measured |\n|---|---|\n"
    text += "".join(f"| {stated} | {measured} |\n" for stated, measured in rows)
    (folder / "report.md").write_text(text)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--recompute", action="store_true")
    parser.add_argument("--rents", type=Path)
    asked = parser.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)
    recompute(asked.recompute)
    summation(asked.output)
    ratio = laplace(asked.output)
    overhead = rent(asked.output, asked.rents)
    print(report(asked.output, ratio, overhead))


if __name__ == "__main__":
    main()
