"""The README's Python runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any


def test_the_python_example_runs() -> None:
    text = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    example = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert example is not None
    scope: dict[str, Any] = {}
    exec(example.group(1), scope)
    found = scope["found"]
    assert 0 < found.enclosure.lower <= found.enclosure.upper < 1
