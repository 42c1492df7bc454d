"""Configuration files: what is accepted, and how everything else is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from accounting import AccountingError, load, loads
from accounting.model.configuration import Proposal

GOOD: dict[str, Any] = {
    "max_value": 2,
    "eps": 1.0,
    "delta": 1e-6,
    "n": 1000,
    "eps_central": 0.9,
    "atoms": [
        {"atom": [-1, 1], "r": 12.0, "p": 0.985},
        {"atom": [2, -1, -1], "r": 12, "p": 0.98},
    ],
}


def test_a_good_file() -> None:
    config = loads(json.dumps(GOOD))
    assert config.max_value == 2
    assert Proposal.of(GOOD).n == 1000
    means = 12 * 0.985 / 0.015, 12 * 0.98 / 0.02
    assert config.noise_messages == pytest.approx(
        2 * means[0] + 3 * means[1] + 2 / (2.718281828459045**0.45 - 1)
    )


def changed(**changes: object) -> str:
    return json.dumps({**GOOD, **changes})


def with_atom(**changes: object) -> str:
    return changed(atoms=[GOOD["atoms"][0], {**GOOD["atoms"][1], **changes}])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[", "not JSON"),
        ("[]", "JSON object"),
        ("[" * 100_000, "not JSON"),
        ('{"max_value": 2, "max_value": 3}', "given twice"),
        ('{"max_value": NaN}', "NaN"),
        ('{"eps": 1e999}', "missing|finite"),
        (changed(extra=1), "unknown key 'extra'"),
        (json.dumps({"max_value": 2}), "missing"),
        (changed(atoms={}), "must be a list"),
        (changed(atoms=[{"atom": [-1, 1], "r": 1.0}]), r"atoms\[0\] must have exactly"),
        (with_atom(p=1.0), r"p of atom \[2, -1, -1\] = 1.0"),
        (with_atom(p=0), "has no noise"),
        (with_atom(r=-2), "r of atom"),
        (with_atom(r="12"), "r of atom"),
        (with_atom(r=True), "r of atom"),
        (with_atom(r=None), "r of atom"),
        (with_atom(r=10**400), "r of atom"),
        (with_atom(atom=[2, -1]), "zero-sum"),
        (with_atom(atom=3), "must be a list"),
        (with_atom(atom=[2, "x"]), "not an integer"),
        (with_atom(atom=[3, -1, -1, -1]), "unprotected"),
        (changed(max_value=0), "max_value"),
        (changed(max_value=2.5), "max_value"),
        (changed(max_value=10**9), "unprotected|large"),
        (changed(eps=-1), "eps"),
        (changed(delta=0), "delta"),
        (changed(delta=2), "delta"),
        (changed(n=0), "n = 0"),
        (changed(eps_central=0), "eps_central"),
        (changed(eps_central=1e9), "no central noise"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(AccountingError, match=message):
        loads(text)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(AccountingError, match="cannot read"):
        load(tmp_path / "none.json")
    bad = tmp_path / "bad.json"
    bad.write_bytes(b'{"max_value": "\xff"}')
    with pytest.raises(AccountingError, match="UTF-8"):
        load(bad)
    with pytest.raises(AccountingError, match="not a regular file"):
        load(tmp_path)
