"""Which module may know which, read off the syntax trees, lazy imports included."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from places import ROOT

NOTARY = sorted((ROOT / "accounting" / "notary").glob("*.py"))
NEUTRAL = {"arrays", "checks", "clock", "enclosure", "errors", "parallel", "precision"}
"""Modules of accounting without any evaluation in them."""


def imports(path: Path) -> set[str]:
    """Every module that a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            assert node.module is not None
            found |= {node.module} | {f"{node.module}.{name.name}" for name in node.names}
    return found


@pytest.mark.parametrize("path", NOTARY, ids=lambda path: path.stem)
def test_the_second_proof_shares_no_code_with_the_first(path: Path) -> None:
    for name in imports(path):
        package, *rest = name.split(".")
        if package in {"accounting", "paramsearch"}:
            assert package == "accounting", f"{path.name} imports {name}"
            allowed = rest[:1] == ["notary"] or not NEUTRAL.isdisjoint(rest[:1])
            assert allowed, f"{path.name} imports {name}"


def test_neutral_modules_know_no_others() -> None:
    for name in NEUTRAL:
        for imported in imports(ROOT / "accounting" / f"{name}.py"):
            package, *rest = imported.split(".")
            assert package != "paramsearch"
            assert package != "accounting" or rest[0] in NEUTRAL, f"{name} imports {imported}"


def test_accounting_never_imports_paramsearch() -> None:
    for path in (ROOT / "accounting").rglob("*.py"):
        assert not any(name.split(".")[0] == "paramsearch" for name in imports(path)), path
