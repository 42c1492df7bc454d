"""The examples in the docstrings of ``Request`` and ``generate``."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest


@pytest.mark.parametrize("module", ["paramsearch.problem", "paramsearch.generation.generate"])
def test_the_examples_run(module: str) -> None:
    found = doctest.testmod(import_module(module), optionflags=doctest.ELLIPSIS)
    assert found.attempted
    assert not found.failed
