"""A poor local optimum is repaired from the better neighbour."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from filled import Here, contents, copied, folder_of, spoiled

from accounting import InvalidParameter
from paramsearch import Request, audit, generate, load, save
from paramsearch.filling.filler import Filler, violations
from paramsearch.filling.worker import SearchResult
from paramsearch.parameters.parameter_file import dumps


def test_a_poor_optimum_is_repaired_from_the_better_neighbour(table: Path, tmp_path: Path) -> None:
    place = copied(table, tmp_path / "t")
    poor = ("2-1-1e-06-0.9", "1-0.5-1e-06-0.9")  # from less eps, or less delta, or larger values
    for name in poor:
        path = place / "files" / f"{name}.json"
        save(spoiled(load(path), 5), path)
    with folder_of(place) as folder:
        names = [task.cell.name for task in violations(folder, 0.02)]
        assert set(names) == set(poor)
        pool = Here()
        summary = Filler(folder, pool).run()
        assert summary.repaired == 2
        assert summary.violations == []
        assert all(job.start is not None for job in pool.jobs)
    good = {path.stem: load(path) for path in (table / "files").iterdir()}
    for name in poor:
        mended = load(place / "files" / f"{name}.json")
        assert mended.cost.noise_messages <= good[name].cost.noise_messages * 1.01
        assert audit(mended, tier="fast").verdict == "certified"
    with folder_of(place) as folder:
        pool = Here()
        assert Filler(folder, pool).run().repaired == 0
        assert not pool.jobs


def test_repairs_do_not_depend_on_the_number_of_workers(table: Path, tmp_path: Path) -> None:
    """Of two poor cells each is the start of the other's neighbour."""
    found = []
    for slots in (1, 2):
        place = copied(table, tmp_path / f"t{slots}")
        for name, factor in (("1-1-1e-06-0.9", 6), ("1-2-1e-06-0.9", 20)):
            path = place / "files" / f"{name}.json"
            save(spoiled(load(path), factor), path)
        with folder_of(place) as folder:
            pool = Here(slots=slots)
            assert Filler(folder, pool).run().violations == []
            assert len(pool.jobs) >= 2
        found.append(contents(place))
    assert found[0] == found[1]


def test_a_repair_that_does_not_help_is_not_tried_again(table: Path, tmp_path: Path) -> None:
    place = copied(table, tmp_path / "t")
    path = place / "files" / "1-2-1e-06-0.9.json"
    save(spoiled(load(path), 5), path)
    worse = dumps(spoiled(load(path), 1.5))
    for expected in (1, 0):
        with folder_of(place) as folder:
            pool = Here(lambda _: SearchResult(worse, None, 1.0))
            summary = Filler(folder, pool).run()
            assert len(pool.jobs) == expected
            assert summary.violations == ["1-2-1e-06-0.9"]


def test_a_search_starts_from_a_file_for_larger_values() -> None:
    larger = generate(
        Request(n=1000, eps=1.0, delta=1e-6, max_value=4, tries=2, cold=True, tier="fast")
    ).file
    request = Request(n=1000, eps=1.0, delta=1e-6, max_value=3, tries=2, cold=True, tier="fast")
    near = generate(request, resume=larger, refine_only=True)
    assert near.optimality is None
    assert near.file.problem.max_value == 3
    assert near.file.cost.noise_messages < larger.cost.noise_messages
    with pytest.raises(InvalidParameter, match="max_value 3, not 4"):
        generate(replace(request, max_value=4), resume=near.file)
