"""Packages whose names are imported when they are first used.

The names are listed once, as imports in the stub ``__init__.pyi`` that type checkers read.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def exports(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for the names that the stub beside ``file``
    imports."""
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    home = {
        alias.name: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for alias in node.names
    }

    def get(name: str) -> Any:
        if name == "__version__":
            return import_module("importlib.metadata").version("paramsearch")
        if name == "__all__":
            return sorted([*home, "__version__"])
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(home[name]), name)

    return get, lambda: sorted([*home, "__version__"])
