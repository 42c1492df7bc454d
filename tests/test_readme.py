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
