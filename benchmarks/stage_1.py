"""How well stage 1 predicts stage 2, and how much faster it is.

At each of five problems, random families are solved by both stages: the dominance program in the
second norm, the paper's program in the first norm beside it, and the noise itself.  Reported are
Spearman's rank correlations with the messages of stage 2, for all families and for the better half,
and without the correction for heavy tails; the ratio of messages to the value of stage 1; and the
times.

    python benchmarks/stage_1.py [--families 60] [--problems 10@0.9 20@0.9 ...]

``--smoke`` solves four families at 5@0.9.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator

import scripts

from accounting.model.problem import Problem
from paramsearch.search.budget import Budget
from paramsearch.search.dominance.calibration import Calibration, TailCorrection
from paramsearch.search.dominance.exact import solve_exactly
from paramsearch.search.dominance.program import paper_program
from paramsearch.search.dominance.screening import screen
from paramsearch.search.families import hub_families
from paramsearch.search.families.random_moves import random_move
from paramsearch.search.family_screening import FamilyScreening
from paramsearch.search.family_search import Search, rank_correlation
from paramsearch.search.screened_family import Screened
from paramsearch.search.target import Target

PROBLEMS = ("10@0.9", "20@0.9", "20@0.1", "50@0.9", "50@0.1")


def families(screening: FamilyScreening, count: int, rng: random.Random) -> Iterator[Screened]:
    """Different families: usual shapes, changed at random, and most of them improved a little."""
    target = screening.target
    drafts = [
        draft
        for hubs in hub_families.shapes(target)
        if (draft := hub_families.draft_from_hubs(target, hubs)) is not None
    ]
    seen = set()
    while len(seen) < count:
        draft = rng.choice(drafts)
        for _ in range(rng.randint(0, 4)):
            draft = random_move(draft, rng) or draft
        found = screening.solve(draft)
        if rng.random() < 0.7:
            found = screening.improved(found, until=1.0, patience=2)
        if found.draft.key not in seen:
            seen.add(found.draft.key)
            yield found


def timed(work: object) -> float:
    """Seconds of the fastest of three calls."""
    assert callable(work)
    best = float("inf")
    for _ in range(3):
        begun = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begun)
    return best


def run(text: str, count: int) -> str:
    """One row of the table."""
    size, _, fraction = text.partition("@")
    target = Target(
        Problem(n=10**6, eps=1.0, delta=1e-6, max_value=int(size)), float(fraction or 0.9)
    )
    rng = random.Random(1)
    screening = FamilyScreening(target, Calibration.typical(target), Budget(), rng)
    usual = hub_families.draft_from_hubs(target, hub_families.shapes(target)[0])
    assert usual is not None
    screening.tail = TailCorrection(screening.solve(usual).concentration)
    search = Search(target, Budget())
    rows = []
    for found in families(screening, count, rng):
        begun = time.perf_counter()
        messages = search.solve_screened(found).solution.messages
        stage_2 = time.perf_counter() - begun
        first = screen(paper_program(found.draft.family), gap=1e-2).value
        stage_1 = timed(lambda entry=found: screen(entry.program))
        rows.append((found.messages, messages, first, stage_1, stage_2, found.value))
    exact = timed(lambda: solve_exactly(found.program, found.multipliers))
    better = sorted(rows, key=lambda row: row[1])[: count // 2]
    ratio = [messages / value for value, messages, *_ in rows]
    cells = (
        text,
        f"{len(rows)}",
        f"{rank_correlation([(row[0], row[1]) for row in rows]):.3f}",
        f"{rank_correlation([(row[0], row[1]) for row in better]):.3f}",
        f"{rank_correlation([(row[5], row[1]) for row in rows]):.3f}",
        f"{rank_correlation([(row[2], row[1]) for row in rows]):.3f}",
        f"{statistics.mean(ratio):.3f} +- {statistics.stdev(ratio):.3f}",
        f"{1e3 * statistics.median(row[3] for row in rows):.2f}",
        f"{1e3 * exact:.1f}",
        f"{1e3 * statistics.median(row[4] for row in rows):.0f}",
        f"{statistics.median(row[4] / row[3] for row in rows):.0f}",
    )
    return "| " + " | ".join(cells) + " |"


HEADER = (
    "max_value@eps*/eps",
    "families",
    "rank correlation",
    "of the better half",
    "without tails",
    "of the paper's program",
    "messages / value",
    "stage 1, ms",
    "cvxpy, ms",
    "stage 2, ms",
    "ratio",
)


def main() -> None:
    parser = scripts.parser(__doc__)
    parser.add_argument("--families", type=int, default=60)
    parser.add_argument("--problems", nargs="*", default=PROBLEMS, metavar="VALUE@FRACTION")
    asked = parser.parse_args()
    if asked.smoke:
        asked.families, asked.problems = 4, ["5@0.9"]
    print("| " + " | ".join(HEADER) + " |\n|" + "---|" * len(HEADER))
    for text in asked.problems:
        scripts.say(f"{asked.families} families at {text}")
        print(run(text, asked.families), flush=True)


if __name__ == "__main__":
    main()
