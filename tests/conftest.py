"""What several test files share."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import Chromium, required_chromium
from filled import grid_file
from program import run

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # in the background of a script interrupts are ignored, and the programs that tests interrupt
    # would inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
