"""The README's Python runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from places import ROOT


def test_the_python_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(examples) == 5
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {}
    for example in examples:
        exec(example, scope)
    found = scope["found"]
    assert 0 < found.enclosure.lower <= found.enclosure.upper < 1
    assert (tmp_path / "parameters.json").exists()


PLACE = re.compile(r"(?:accounting|paramsearch|tests|benchmarks)/[\w/.-]*\w")


def test_every_place_that_is_named_exists() -> None:
    texts = [ROOT / "README.md"]
    for package in ("accounting", "paramsearch", "tests", "benchmarks"):
        texts += [*(ROOT / package).rglob("*.py"), *(ROOT / package).rglob("*.md")]
    for path in texts:
        for place in PLACE.findall(path.read_text(encoding="utf-8")):
            assert (ROOT / place).exists(), f"{path.relative_to(ROOT)} names {place}"
