"""What several test files share."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import Chromium, required_chromium
from filled import grid_file
from program import run


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small grid, filled by the command."""
    place = tmp_path_factory.mktemp("table")
    done = run("table", grid_file(place), "-o", place / "t", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["done"] == 12
    return place / "t"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    started = Chromium(required_chromium(), tmp_path_factory.mktemp("profile"))
    yield started
    started.close()
