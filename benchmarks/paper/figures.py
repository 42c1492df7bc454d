"""Every figure of the paper's evaluation, with our configuration as an extra line, and its numbers.

    python benchmarks/paper/figures.py --output FOLDER [--recompute] [--rents FILE]

Each picture has a CSV file beside it; ``report.md`` holds what the paper states beside what is
measured here.  The correlated noise has three lines: the paper's theorem, its refined bound with t'
from the dominance program, and ours, from the parameter files that come with the package.
``--recompute`` makes them anew, in FOLDER/files (an hour on two cores), and draws those.

The rent experiment's census extract cannot be shipped.  ``--rents FILE`` reads one: a text file
with an integer rent on each line, or a CSV file with a column RENT; rents of 400 and more are left
out.
Without it a synthetic stand-in is used: 66,994,267 log-normal rents below 400 with a median of 27.
Communication does not depend on the data, only the rounding part of the error does.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

sys.path.append(str(Path(__file__).resolve().parent.parent))
import scripts

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
from paramsearch import Request, generate, load, save
from paramsearch.comparison import certified_noise, published_noise
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.tables.cell import Cell
from paramsearch.tables.lookup import shipped_folder

RENT_FRACTION = 0.1
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


@dataclass(frozen=True)
class Grid:
    """The problems of the figures.

    Attributes:
        sizes: The values of max_value, with eps = 1 and delta = 1e-6.
        eps: The values of eps, with max_value = 5.
        delta: The values of delta, with max_value = 5.
        users: The powers of ten of n, with max_value = 5.
        rents: The values of max_value for rents, of which the report compares the first and the
            last.
        laplace: Number of values of eps for the two Laplace mechanisms.
        seconds: Budget of a search for max_value 0, and what each unit adds.
    """

    sizes: tuple[int, ...] = (1, 2, 5, 10, 20, 50, 100)
    eps: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0)
    delta: tuple[float, ...] = (1e-4, 1e-6, 1e-8, 1e-10)
    users: tuple[int, ...] = (3, 4, 5, 6, 7, 8, 9)
    rents: tuple[int, ...] = (20, 50, 100, 200)
    laplace: int = 50
    seconds: tuple[float, float] = (60.0, 3.0)

    @property
    def cells(self) -> list[Cell]:
        """The problems, each once."""
        found = [Cell(size, 1.0, 1e-6, 0.9) for size in self.sizes]
        found += [Cell(5, eps, 1e-6, 0.9) for eps in self.eps]
        found += [Cell(5, 1.0, delta, 0.9) for delta in self.delta]
        found += [Cell(size, 1.0, 1e-6, RENT_FRACTION) for size in self.rents]
        return list(dict.fromkeys(found))


SMOKE = Grid((1, 2), (1.0,), (1e-6,), (3, 6), (20, 50), 3, (2.0, 0.5))
"""The smallest grid of which everything can be drawn."""


@dataclass(frozen=True)
class Files:
    """The parameter files of the figures, in one folder."""

    folder: Path

    def of(self, problem: Problem, fraction: float) -> ParameterFile:
        """The file of a problem."""
        cell = Cell(problem.max_value, problem.eps, problem.delta, fraction)
        path = self.folder / f"{cell.name}.json"
        if not path.is_file():
            raise SystemExit(f"{path} is missing: --recompute makes the files of all figures")
        return load(path)

    def recompute(self, grid: Grid) -> None:
        """Make the files of all problems."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for i, cell in enumerate(grid.cells, 1):
            base, each = grid.seconds
            request = Request(
                n=1_000_000,
                eps=cell.eps,
                delta=cell.delta,
                max_value=cell.max_value,
                central_fraction=cell.central_fraction,
                budget=base + each * cell.max_value,
            )
            scripts.say(f"file {i} of {len(grid.cells)}: {cell.name}")
            made = generate(request)
            save(made.file, self.folder / f"{cell.name}.json")
            scripts.say(f"{cell.name}: {made.file.cost.noise_messages:,.0f} noise messages")


def lines(problem: Problem, files: Files, fraction: float = 0.9) -> list[Baseline]:
    """What the paper's figures show, and ours."""
    file = files.of(problem, fraction)
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
    return replace(line, name=name)  # type: ignore[type-var]  # they are dataclasses


