"""Every example in a docstring runs, and everything public says what it takes and returns."""

from __future__ import annotations

import doctest
import inspect
from importlib import import_module
from typing import Any

import pytest
from test_architecture import modules

FACES = ("accounting", "paramsearch", "paramsearch.deploy")
WITH_EXAMPLES = sorted(
    name for name, path in modules().items() if ">>>" in path.read_text(encoding="utf-8")
)


def public() -> dict[str, Any]:
    """Classes and functions that the packages export."""
    return {
        f"{face}.{name}": getattr(import_module(face), name)
        for face in FACES
        for name in import_module(face).__all__
        if name != "__version__"
    }


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_run(name: str) -> None:
    found = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize("name", public())
def test_what_is_public_is_documented(name: str) -> None:
    thing = public()[name]
    text = inspect.getdoc(thing) or ""
    assert text
    if inspect.isfunction(thing):
        signature = inspect.signature(thing)
        assert not signature.parameters or "Args:" in text
        assert signature.return_annotation in {"None", None} or "Returns:" in text
        for parameter in signature.parameters:
            assert f"{parameter}:" in text, f"{name} does not say what {parameter} is"


def test_the_packages_export_what_they_promise() -> None:
    assert len(public()) >= 40
    for face in FACES:
        room = import_module(face)
        assert list(room.__all__) == sorted(room.__all__)
        assert set(room.__all__) <= set(dir(room))
        with pytest.raises(AttributeError):
            _ = room.nothing_of_this_name
