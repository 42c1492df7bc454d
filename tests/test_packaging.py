"""What is installed: every file that the packages read is part of them."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatch
from importlib.metadata import metadata
from pathlib import Path

import pytest
from places import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MADE_HERE = {"lock", "state.sqlite"}
"""What filling the package's own table leaves behind."""


def data_files(package: str) -> list[Path]:
    return [
        path
        for path in sorted((ROOT / package).rglob("*"))
        if path.is_file()
        and path.suffix != ".py"
        and "__pycache__" not in path.parts
        and path.name not in MADE_HERE
    ]


@pytest.mark.parametrize("package", ["accounting", "paramsearch"])
def test_every_file_of_a_package_is_installed(package: str) -> None:
    found = data_files(package)
    assert found
    listed = PROJECT["tool"]["setuptools"]["package-data"][package]
    for path in found:
        inside = path.relative_to(ROOT / package)
        # in a pattern of setuptools, * stands for a part of one name
        matches = [
            pattern
            for pattern in listed
            if len(Path(pattern).parts) == len(inside.parts) and fnmatch(str(inside), pattern)
        ]
        assert matches, f"{inside} is in no pattern of package-data"


def test_every_pattern_stands_for_a_file() -> None:
    for package, patterns in PROJECT["tool"]["setuptools"]["package-data"].items():
        for pattern in patterns:
            assert list((ROOT / package).glob(pattern)), f"{package}: {pattern}"


def test_the_distribution_says_what_it_is() -> None:
    about = metadata("paramsearch")
    assert about["Version"] == PROJECT["project"]["version"]
    assert about["Requires-Python"] == ">=3.11"
    for name in ("keywords", "classifiers", "authors", "license", "readme"):
        assert PROJECT["project"][name]
