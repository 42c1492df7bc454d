"""The JavaScript client in Node, for tests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from places import ROOT

SCRIPTS = ROOT / "tests" / "javascript"
VECTORS = ROOT / "paramsearch" / "deploy" / "vectors" / "1"


def required_node() -> str:
    """The path of Node; without it a test is skipped, and the vectors run in Chromium alone."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("Node is not installed")
    return program


def node(folder: Path, *arguments: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run Node; the scripts find the client that ``paramsearch client`` wrote to this folder."""
    (folder / "package.json").write_text('{"type": "module"}')
    return subprocess.run(
        [required_node(), *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, "CLIENT": str(folder / "paramsearch.js"), "VECTORS": str(VECTORS)},
    )


def answer(folder: Path, script: str, question: Any) -> Any:
    """What a script answers, JSON to JSON."""
    done = node(folder, SCRIPTS / script, stdin=json.dumps(question))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
