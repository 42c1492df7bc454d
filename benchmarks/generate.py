"""What a search finds and how long it takes, compared with the paper's parameters.

eps = 1, delta = 1e-6; noise messages are 2 E[central] + sum of |s| E[D^s] of all users.  Every row
is one search and proof in its own process, without the package's table.  The time includes
imports, the search, the proof of the file and the proof that no single move helps, but not the
compilation of kernels.  "paper" is the paper's analytic bound with the t' of the dominance program
and the best split of the slack, computed here; beyond max_value 1,000, without the program.

    python benchmarks/generate.py [--rows 1@0.9 2@0.9 ...] [--all] [--csv FILE] [--markdown FILE]
    python benchmarks/generate.py --csv FILE --rows --growth FILE.png --headline FILE.svg

Rows that are already in the CSV file are not run again, so that a long table can be made in pieces.
``--smoke`` makes the row 1@0.9 alone.
"""

from __future__ import annotations

import csv
import json
import math
import multiprocessing
import resource
import shutil
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import scripts
import stamp

from accounting.model.costs import noise_messages
from accounting.model.problem import Problem
from paramsearch.search import paper_parameters as paper
from paramsearch.search.target import Target
from paramsearch.tables.cell import Cell

EPS, DELTA, N = 1.0, 1e-6, 1_000_000
WITHIN = {(1, 0.9): 2, (2, 0.9): 2, (5, 0.9): 4, (10, 0.9): 8, (20, 0.9): 20, (50, 0.9): 60,
          (50, 0.1): 45, (100, 0.9): 150, (200, 0.9): 300, (200, 0.1): 240, (300, 0.8): 240,
          (500, 0.8): 480, (1000, 0.9): 900, (1000, 0.1): 720, (5000, 0.1): 3600}  # fmt: skip
"""Seconds allowed, by (max_value, eps* / eps)."""
AT_MOST = {(1, 0.9): 600, (2, 0.9): 2_135, (5, 0.9): 5_480, (10, 0.9): 11_080, (20, 0.9): 23_300,
           (50, 0.9): 60_500, (50, 0.1): 15_300, (100, 0.9): 131_000, (200, 0.9): 295_000,
           (200, 0.1): 68_000, (300, 0.8): 275_000, (500, 0.8): 480_000, (1000, 0.9): 1_850_000,
           (1000, 0.1): 385_000, (5000, 0.1): 2_600_000}  # fmt: skip
"""Most noise messages allowed, by (max_value, eps* / eps); otherwise a fiftieth of the paper's."""
LARGEST_PROGRAM = 1000
"""Largest max_value up to which the paper's program is solved."""
Key = tuple[int, float]


@dataclass(frozen=True)
class Result:
    """One row of the table."""

    max_value: int
    fraction: float
    paper: float
    found: float
    proven_moves: str
    delta_upper: float
    seconds: float
    search: float
    peak: float
    commit: str = "unknown"
    date: str = ""

    @property
    def key(self) -> Key:
        return self.max_value, self.fraction

    @property
    def most(self) -> float:
        return AT_MOST.get(self.key, self.paper / 50)


def within(key: Key) -> float:
    return WITHIN.get(key, 20 + 4 * key[0])


def search_and_prove(key: Key, file: Path) -> tuple[float, float, str]:
    """Generate and save a file; seconds of the search, peak memory in GiB, and proved moves."""
    from paramsearch import Request, generate, save

    begun = ended = time.perf_counter()

    def say(text: str) -> None:
        nonlocal ended
        if text.startswith("certifying,"):
            ended = time.perf_counter()

    max_value, fraction = key
    request = Request(
        n=N, eps=EPS, delta=DELTA, max_value=max_value, central_fraction=fraction, cold=True
    )
    made = generate(request, progress=say)
    save(made.file, file)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    found = made.optimality
    return (
        ended - begun,
        peak,
        "not tried" if found is None else f"{found.proven} of {found.listed}",
    )


