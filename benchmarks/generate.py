"""What ``paramsearch generate`` finds, and how long it takes, beside the paper's own parameters.

eps = 1, delta = 1e-6; noise messages are 2 E[central] + sum of |s| E[D^s] of all users.  Every row
is one run of the command in a process of its own (imports, search, proof of the file and proof that
no single move helps are inside the time; the kernels are compiled before).  "paper" is the paper's
analytic bound with the t' of the dominance program and the best split of the slack, computed here.

    python benchmarks/generate.py [--rows 1 2 5 10 20] [--all] [--markdown FILE] [--csv FILE]
    python benchmarks/generate.py --growth FILE.png [--fraction 0.9] [--sizes 5 10 20 50 100 200]
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from paramsearch.search import paper
from paramsearch.search.target import Target

EPS, DELTA, N = 1.0, 1e-6, 1_000_000


@dataclass(frozen=True)
class Row:
    """``most`` messages are to be reached within ``within`` seconds."""

    max_value: int
    fraction: float
    most: float | None
    within: float


ROWS = (
    Row(1, 0.9, 601, 5),
    Row(2, 0.9, 2_140, 5),
    Row(5, 0.9, 5_580, 20),
    Row(10, 0.9, 11_600, 40),
    Row(20, 0.9, 28_300, 120),
    Row(50, 0.9, 80_700, 300),
    Row(100, 0.9, 190_000, 900),
    Row(200, 0.9, 450_000, 1800),
    Row(50, 0.1, 22_500, 180),
    Row(200, 0.1, 100_000, 1200),
    Row(1000, 0.1, None, 3600),
)


@dataclass(frozen=True)
class Result:
    row: Row
    paper: float
    found: float
    delta_upper: float
    seconds: float

    @property
    def most(self) -> float:
        """Without a number of its own: a fiftieth of the paper's."""
        return self.row.most if self.row.most is not None else self.paper / 50


def run(row: Row) -> Result:
    """One run of the command; half of the time allowed is its budget for the search."""
    target = Target(row.max_value, EPS, DELTA, row.fraction * EPS, N)
    usual = paper.noise_messages(target, paper.refined(target))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "file.json"
        begun = time.perf_counter()
        subprocess.run(
            [
                *(sys.executable, "-m", "paramsearch", "generate"),
                *("--n", str(N), "--eps", str(EPS), "--delta", str(DELTA)),
                *("--max-value", str(row.max_value), "--central-fraction", str(row.fraction)),
                *("--budget", str(row.within / 2), "-o", str(file)),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        seconds = time.perf_counter() - begun
        data = json.loads(file.read_text())
    upper = data["certificate"]["delta_upper"]
    return Result(row, usual, data["cost"]["noise_messages"], upper, seconds)


HEADER = ("max_value", "eps*/eps", "paper", "at most", "found", "found/at most", "paper/found",
          "within s", "seconds", "delta at most")  # fmt: skip


def cells(result: Result) -> tuple[str, ...]:
    row = result.row
    return (
        str(row.max_value),
        f"{row.fraction:g}",
        f"{result.paper:.0f}",
        f"{result.most:.0f}",
        f"{result.found:.1f}",
        f"{result.found / result.most:.3f}",
        f"{result.paper / result.found:.0f}",
        f"{row.within:g}",
        f"{result.seconds:.1f}",
        f"{result.delta_upper:.6g}",
    )


def markdown(results: list[Result]) -> str:
    lines = ["| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
    lines += ["| " + " | ".join(cells(result)) + " |" for result in results]
    return "\n".join(lines) + "\n"


def comma_separated(results: list[Result]) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(HEADER)
    writer.writerows(cells(result) for result in results)
    return out.getvalue()


def growth(sizes: list[int], fraction: float, plot: Path) -> None:
    """Messages against max_value, with a fitted power and the paper's max_value log^2."""
    import numpy as np
    from matplotlib.figure import Figure

    results = [run(Row(size, fraction, None, 20 + 4 * size)) for size in sizes]
    x = np.array(sizes, float)
    found, usual = (np.array([getattr(r, name) for r in results]) for name in ("found", "paper"))
    power, level = np.polyfit(np.log(x), np.log(found), 1)
    print(markdown(results))
    print(f"messages ~ {math.exp(level):.4g} max_value^{power:.3f}")
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.add_subplot()
    axes.loglog(x, usual, "s-", color="#d55e00", label="paper, t' from the program")
    shape = x * np.log2(x) ** 2
    axes.loglog(x, usual[-1] * shape / shape[-1], ":", color="#999999", label="max_value log²")
    axes.loglog(x, found, "o-", color="#0072b2", label=f"found, ~ max_value^{power:.2f}")
    axes.set_xlabel("max_value")
    axes.set_ylabel("noise messages of all users")
    axes.set_title(f"eps {EPS:g}, delta {DELTA:g}, central fraction {fraction:g}", fontsize=9)
    axes.grid(True, which="both", alpha=0.25)
    axes.legend()
    figure.savefig(plot, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="*", default=[1, 2, 5, 10, 20])
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--growth", type=Path)
    parser.add_argument("--fraction", type=float, default=0.9)
    parser.add_argument("--sizes", type=int, nargs="*", default=[5, 10, 20, 50, 100])
    asked = parser.parse_args()
    if asked.growth is not None:
        growth(asked.sizes, asked.fraction, asked.growth)
        return
    results = []
    for row in ROWS:
        if asked.all or row.max_value in asked.rows:
            results.append(run(row))
            print(" ".join(cells(results[-1])), file=sys.stderr, flush=True)
            if asked.markdown:
                asked.markdown.write_text(markdown(results))
            if asked.csv:
                asked.csv.write_text(comma_separated(results))
    print(markdown(results))


if __name__ == "__main__":
    main()
