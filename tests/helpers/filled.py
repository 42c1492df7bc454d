"""A small grid, a pool without processes, and tables to spoil."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from accounting.model.mechanism import ExactCentral, ExactNoise
from paramsearch import load, save
from paramsearch.certification.certify import certify
from paramsearch.filling.folder import Folder
from paramsearch.filling.grid import Grid
from paramsearch.filling.worker import SearchJob, SearchResult, run_search
from paramsearch.parameters.assembly import assemble

SMALL = """eps = [0.5, 1, 2]
delta = [1e-6, 1e-8]
max_value = [1, 2]
tries = 2
n = [1000, 1_000_000]
"""


def grid_file(folder: Path, text: str = SMALL) -> Path:
    path = folder / "grid.toml"
    path.write_text(text)
    return path


def contents(table: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (table / "files").iterdir()}


class Here:
    """A pool in this process; ``work`` stands for the search."""

    def __init__(
        self, work: Callable[[SearchJob], SearchResult] = run_search, slots: int = 1
    ) -> None:
        self.work, self.size = work, slots
        self.jobs: list[SearchJob] = []
        self.renewed = 0

    def slots(self) -> int:
        return self.size

    def submit(self, _: Any, job: SearchJob) -> Future[Any]:
        self.jobs.append(job)
        future: Future[Any] = Future()
        try:
            future.set_result(self.work(job))
        except BaseException as error:
            future.set_exception(error)
        return future

    def renew(self) -> None:
        self.renewed += 1

    def trouble(self) -> str | None:
        return None

    def stop(self) -> bool:
        return False

    def close(self) -> None:
        pass


@contextmanager
def folder_of(path: Path, text: str = SMALL) -> Iterator[Folder]:
    path.mkdir(exist_ok=True)
    folder = Folder(path, Grid.read(grid_file(path, text)))
    try:
        yield folder
    finally:
        folder.close()


def copied(table: Path, place: Path) -> Path:
    """The files of a table in a new folder."""
    (place / "files").mkdir(parents=True)
    for path in (table / "files").iterdir():
        save(load(path), place / "files" / path.name)
    return place


def spoiled(file: Any, factor: float) -> Any:
    """The same problem with more noise than it needs, certified."""
    central = ExactCentral(p=Fraction(file.central.p), rate=Fraction(file.central.rate))
    atoms = [
        (
            entry.atom,
            ExactNoise(
                p=Fraction(entry.p),
                rate=Fraction(entry.rate) * Fraction(factor).limit_denominator(99),
            ),
        )
        for entry in file.atoms
    ]
    return certify(assemble(file.problem, central, atoms, file.provenance), tier="fast")
