"""Compilation is announced once, and only where something is compiled."""

from __future__ import annotations

from accounting.base.jit import kernel
from accounting.base.progress import silent, when_compiling


def test_compilation_is_announced_once() -> None:
    @kernel
    def plus_one(number: int) -> int:
        return number + 1

    @kernel
    def twice(number: int) -> int:
        return plus_one(number) + number - 1

    said: list[str] = []
    when_compiling(said.append)
    try:
        assert twice(2) == 4
        assert twice(2.5) == 5.0
    finally:
        when_compiling(silent)
    assert len(said) <= 1  # none if an earlier run of this test compiled them
    assert all("compiling" in text for text in said)
