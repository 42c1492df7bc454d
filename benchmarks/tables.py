"""Throughput of a table's workers, and the time of a lookup in the shipped table.

    python benchmarks/tables.py [--max-value 10] [--markdown FILE]

``--smoke`` fills a grid of two problems, and looks a few files up.
The same grid is filled by one process and by two, each with one core, in one run; imports and the
start of the processes are inside.  A lookup is timed from opening the table to the file for the
number of users asked for, after everything is imported.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import scripts

from paramsearch.tables.lookup import Query

GRID = """eps = [0.5, 1, 2, 4]
delta = [1e-6, 1e-8, 1e-10]
max_value = [{size}, {next}]
tries = 10
tier = "fast"
"""
SMALL_GRID = """eps = [1]
delta = [1e-6]
max_value = [{size}, {next}]
tries = 1
tier = "fast"
"""


def filled(text: str, size: int, workers: int) -> tuple[int, float]:
    """Number of problems of a grid, and seconds of the command."""
    scripts.say(f"filling a table up to max_value {size + 1} by {workers}")
    with tempfile.TemporaryDirectory() as folder:
        grid = Path(folder) / "grid.toml"
        grid.write_text(text.format(size=size, next=size + 1))
        begun = time.perf_counter()
        done = subprocess.run(
            [
                *(sys.executable, "-m", "paramsearch", "table", str(grid)),
                *("-o", str(Path(folder) / "table"), "--workers", str(workers), "--json"),
            ],
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        seconds = time.perf_counter() - begun
        return json.loads(done.stdout)["made"], seconds


def lookups(every: int) -> list[float]:
    """Milliseconds, for one request in ``every`` rows of the shipped table."""
    scripts.say("looking files up")
    from paramsearch.tables.lookup import Table

    times = []
    for row in Table.open().rows[::every]:
        begun = time.perf_counter()
        found = Table.open().lookup(
            Query(n=12_345, eps=row.eps * 1.1, delta=row.delta * 1.1, max_value=row.max_value)
        )
        assert found.file.problem.n == 12_345
        times.append(1e3 * (time.perf_counter() - begun))
    return times


def main() -> None:
    parser = scripts.parser(__doc__)
    parser.add_argument("--max-value", type=int, default=10)
    parser.add_argument("--markdown", type=Path)
    asked = parser.parse_args()
    grid, size, every = (SMALL_GRID, 1, 100) if asked.smoke else (GRID, asked.max_value, 7)
    filled(grid, 1, 2)  # compiles what is not compiled
    (made, one), (again, two) = filled(grid, size, 1), filled(grid, size, 2)
    if made != again:
        raise SystemExit(f"one process made {made} files and two made {again}")
    times = lookups(every)
    lines = [
        "| what | seen |",
        "|---|---|",
        f"| {made} problems by one process | {one:.1f} s |",
        f"| by two processes | {two:.1f} s |",
        f"| ratio | {one / two:.2f} |",
        f"| lookup, median and largest of {len(times)} | {statistics.median(times):.1f} ms, "
        f"{max(times):.1f} ms |",
    ]
    print("\n".join(lines))
    if asked.markdown:
        asked.markdown.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
