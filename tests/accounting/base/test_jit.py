"""Compilation is announced once, and only where something is compiled."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from accounting.base.progress import silent, when_compiling

SOURCE = """
from accounting.base.jit import kernel

@kernel
def plus_one(number):
    return number + 1

@kernel
def twice(number):
    return plus_one(number) + number - 1
"""


def test_compilation_is_announced_once(tmp_path: Path) -> None:
    path = tmp_path / "new_kernels.py"
    path.write_text(SOURCE)
    spec = spec_from_file_location("new_kernels", path)
    assert spec is not None
    assert spec.loader is not None
    kernels = module_from_spec(spec)
    spec.loader.exec_module(kernels)
    said: list[str] = []
    try:
        when_compiling(said.append)
        assert kernels.twice(2) == 4
        assert kernels.twice(2.5) == 5.0
        assert len(said) == 1
        assert "compiling" in said[0]
        when_compiling(said.append)
        assert kernels.twice(3) == 6
        assert len(said) == 1  # nothing is compiled
    finally:
        when_compiling(silent)
