"""Reports of a search say where it is and how far."""

from __future__ import annotations

import re

import pytest

from accounting.notary.processes import in_processes
from paramsearch import Request, generate


@pytest.fixture(scope="module")
def reports() -> list[str]:
    said: list[str] = []
    request = Request(n=1000, eps=1.0, delta=1e-6, max_value=6, tries=10, cold=True)
    generate(request, progress=said.append)
    return said


def numbers(pattern: str, reports: list[str]) -> list[tuple[int, ...]]:
    found = [re.search(pattern, text) for text in reports]
    return [tuple(int(part) for part in match.groups()) for match in found if match is not None]


@pytest.mark.parametrize(
    "pattern",
    [
        r"^stage 1, round 1/2, random change (\d+) of (\d+), about [\d,]+ messages$",
        r"^stage 1, round 2/2, random change (\d+) of (\d+), about [\d,]+ messages$",
        r"^stage 2, random change (\d+) of (\d+), best [\d,]+ messages$",
        r"^checking optimality (\d+)/(\d+)",
    ],
)
def test_a_part_of_a_search_counts_up_to_its_end(pattern: str, reports: list[str]) -> None:
    steps = numbers(pattern, reports)
    assert steps == sorted(steps)
    assert len({total for _, total in steps}) == 1
    assert steps[-1][0] == steps[-1][1]


def test_families_are_counted(reports: list[str]) -> None:
    steps = numbers(
        r"^stage 2, family (\d+) of (\d+), best [\d,]+ messages, stage 1 was [-+.\d]+% off$",
        reports,
    )
    assert [done for done, _ in steps] == list(range(1, len(steps) + 1))
    assert all(done <= total for done, total in steps)


def test_a_proof_counts_its_pairs(reports: list[str]) -> None:
    steps = numbers(r"^certifying: (\d+) of (\d+) pairs bounded", reports)
    assert (0, 42) in steps
    assert (42, 42) in steps
    assert "certifying, about" in " ".join(reports)


def test_processes_report_how_many_items_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    for worthwhile in (0.0, 10.0):
        monkeypatch.setattr("accounting.notary.processes._WORTHWHILE", worthwhile)
        monkeypatch.setattr("accounting.notary.processes.cores", lambda: 2)
        done: list[int] = []
        assert in_processes(lambda item: item + 1, range(40), done.append) == list(range(1, 41))
        assert done == sorted(done)
        assert done[-1] == 40
