"""The tests of the pages are never left out silently where CI runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from chromium import required_chromium
from places import ROOT


@pytest.fixture
def without_browser(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    monkeypatch.setenv("PATH", str(tmp_path))
    return monkeypatch


@pytest.mark.parametrize("value", ["true", "1"])
def test_without_chromium_a_test_fails_in_ci(
    without_browser: pytest.MonkeyPatch, value: str
) -> None:
    without_browser.setenv("CI", value)
    with pytest.raises(pytest.fail.Exception, match="apt-get install chromium"):
        required_chromium()


@pytest.mark.parametrize("value", [None, "", "false"])
def test_without_chromium_a_test_is_skipped_elsewhere(
    without_browser: pytest.MonkeyPatch, value: str | None
) -> None:
    without_browser.delenv("CI", raising=False)
    if value is not None:
        without_browser.setenv("CI", value)
    with pytest.raises(pytest.skip.Exception, match="apt-get install chromium"):
        required_chromium()


@pytest.mark.parametrize("user", ["0", "1000"])
def test_ci_installs_chromium_where_it_is_missing(tmp_path: Path, user: str) -> None:
    """The beginning of .ci/run, with programs that only write down how they are called."""
    begun, _, _ = (ROOT / ".ci" / "run").read_text(encoding="utf-8").partition("python3 -m venv")
    script = tmp_path / ".ci" / "run"
    script.parent.mkdir()
    script.write_text(begun + 'echo "CI=$CI" >> "$CALLS"\n', encoding="utf-8")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("dirname", "mktemp", "rm", "bash", "env"):
        found = shutil.which(name)
        assert found is not None
        (programs / name).symlink_to(found)
    calls = tmp_path / "calls"
    fakes = {
        "id": f"echo {user}",
        "sudo": 'shift; echo as root >> "$CALLS"; exec "$@"',
        "apt-get": 'echo "apt-get $*" >> "$CALLS"',
    }
    for name, body in fakes.items():
        (programs / name).write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    environment = {**os.environ, "PATH": str(programs), "CALLS": str(calls)}
    environment.pop("CI", None)
    subprocess.run(["bash", str(script)], env=environment, check=True)
    as_root = ["as root"] if user != "0" else []
    expected = ["apt-get update -qq", "apt-get install -y -qq chromium"]
    assert calls.read_text().splitlines() == [
        *(line for call in expected for line in (*as_root, call)),
        "CI=true",
    ]
    (programs / "chromium").symlink_to("bash")
    calls.unlink()
    subprocess.run(["bash", str(script)], env=environment, check=True)
    assert calls.read_text().splitlines() == ["CI=true"]