def run(key: Key, keep: Path | None = None) -> Result:
    """Generate once in a new process; copy the file to the folder ``keep`` if there is one."""
    max_value, fraction = key
    target = Target(Problem(n=N, eps=EPS, delta=DELTA, max_value=max_value), fraction * EPS)
    with_program = max_value <= LARGEST_PROGRAM
    proposal = paper.refined(target) if with_program else paper.theorem(target)
    paper_messages = noise_messages(target.step, proposal.atoms)
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "file.json"
        begun = time.perf_counter()
        with ProcessPoolExecutor(1, mp_context=spawn) as pool:
            search, peak, moves = pool.submit(search_and_prove, key, file).result()
        seconds = time.perf_counter() - begun
        data = json.loads(file.read_text())
        if keep is not None:
            shutil.copy(file, keep / f"{Cell(max_value, EPS, DELTA, fraction).name}.json")
    return Result(
        *key,
        paper_messages,
        data["cost"]["noise_messages"],
        moves,
        data["certificate"]["delta_upper"],
        seconds,
        search,
        peak,
        stamp.commit(),
        stamp.date(),
    )


HEADER = ("max_value", "eps*/eps", "paper", "at most", "found", "found/at most", "paper/found",
          "useless moves", "within s", "seconds", "search s", "peak GiB",
          "delta at most", "commit", "date")  # fmt: skip


def cells(result: Result) -> tuple[str, ...]:
    return (
        str(result.max_value),
        f"{result.fraction:g}",
        f"{result.paper:.0f}",
        f"{result.most:.0f}",
        f"{result.found:.1f}",
        f"{result.found / result.most:.3f}",
        f"{result.paper / result.found:.0f}",
        result.proven_moves,
        f"{within(result.key):g}",
        f"{result.seconds:.1f}",
        f"{result.search:.1f}",
        f"{result.peak:.2f}",
        f"{result.delta_upper:.6g}",
        result.commit,
        result.date,
    )


def markdown(results: list[Result]) -> str:
    lines = ["| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
    lines += ["| " + " | ".join(cells(result)) + " |" for result in results]
    return "\n".join(lines) + "\n"


def read(path: Path) -> list[Result]:
    """The rows of an earlier table."""
    with path.open(newline="") as file:
        return [
            Result(
                int(row["max_value"]),
                float(row["eps*/eps"]),
                float(row["paper"]),
                float(row["found"]),
                row["useless moves"],
                float(row["delta at most"]),
                float(row["seconds"]),
                float(row["search s"]),
                float(row["peak GiB"]),
                row["commit"],
                row["date"],
            )
            for row in csv.DictReader(file)
        ]


def write(path: Path, results: list[Result]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        writer.writerows(cells(result) for result in results)


def growth(results: list[Result], plot: Path) -> None:
    """Plot messages over max_value >= 5, with a fitted power and the paper's max_value log^2."""
    import numpy as np
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.6), layout="constrained")
    axes = figure.add_subplot()
    colors = {0.9: "#0072b2", 0.1: "#009e73"}
    for fraction in sorted({result.fraction for result in results}, reverse=True):
        rows = [r for r in results if r.fraction == fraction and r.max_value >= 5]
        if len(rows) < 3:
            continue
        x = np.array([r.max_value for r in rows], float)
        found, of_paper = (
            np.array([getattr(r, name) for r in rows]) for name in ("found", "paper")
        )
        power, level = np.polyfit(np.log(x), np.log(found), 1)
        square = np.polyfit(np.log(np.log2(x)), np.log(found / x), 1)[0]
        print(
            f"eps*/eps = {fraction:g}: messages ~ {math.exp(level):.4g} max_value^{power:.3f}, or "
            f"max_value log^{square:.2f}, for max_value {x[0]:g} to {x[-1]:g}"
        )
        times = {"search": [r.search for r in rows], "proof": [r.seconds - r.search for r in rows]}
        late = x >= 10
        for name, seconds in times.items():
            slope = np.polyfit(np.log(x[late]), np.log(np.array(seconds)[late]), 1)[0]
            print(f"eps*/eps = {fraction:g}: seconds of the {name} ~ max_value^{slope:.2f}")
        color = colors.get(fraction)
        axes.loglog(
            x, of_paper, "s--", color=color, label=f"paper, program's t', ε*/ε = {fraction:g}"
        )
        shape = x * np.log2(x) ** 2
        axes.loglog(x, of_paper[-1] * shape / shape[-1], ":", color=color, alpha=0.6)
        axes.loglog(
            x, found, "o-", color=color, label=f"found, ~ Δ^{power:.2f}, ε*/ε = {fraction:g}"
        )
    axes.plot([], [], ":", color="#666666", label="Δ log² Δ, through the paper's last point")
    axes.set_xlabel("Δ (max_value)")
    axes.set_ylabel("noise messages of all users")
    axes.set_title(f"ε = {EPS:g}, δ = {DELTA:g}", fontsize=9)
    axes.grid(True, which="both", alpha=0.25)
    axes.legend(fontsize=8)
    figure.savefig(plot, dpi=150)


