"""Throughput of a table's workers, and the time of a lookup in the shipped table.

    python benchmarks/tables.py [--max-value 10] [--markdown FILE]

The same grid is filled by one process and by two, each with one core, in one run; imports and the
start of the processes are inside.  A lookup is timed from opening the table to the file for the
number of users asked for, after everything is imported.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from paramsearch.tables.lookup import Query

GRID = """eps = [0.5, 1, 2, 4]
delta = [1e-6, 1e-8, 1e-10]
max_value = [{size}, {next}]
tries = 10
tier = "fast"
"""


def filled(size: int, workers: int) -> float:
    """Seconds of the command."""
    with tempfile.TemporaryDirectory() as folder:
        grid = Path(folder) / "grid.toml"
        grid.write_text(GRID.format(size=size, next=size + 1))
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
        assert json.loads(done.stdout)["made"] == 24
        return time.perf_counter() - begun


def lookups() -> list[float]:
    """Milliseconds, for requests all over the shipped table."""
    from paramsearch.tables.lookup import Table

    times = []
    for row in Table.open().rows[::7]:
        begun = time.perf_counter()
        found = Table.open().lookup(
            Query(n=12_345, eps=row.eps * 1.1, delta=row.delta * 1.1, max_value=row.max_value)
        )
        assert found.file.problem.n == 12_345
        times.append(1e3 * (time.perf_counter() - begun))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max-value", type=int, default=10)
    parser.add_argument("--markdown", type=Path)
    asked = parser.parse_args()
    filled(1, 2)  # compiles what is not compiled
    one, two = filled(asked.max_value, 1), filled(asked.max_value, 2)
    times = lookups()
    lines = [
        "| what | seen |",
        "|---|---|",
        f"| 24 problems by one process | {one:.1f} s |",
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
