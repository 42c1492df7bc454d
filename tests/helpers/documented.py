"""Running the examples in docstrings."""

from __future__ import annotations

import doctest
from importlib import import_module
from typing import Any


def run_examples(public: Any) -> int:
    """Run the examples of a class and its methods; how many there are."""
    module = import_module(public.__module__)
    tests = doctest.DocTestFinder().find(public, public.__name__, module, vars(module))
    for test in tests:
        assert not doctest.DocTestRunner().run(test).failed
    return sum(len(test.examples) for test in tests)