def headline(results: list[Result], plot: Path) -> None:
    """Draw messages over max_value: the paper's theorem, its program, and what is certified."""
    from matplotlib.figure import Figure

    rows = [result for result in results if result.fraction == 0.9]
    theorem = []
    for row in rows:
        problem = Problem(n=N, eps=EPS, delta=DELTA, max_value=row.max_value)
        target = Target(problem, 0.9 * EPS)
        theorem.append(noise_messages(target.step, paper.theorem(target).atoms))
    x = [row.max_value for row in rows]
    refined = [row for row in rows if row.max_value <= LARGEST_PROGRAM]
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.add_subplot()
    axes.loglog(x, theorem, "s--", color="#999999", label="the paper's theorem")
    axes.loglog(
        [row.max_value for row in refined],
        [row.paper for row in refined],
        "D--",
        color="#d55e00",
        label="the paper's refined parameters",
    )
    axes.loglog(x, [row.found for row in rows], "o-", color="#0072b2", label="certified here")
    axes.set_xlabel("largest input (max_value)")
    axes.set_ylabel("noise messages of all users together")
    axes.set_title(f"ε = {EPS:g}, δ = {DELTA:g}, 1.11 times the central error", fontsize=9)
    axes.grid(True, which="both", alpha=0.25)
    axes.legend(fontsize=8)
    figure.savefig(plot, dpi=150, metadata={"Date": None} if plot.suffix == ".svg" else None)


def key_of(text: str) -> Key:
    size, _, fraction = text.partition("@")
    return int(size), float(fraction or 0.9)


def main() -> None:
    parser = scripts.parser(__doc__)
    first = [key_of(text) for text in ("1", "2", "5", "10", "20")]
    parser.add_argument("--rows", type=key_of, nargs="*", default=first, metavar="VALUE@FRACTION")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="for the parameter files")
    parser.add_argument("--growth", type=Path, metavar="FILE.png")
    parser.add_argument("--headline", type=Path, metavar="FILE.svg")
    asked = parser.parse_args()
    results = read(asked.csv) if asked.csv and asked.csv.exists() else []
    known = {result.key for result in results}
    wanted = list(WITHIN) if asked.all else asked.rows
    for key in [(1, 0.9)] if asked.smoke else wanted:
        if key in known:
            continue
        scripts.say(f"max_value {key[0]}, eps*/eps {key[1]:g}")
        results.append(run(key, asked.keep))
        scripts.say(" ".join(cells(results[-1])))
        results.sort(key=lambda result: (-result.fraction, result.max_value))
        if asked.csv:
            write(asked.csv, results)
    print(markdown(results))
    if asked.markdown:
        asked.markdown.write_text(markdown(results))
    if asked.growth:
        growth(results, asked.growth)
    if asked.headline:
        headline(results, asked.headline)


if __name__ == "__main__":
    main()
