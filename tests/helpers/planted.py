"""Mistakes that are planted: a fragment of the source of a function is exchanged for another one.

The changed function has the name, the decorators and the callers of the old one.  A changed kernel
runs without compilation, and so do the kernels ``through`` which it is called: checks have to be
small.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import math
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

from accounting.base.errors import AccountingError

Owner = ModuleType | type
AS_COMPILED = {name: getattr(np, name) for name in ("exp", "expm1", "log", "log1p", "sqrt")}
"""Where Python's functions refuse to overflow, those of compiled kernels return infinity."""
MATH = SimpleNamespace(**{**vars(math), **AS_COMPILED})


@dataclass(frozen=True)
class Fragment:
    """``right``, which occurs once in the source of a function or method, and becomes ``wrong``."""

    owner: Owner
    name: str
    right: str
    wrong: str
    through: tuple[tuple[Owner, str], ...] = ()

    def plant(self, monkeypatch: pytest.MonkeyPatch, *, harmless: bool) -> None:
        """Exchange the fragment; a ``harmless`` one is retyped as it was."""
        wrong = self.right if harmless else self.wrong
        _exchange(monkeypatch, self.owner, self.name, self.right, wrong)
        for owner, name in self.through:
            _exchange(monkeypatch, owner, name, "", "")


@dataclass(frozen=True)
class Mistake:
    """Fragments, one of them as a rule, and the check that must fail if they are wrong."""

    check: Callable[[], None]
    fragments: tuple[Fragment, ...]

    def must_be_noticed(self) -> None:
        """The check passes with the functions retyped as they were, and fails with the mistake."""
        for harmless in (True, False):
            with pytest.MonkeyPatch.context() as monkeypatch:
                for fragment in self.fragments:
                    fragment.plant(monkeypatch, harmless=harmless)
                if harmless:
                    self.check()
                else:
                    with pytest.raises((AssertionError, AccountingError)):
                        self.check()


def mistake(
    check: Callable[[], None],
    owner: Owner,
    name: str,
    right: str,
    wrong: str,
    *through: tuple[Owner, str],
) -> Mistake:
    """One fragment and the check that must fail if it is wrong."""
    return Mistake(check, (Fragment(owner, name, right, wrong, through),))


def _exchange(
    monkeypatch: pytest.MonkeyPatch, owner: Owner, name: str, right: str, wrong: str
) -> None:
    before = vars(owner)[name]
    after = _retyped(before, right, wrong)
    if isinstance(after, cached_property):
        after.__set_name__(owner, name)
    if not isinstance(owner, ModuleType):
        monkeypatch.setattr(owner, name, after)
        return
    for module in list(sys.modules.values()):  # whoever imported it by name has it, too
        if getattr(module, "__dict__", {}).get(name) is before:
            monkeypatch.setattr(module, name, after)


def _retyped(before: Any, right: str, wrong: str) -> Any:
    """The function, method, property or kernel with the fragment exchanged, if there is one."""
    function = before
    for inner in ("py_func", "func", "fget", "__func__"):  # what was written with ``def``
        function = getattr(function, inner, function)
    definition = _definition(function, right, wrong)
    flags = __future__.annotations.compiler_flag
    code = compile(definition, f"<{function.__qualname__}>", "exec", flags, dont_inherit=True)
    made: dict[str, Any] = {}
    if isinstance(before, Dispatcher):
        exec(code, {**function.__globals__, "math": MATH}, made)
        return _interpreted(made[function.__name__])
    exec(code, function.__globals__, made)
    decorated = isinstance(before, staticmethod | property | cached_property)
    return type(before)(made[function.__name__]) if decorated else made[function.__name__]


def _definition(function: Callable[..., Any], right: str, wrong: str) -> ast.Module:
    source = textwrap.dedent(inspect.getsource(function))
    count = source.count(right)
    if right and count != 1:
        raise LookupError(f"{right!r} occurs {count} times in {function.__qualname__}, not once")
    tree = ast.parse(source.replace(right, wrong) if right else source)
    (definition,) = tree.body
    if not isinstance(definition, ast.FunctionDef):
        raise TypeError(f"{function.__qualname__} is not written with def")
    definition.decorator_list = []
    return tree


def _interpreted(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that is not compiled: it ignores overflow all the same."""

    @wraps(kernel)
    def run(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return kernel(*arguments)

    return run
