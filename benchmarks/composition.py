"""Releases together: our loss distribution beside the same one composed by google's dp_accounting.

One file, T = 1, 10 and 100 releases: the eps that holds at delta = 1e-6.  Ours encloses it between
two proven bounds.  The peer gets our exported distribution at its default interval and composes it
with itself; it has no lower bound and ignores rounding.  "away" is the distance of its eps from our
lower bound, so from the truth it is at most that; "delta over ours" is the ratio of both upper
bounds of delta at our eps.  Seconds are those of one run, ours for the search for eps with both
bounds, the peer's for composing and reading off, without the export, which is listed once.

    python benchmarks/composition.py

``--smoke`` takes one file, one release, and a wide interval.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import scripts

from paramsearch import load, loss_distribution
from paramsearch.tables.lookup import shipped_folder

NAMES = ("5-1-1e-06-0.9.json", "5-0.25-1e-06-0.9.json")
TIMES = (1, 10, 100)
DELTA, INTERVAL = 1e-6, 1e-4
Found = TypeVar("Found")


def timed(work: Callable[[], Found]) -> tuple[Found, float]:
    begun = time.perf_counter()
    found = work()
    return found, time.perf_counter() - begun


def main() -> None:
    smoke = scripts.parser(__doc__).parse_args().smoke
    names, times, interval = (NAMES[:1], (1,), 1e-2) if smoke else (NAMES, TIMES, INTERVAL)
    print("| file | releases | eps, ours | eps, peer | away | delta over ours | s, ours : peer |")
    print("|---|--:|---|--:|--:|--:|--:|")
    exports = []
    for name in names:
        scripts.say(f"exporting {name}")
        one = loss_distribution(load(shipped_folder() / "files" / name))
        one.delta(1.0)  # compiles, and warms up
        exported, seconds = timed(lambda: one.to_dp_accounting(interval))
        exports.append(f"{seconds:.1f} s")
        for releases in times:
            scripts.say(f"{releases} of {name}")
            whole = one.power(releases)
            ours, own_seconds = timed(lambda: whole.epsilon(DELTA))
            theirs, peer_seconds = timed(
                lambda: exported.self_compose(releases) if releases > 1 else exported
            )
            eps, more = timed(lambda: theirs.get_epsilon_for_delta(DELTA))
            peer_seconds += more
            ratio = theirs.get_delta_for_epsilon(ours.upper) / whole.delta(ours.upper).upper
            print(
                f"| `{name}` | {releases} | {ours.lower:.6g} to {ours.upper:.6g} | {eps:.6g} "
                f"| {100 * (eps / ours.lower - 1):.4f} % | {ratio:.5f} "
                f"| {own_seconds:.2f} : {peer_seconds:.2f} = {own_seconds / peer_seconds:.0f} |",
                flush=True,
            )
    print(f"\nExport at the interval {interval:g}: {' and '.join(exports)}.")


if __name__ == "__main__":
    main()
