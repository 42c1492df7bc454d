"""Real sums with almost one message per user: what the paper's headline theorem comes to.

For n users with values in [0, 1] and the error of the Laplace mechanism with (1 - zeta) eps, the
paper takes max_value = ceil(eps/2 sqrt(n / zeta)) and proves 1 + O~(1/sqrt(n)) messages per user.
Every row is one run of ``paramsearch generate-real`` in its own process: messages and bits per user
as certified, the bits predicted before the search, the time, and beside them the paper's max_value
with the noise of its theorem.

    python benchmarks/paper/real_sums.py [--users 1e5 1e6 1e7 1e8] [--csv FILE] [--figure FILE.png]

Rows that are already in the CSV file are not run again.  ``--smoke`` runs a hundred users alone.
"""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent))
import scripts
import stamp

from accounting.model.costs import bits_per_message, noise_messages
from accounting.model.problem import Problem
from paramsearch.search import paper_parameters as paper
from paramsearch.search.target import Target

EPS, DELTA, ZETA = 1.0, 1e-6, 0.25


@dataclass(frozen=True)
class Row:
    """One number of users; ``paper`` is that of the theorem at the paper's max_value."""

    n: int
    max_value: int
    eps_central: float
    messages: float
    bits: float
    predicted_bits: float
    seconds: float
    paper_max_value: int
    paper_messages: float
    paper_bits: float
    commit: str
    date: str


def run(n: int, *more: str) -> Row:
    """Run the command once, with further options."""
    scripts.say(f"{n:,} users")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "file.json"
        begun = time.perf_counter()
        subprocess.run(
            [
                *(sys.executable, "-m", "paramsearch", "generate-real", "--n", str(n)),
                *("--eps", str(EPS), "--delta", str(DELTA), "--zeta", str(ZETA)),
                *("-o", str(file), *more),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        seconds = time.perf_counter() - begun
        data = json.loads(file.read_text())
    top = math.ceil(EPS / 2 * math.sqrt(n / ZETA))
    mse = 2 / ((1 - ZETA) * EPS) ** 2 - n / (4 * top**2)
    central = 2 * top * math.asinh(1 / math.sqrt(2 * mse * top**2))
    target = Target(Problem(n=n, eps=EPS, delta=DELTA, max_value=top), central)
    noise = noise_messages(target.step, paper.theorem(target).atoms)
    settings = data["provenance"]["settings"]
    return Row(
        n=n,
        max_value=data["problem"]["max_value"],
        eps_central=data["central"]["eps_central"],
        messages=data["cost"]["messages_per_user"],
        bits=data["cost"]["bits_per_user"],
        predicted_bits=settings["predicted_bits"],
        seconds=seconds,
        paper_max_value=top,
        paper_messages=1 + noise / n,
        paper_bits=bits_per_message(2 * top) * (1 + noise / n),
        commit=stamp.commit(),
        date=stamp.date(),
    )


def read(path: Path) -> list[Row]:
    by_name = {"int": int, "float": float, "str": str}
    kinds = {field.name: by_name[str(field.type)] for field in fields(Row)}
    with path.open(newline="") as file:
        return [
            Row(**{name: kinds[name](value) for name, value in row.items()})
            for row in csv.DictReader(file)
        ]


def write(path: Path, rows: list[Row]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


HEADER = ("n", "max_value", "eps*", "messages per user", "bits per user", "predicted", "seconds",
          "the paper's max_value", "its messages", "its bits", "commit", "date")  # fmt: skip


def markdown(rows: list[Row]) -> str:
    lines = ["| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
    for row in rows:
        cells = (
            f"{row.n:,}",
            f"{row.max_value:,}",
            f"{row.eps_central:.4f}",
            f"{row.messages:.4f}",
            f"{row.bits:.3f}",
            f"{100 * (row.predicted_bits / row.bits - 1):+.1f}%",
            f"{row.seconds:,.0f}",
            f"{row.paper_max_value:,}",
            f"{row.paper_messages:,.0f}",
            f"{row.paper_bits:,.0f}",
            row.commit,
            row.date,
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def draw(rows: list[Row], path: Path) -> None:
    """Messages per user beyond the first, against n, with a line of slope -1/2."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.add_subplot()
    n = np.array([row.n for row in rows], float)
    ours = np.array([row.messages - 1 for row in rows])
    theirs = np.array([row.paper_messages - 1 for row in rows])
    axes.loglog(n, theirs, "s--", color="#d55e00", label="the paper's theorem")
    axes.loglog(n, ours, "o-", color="#0072b2", label="certified here")
    axes.loglog(n, ours[0] * np.sqrt(n[0] / n), ":", color="#666666", label="slope -1/2")
    axes.set_xlabel("n users")
    axes.set_ylabel("messages per user, less one")
    axes.set_title(f"real sums, ε = {EPS:g}, δ = {DELTA:g}, ζ = {ZETA:g}", fontsize=9)
    axes.grid(True, which="both", alpha=0.25)
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = scripts.parser(__doc__)
    parser.add_argument("--users", type=float, nargs="*", default=[1e5, 1e6, 1e7, 1e8])
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--figure", type=Path, metavar="FILE.png")
    asked = parser.parse_args()
    rows = read(asked.csv) if asked.csv and asked.csv.exists() else []
    users, more = ([100], ["--tries", "1"]) if asked.smoke else (asked.users, [])
    for n in map(round, users):
        if n not in {row.n for row in rows}:
            rows = sorted([*rows, run(n, *more)], key=lambda row: row.n)
            if asked.csv:
                write(asked.csv, rows)
    print(markdown(rows))
    if asked.figure:
        draw(rows, asked.figure)


if __name__ == "__main__":
    main()
