"""Mutated configurations, parameter files and messages for the command line; a case is a seed.

    python tests/helpers/fuzz.py --count 10000 --seed 1

Cases run in child processes, many in each, with 6 GiB of address space and a time limit; commands
without a budget of their own get one.  A case fails with a traceback or an internal error, an exit
code other than 0 to 3, output that is not what ``--json`` promises, an abort, a hang, or memory
that is exhausted instead of refused; what it was given is then kept in a folder.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from fuzz_inputs import Case, Inputs

MEMORY = 6 << 30
BUDGET = 0.5
"""Seconds that a command may work."""
PATIENCE = 40.0
"""Seconds after which it hangs: the first case of a child compiles kernels, and others run, too."""
CASES_PER_CHILD = 2000
CODES = {0, 1, 2, 3}
_SHOWN = 5
_WORDS = ("Traceback", "internal error", "out of memory", "Warning", "FLINT")


@dataclass(frozen=True)
class Failure:
    index: int
    case: Case | None
    what: str
    said: str


@dataclass(frozen=True)
class Tally:
    """How many cases of each command and document ended how."""

    outcomes: Counter[tuple[str, str, str]]
    failures: tuple[Failure, ...]
    slowest: tuple[tuple[float, int], ...]
    """(seconds, case), a few."""

    def lines(self) -> Iterator[str]:
        kinds = sorted({(command, document) for command, document, _ in self.outcomes})
        for kind in kinds:
            ends = {end: n for (*of, end), n in self.outcomes.items() if tuple(of) == kind}
            told = ", ".join(f"{end} {n:,}" for end, n in sorted(ends.items()))
            yield f"{kind[0]:10} {kind[1]:14} {sum(ends.values()):7,}: {told}"
        slow = ", ".join(f"{seconds:.1f} s for case {index}" for seconds, index in self.slowest)
        yield f"{self.outcomes.total():,} cases, {len(self.failures)} failures; slowest: {slow}"


def fuzz(count: int, seed: int, keep: Path, *, first: int = 0, budget: float = BUDGET) -> Tally:
    """Cases ``first``.. of a seed; failures are kept as folders."""
    outcomes: Counter[tuple[str, str, str]] = Counter()
    failures: list[Failure] = []
    times: list[tuple[float, int]] = []
    keep.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix="fuzz-"))
    try:
        begin, end = first, first + count
        while begin < end:
            since = math.inf  # a child takes its time to begin
            for index, case, outcome, said in _in_a_child(
                seed, begin, min(end, begin + CASES_PER_CHILD), place, budget
            ):
                begin = index + 1
                times = sorted([*times, (time.monotonic() - since, index)])[-_SHOWN:]
                since = time.monotonic()
                command, document = (case.command, case.document) if case else ("?", "?")
                outcomes[command, document, outcome] += 1
                if not outcome.isdigit():
                    failures.append(Failure(index, case, outcome, said))
                    _keep(place / str(index), keep / f"{seed}-{index}", f"{outcome}\n{said}")
                shutil.rmtree(place / str(index), ignore_errors=True)
    except KeyboardInterrupt:
        print("interrupted; what was done by then:", file=sys.stderr)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return Tally(outcomes, tuple(failures), tuple(times))


def _keep(folder: Path, target: Path, said: str) -> None:
    target.mkdir(exist_ok=True)
    if folder.exists():  # a child may be gone before it has made a case
        shutil.copytree(folder, target, dirs_exist_ok=True)
    (target / "said").write_text(said, errors="replace")


def _in_a_child(
    seed: int, begin: int, end: int, place: Path, budget: float
) -> Iterator[tuple[int, Case | None, str, str]]:
    """(index, case, outcome, stderr) of the cases until the child has done all or is gone."""
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("spawn").Process(
        target=_cases, args=(there, seed, begin, end, place, budget)
    )
    child.start()
    there.close()
    index, case = begin, None
    try:
        while index < end:
            try:
                if not here.poll(PATIENCE):
                    yield index, case, "hang", ""
                    return
                got = here.recv()
            except EOFError:
                child.join(PATIENCE)
                yield index, case, f"ended by {child.exitcode}", _said(place)
                return
            if isinstance(got, Case):
                case = got
            else:
                yield index, case, *got
                index, case = index + 1, None
    finally:
        here.close()
        if child.is_alive():
            with_children = child.pid
            assert with_children is not None
            os.killpg(with_children, signal.SIGKILL)
        child.join()


def _said(place: Path) -> str:
    return (place / "stderr").read_bytes().decode("utf-8", "replace")[-4000:]


def _cases(parent: Connection, seed: int, begin: int, end: int, place: Path, budget: float) -> None:
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from accounting.base.threads import use_cores

    use_cores(1)
    inputs = Inputs()
    for name, number in (("stdout", 1), ("stderr", 2)):
        os.dup2(os.open(place / name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), number)
    for index in range(begin, end):
        folder = place / str(index)
        folder.mkdir()
        case = inputs.case(random.Random(f"{seed}:{index}"), folder)
        (folder / "arguments.json").write_text(json.dumps(case.arguments))
        parent.send(case)
        parent.send(_run(case, place, budget))
    parent.close()


def _run(case: Case, place: Path, budget: float) -> tuple[str, str]:
    """(exit code or what is wrong, stderr)."""
    from accounting.base.deadline import until
    from paramsearch.cli.app import main

    for number in (1, 2):
        os.lseek(number, 0, os.SEEK_SET)
        os.ftruncate(number, 0)
    sys.argv = ["paramsearch", *case.arguments]
    code: object = None
    try:
        with until(time.monotonic() + budget):
            main()
    except SystemExit as exit_:
        code = exit_.code
    except BaseException as error:
        return f"{type(error).__name__}", str(error)
    sys.stderr.flush()
    said = _said(place)
    if code not in CODES:
        return f"code {code}", said
    for word in _WORDS:
        if word in said:
            return word, said
    if "--json" in case.arguments and code != 2:
        answer = (place / "stdout").read_text("utf-8")
        try:
            json.loads(answer, parse_constant=_no_constant)
        except ValueError as error:
            refusal = code in (1, 3) and not answer and said.count("\n") == 1
            return (str(code) if refusal else "no JSON"), f"{error}\n{said}"
    return str(code), said


def _no_constant(name: str) -> None:
    raise ValueError(name)


def main() -> int:
    parser = argparse.ArgumentParser(description="Mutated input for every command.")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="The first case of the seed.")
    parser.add_argument("--budget", type=float, default=BUDGET, help="Seconds for each case.")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"))
    given = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background, too
    tally = fuzz(given.count, given.seed, given.keep, first=given.first, budget=given.budget)
    print("\n".join(tally.lines()))
    for failure in tally.failures:
        said = " ".join(failure.said.split())[:200]
        print(f"case {failure.index}: {failure.what}: {said}")
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
