"""An installation that cannot be written to, by a user without a home: usual in containers."""

from __future__ import annotations

import ctypes
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from places import ROOT

_DROP, _IGNORE_MODES = 24, (1, 2)
"""prctl(PR_CAPBSET_DROP), and CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""
USE = """
from accounting import Configuration, NegativeBinomial, Protocol
noise = [((-1, 1), NegativeBinomial(2.0, 0.5))]
print(Protocol(Configuration.of(1, noise, eps_central=1.0)).delta(1.0).enclosure.upper)
"""


def _like_anybody() -> None:
    """Even root is bound by the modes of files without these capabilities."""
    if os.getuid() == 0:
        for capability in _IGNORE_MODES:
            ctypes.CDLL(None).prctl(_DROP, capability, 0, 0, 0)


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[Path]:
    """A copy that its user can only read."""
    if sys.platform != "linux":
        pytest.skip("needs the capabilities of Linux")
    place = tmp_path / "installed"
    shutil.copytree(ROOT / "accounting", place / "accounting", ignore=lambda *_: ["__pycache__"])
    paths = [place, *place.rglob("*")]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield place
    for path in paths:
        path.chmod(0o755)


def _run(installed: Path, temporary: Path) -> subprocess.CompletedProcess[str]:
    home = {
        "HOME": str(installed / "home"),
        "TMPDIR": str(temporary),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    return subprocess.run(
        [sys.executable, "-c", USE],
        cwd=installed,
        env={
            **kept,
            **home,
            "PYTHONPATH": str(installed),
            "XDG_CACHE_HOME": str(installed / "cache"),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        preexec_fn=_like_anybody,
    )


@pytest.mark.slow
def test_code_is_kept_in_a_folder_of_ones_own(installed: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    temporary.chmod(0o1777)
    done = _run(installed, temporary)
    assert done.returncode == 0, done.stderr
    assert 0.15 < float(done.stdout) < 0.3
    assert done.stderr.startswith("warning: numba's cache folders cannot be written to")
    assert done.stderr.count("\n") == 1
    (folder,) = temporary.glob("paramsearch-kernels-*")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(folder.rglob("*.nbi"))


@pytest.mark.slow
def test_a_folder_of_somebody_else_is_not_used(installed: Path, tmp_path: Path) -> None:
    """What is kept there is run: a folder that others can write to would be their way in."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    temporary.chmod(0o1777)
    trap = temporary / f"paramsearch-kernels-{os.getuid()}"
    trap.mkdir()
    trap.chmod(0o777)
    done = _run(installed, temporary)
    assert done.returncode == 0, done.stderr
    assert "compiled code is not kept" in done.stderr
    assert not list(trap.iterdir())