def curve(
    problems: Sequence[tuple[float, Problem]],
    of: Callable[[Baseline], float],
    files: Files,
    *,
    without: Sequence[str] = (),
) -> Curve:
    found: Curve = {}
    for x, problem in problems:
        for line in lines(problem, files):
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
    scripts.say(f"figure {name}")
    figure.savefig(folder / f"{name}.png", dpi=180)
    with (folder / f"{name}.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([x, *found])
        for i, (at, _) in enumerate(next(iter(found.values()))):
            writer.writerow([repr(at), *(repr(points[i][1]) for points in found.values())])


def summation(folder: Path, grid: Grid, files: Files) -> None:
    """The figures on integers."""
    n = 1_000_000
    usual = "ε = 1, δ = 1e-6"
    # without error, or with the error of ours; and with the bits of the non-private sum
    hidden = ("non-private", "correlated noise, paper's theorem",
              "correlated noise, paper's refined")  # fmt: skip
    central = ("discrete Laplace (central)",)
    by_size = [(float(size), _problem(n, size)) for size in grid.sizes]
    draw(folder, "rmse_by_max_value", curve(by_size, root, files, without=hidden),
         x="Δ", y="RMSE of the sum", title=f"{usual}, n = {n:,}")  # fmt: skip
    draw(folder, "bits_by_max_value", curve(by_size, bits, files, without=central),
         x="Δ", y="expected bits per user", title=f"{usual}, n = {n:,}")  # fmt: skip
    by_n = [(10.0**k, _problem(10**k, 5)) for k in grid.users]
    draw(folder, "bits_by_n", curve(by_n, bits, files, without=central),
         x="n", y="expected bits per user", title=f"{usual}, Δ = 5")  # fmt: skip
    by_eps = [(eps, Problem(n=n, eps=eps, delta=1e-6, max_value=5)) for eps in grid.eps]
    by_delta = [(delta, Problem(n=n, eps=1.0, delta=delta, max_value=5)) for delta in grid.delta]
    for name, label, problems, fixed in (
        ("eps", "ε", by_eps, "δ = 1e-6"),
        ("delta", "δ", by_delta, "ε = 1"),
    ):
        title = f"n = {n:,}, Δ = 5, {fixed}"
        draw(folder, f"rmse_by_{name}", curve(problems, root, files, without=hidden),
             x=label, y="RMSE of the sum", title=title)  # fmt: skip
        draw(folder, f"bits_by_{name}", curve(problems, bits, files, without=central),
             x=label, y="expected bits per user", title=title)  # fmt: skip
        far = ("IKOS split and mix", "correlated noise, paper's theorem", *central)
        draw(folder, f"bits_by_{name}_without_ikos", curve(problems, bits, files, without=far),
             x=label, y="expected bits per user", title=title, log_y=False)  # fmt: skip


def laplace(folder: Path, grid: Grid) -> float:
    """Laplace against Discrete Laplace for max_value 1; returns the largest ratio for eps < 1."""
    found: Curve = {}
    for eps in np.linspace(0.02, 1.0, grid.laplace).tolist():
        problem = Problem(n=1_000_000, eps=eps, delta=1e-6, max_value=1)
        for line in (Laplace(problem), DiscreteLaplace(problem)):
            found.setdefault(line.name, []).append((eps, root(line)))
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


def rent(folder: Path, path: Path | None, grid: Grid, files: Files) -> dict[str, list[float]]:
    """RMSE of the sum of rents in dollars, and bits; returns the overheads by line."""
    counts, source = rents(path)
    n = int(counts.sum())
    errors: Curve = {}
    cost: Curve = {}
    overhead: dict[str, list[float]] = {}
    for size in grid.rents:
        problem = _problem(n, size)
        unit = RENT_BELOW / size
        rest = np.arange(RENT_BELOW) / unit % 1
        rounding = float(counts @ (rest * (1 - rest))) * unit**2
        for line in lines(problem, files, RENT_FRACTION):
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


def report(
    folder: Path, ratio: float, overhead: dict[str, list[float]], grid: Grid, files: Files
) -> str:
    """What the paper states beside what is measured."""
    refined, found = (
        overhead[name] for name in ("correlated noise, paper's refined", "correlated noise, ours")
    )
    least, most = grid.rents[0], grid.rents[-1]  # the paper's are 20 and 200
    flips = [root(FragmentedRappor(_problem(10**k, 5))) for k in (4, 5, 6, 7)]
    large, small = (root(FragmentedRappor(_problem(10**6, k))) for k in (200, 50))
    problem = _problem(RENTS, most)
    file = files.of(problem, RENT_FRACTION)
    published = published_noise(problem, central_fraction=RENT_FRACTION)
    noise = next(line for line in published if "refined" in line.name)
    rows = [
        (f"refined: bit overhead at Δ = {least} under 20%", f"{100 * refined[0]:.1f}%"),
        (f"refined: bit overhead at Δ = {most} under 60%", f"{100 * refined[-1]:.1f}%"),
        ("refined: about 20.1 million noise messages", f"{noise.noise_messages:,.0f}"),
        ("RAPPOR: overhead under 1%", f"{100 * max(overhead['fragmented RAPPOR']):.3f}%"),
        ("IKOS: more than 10 times the bits",
         f"{1 + min(overhead['IKOS split and mix']):.1f} times at least"),
        ("RAPPOR: RMSE grows as Δ^1.5", f"Δ^{math.log(large / small) / math.log(4):.3f}"),
        ("RAPPOR: RMSE for n = 1e4 to 1e7 within 1%",
         f"{100 * (max(flips) / min(flips) - 1):.3f}%"),
        ("Laplace within 5% of Discrete Laplace for ε < 1", f"{100 * (ratio - 1):.2f}%"),
        (f"ours: at most 0.15% bit overhead at Δ = {most}", f"{100 * found[-1]:.3f}%"),
        (f"ours: at most 100,000 noise messages at Δ = {most}",
         f"{file.cost.noise_messages:,.0f}"),
        (f"ours: at most 256 symbols at Δ = {most}", f"{len(file.alphabet)}"),
    ]  # fmt: skip
    text = "| stated, or aimed at | measured |\n|---|---|\n"
    text += "".join(f"| {stated} | {measured} |\n" for stated, measured in rows)
    (folder / "report.md").write_text(text, encoding="utf-8")
    return text


def main() -> None:
    parser = scripts.parser(__doc__)
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--recompute", action="store_true", help="make the files of all figures")
    parser.add_argument("--rents", type=Path, metavar="FILE")
    asked = parser.parse_args()
    grid = SMOKE if asked.smoke else Grid()
    asked.output.mkdir(parents=True, exist_ok=True)
    files = Files(shipped_folder() / "files")
    if asked.recompute:
        files = Files(asked.output / "files")
        files.recompute(grid)
    summation(asked.output, grid, files)
    ratio = laplace(asked.output, grid)
    overhead = rent(asked.output, asked.rents, grid, files)
    print(report(asked.output, ratio, overhead, grid, files))


if __name__ == "__main__":
    main()
