"""Compilation is announced once, and only where something is compiled; kept code is up to date."""

from __future__ import annotations

import os
import subprocess
import sys
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


INNER = """
from accounting.base.jit import kernel
NUMBER = {number}

@kernel
def inner(x):
    return {inner}
"""
MIDDLE = """
from accounting.base.jit import kernel
from inner_kernels import inner

@kernel
def middle(x):
    return inner(x)
"""
OUTER = """
from accounting.base.jit import kernel
from accounting.base.progress import when_compiling
from inner_kernels import NUMBER
from middle_kernels import middle

@kernel
def outer(x):
    return middle(x) + NUMBER

said = []
when_compiling(said.append)
print(outer(1), "compiled" if said else "kept")
"""


def test_code_is_compiled_again_where_another_file_changes(tmp_path: Path) -> None:
    """A kernel that is called by way of another one, and a constant: numba sees neither."""

    def answer(number: int, inner: str) -> str:
        text = INNER.format(number=number, inner=inner)
        (tmp_path / "inner_kernels.py").write_text(text)
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
        command = [sys.executable, "-B", str(tmp_path / "outer_kernels.py")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    (tmp_path / "middle_kernels.py").write_text(MIDDLE)
    (tmp_path / "outer_kernels.py").write_text(OUTER)
    assert answer(100, "x + 1") == "102 compiled"
    assert answer(100, "x + 1") == "102 kept"
    assert answer(100, "x + 5") == "106 compiled"
    assert answer(700, "x + 5") == "706 compiled"
    assert answer(700, "x + 5") == "706 kept"
