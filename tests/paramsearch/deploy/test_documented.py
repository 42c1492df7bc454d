"""What a client loads, and the examples in the docstrings of what it uses."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from documented import run_examples

from paramsearch import deploy

HEAVY = ("numba", "scipy", "matplotlib", "clarabel", "pyarrow", "rich", "typer")
PROOFS = ("evaluator", "estimator", "notary", "proof", "composition")


def test_a_client_loads_no_proof_and_no_compiler() -> None:
    code = "import json, sys, paramsearch.deploy; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    loaded = json.loads(done.stdout)
    assert "paramsearch.deploy.randomizer" in loaded
    unwanted = (*HEAVY, *(f"accounting.{room}" for room in PROOFS), "paramsearch.search")
    assert not [name for name in loaded if f"{name}.".startswith(tuple(f"{x}." for x in unwanted))]


@pytest.mark.parametrize("name", deploy.__all__)
def test_every_public_class_has_an_example_that_runs(name: str) -> None:
    assert run_examples(getattr(deploy, name))
