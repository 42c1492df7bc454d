"""A few hundred cases of the fuzzer; `python tests/helpers/fuzz.py` runs more."""

from __future__ import annotations

from pathlib import Path

from fuzz import fuzz


def test_many_cases(tmp_path: Path) -> None:
    tally = fuzz(150, 20_210_718, tmp_path / "failures")
    assert not tally.failures, [(f.index, f.what, f.said[-300:]) for f in tally.failures]
    assert tally.outcomes.total() == 150
    ends = {end for _, _, end in tally.outcomes}
    assert {"0", "1", "2", "3"} <= ends, "the cases are too much alike"
