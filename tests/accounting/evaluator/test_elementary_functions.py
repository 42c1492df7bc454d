"""The accuracy of elementary functions is measured before the first proof of a process."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from accounting import (
    Configuration,
    ExactCentral,
    ExactNoise,
    Mechanism,
    NegativeBinomial,
    Protocol,
    Question,
    prove,
)
from accounting.base.balls import precision
from accounting.base.errors import InexactArithmetic
from accounting.evaluator import elementary_functions
from accounting.evaluator.compiled import elementary_kernels

OFF = 1 + 12 * 2.0**-53
"""Factor of a value that is wrong by 12 units of 2^-53 or hardly less."""


@pytest.fixture
def _new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was measured yet, and nothing is kept."""
    monkeypatch.setattr(elementary_functions, "_passed", False)
    monkeypatch.setattr(elementary_functions, "_mark", lambda: None)


def test_the_functions_of_this_machine_pass() -> None:
    elementary_functions.measure()


@pytest.mark.parametrize("name", elementary_kernels.NAMES)
@pytest.mark.parametrize("scalar", [False, True])
def test_an_inexact_function_of_numba_is_found(
    name: str, scalar: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At one argument, in a vector or alone."""
    right, row = elementary_kernels.elementary_values, elementary_kernels.NAMES.index(name)

    def wrong(arguments: np.ndarray, out: np.ndarray) -> None:
        right(arguments, out)
        if (out.shape[2] == 1) == scalar:
            out[row].reshape(-1)[777] *= OFF

    monkeypatch.setattr(elementary_kernels, "elementary_values", wrong)
    at = float(elementary_functions._arguments()[name][777])
    with pytest.raises(InexactArithmetic) as caught:
        elementary_functions.measure()
    assert f"{name}({at!r}) of numba is " in str(caught.value)
    assert f"at most {1 if name == 'sqrt' else 8}" in str(caught.value)


@pytest.mark.parametrize("name", ["exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "sinh"])
@pytest.mark.parametrize(("module", "source"), [(np, "numpy"), (math, "the C library")])
def test_an_inexact_function_of_a_library_is_found(
    name: str, module: object, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, at = getattr(module, name), float(elementary_functions._arguments()[name][100])
    with precision(128):  # the truth is computed before anything is wrong
        truth = elementary_functions._truth(name, np.array([at]))[0][0]
    assert abs(float(right(at)) - truth) <= 8 * 2.0**-53 * abs(truth)

    def wrong(x: np.ndarray | float) -> np.ndarray | float:
        return np.where(x == at, right(x) * OFF, right(x)) if source == "numpy" else right(x) * OFF

    monkeypatch.setattr(module, name, wrong)
    with pytest.raises(InexactArithmetic, match=rf"{name}\(.*of {source}.*at most"):
        elementary_functions.measure()


@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0])
def test_what_is_no_number_is_found(value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    right = np.exp
    monkeypatch.setattr(np, "exp", lambda x: np.where(x == right(0.0), value, right(x)))
    points = {**elementary_functions._arguments(), "exp": np.array([1.0, 2.0])}
    monkeypatch.setattr(elementary_functions, "_arguments", lambda: points)
    with pytest.raises(InexactArithmetic, match=r"exp\(1.0\) of numpy"):
        elementary_functions.measure()


@pytest.mark.usefixtures("_new_process")
def test_no_bound_of_an_inexact_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast evaluators refuse, every time; balls need no elementary function of the machine."""

    def fail() -> None:
        raise InexactArithmetic("exp(1.0) of numba is wrong")

    monkeypatch.setattr(elementary_functions, "measure", fail)
    unit = NegativeBinomial(12.0, 0.96)
    protocol = Protocol(Configuration.of(1, [((-1, 1), unit)], eps_central=0.9))
    for _ in range(2):
        with pytest.raises(InexactArithmetic):
            protocol.delta(1.0)
    noise = ExactNoise(p=Fraction(96, 100), r=Fraction(12))
    mechanism = Mechanism(1, {(-1, 1): (noise,)}, ExactCentral(step=Fraction(9, 10)))
    with pytest.raises(InexactArithmetic):
        prove(mechanism, Question(eps=1.0), tier="fast")
    assert prove(mechanism, Question(eps=1.0), tier="ball").enclosure.upper < 1e-5


def test_once_for_a_process_and_once_for_a_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measured = []

    def begin(mark: Path | None) -> None:
        """As a new process would."""
        monkeypatch.setattr(elementary_functions, "_passed", False)
        monkeypatch.setattr(elementary_functions, "_mark", lambda: mark)

    monkeypatch.setattr(elementary_functions, "measure", lambda: measured.append(1))
    mark = tmp_path / "passed"
    for made in (None, mark, mark, tmp_path / "no" / "such" / "folder"):
        begin(made)
        for _ in range(3):
            elementary_functions.check_elementary_functions()
    assert len(measured) == 3  # all but the third process, which finds the mark of the second
    assert mark.exists()


def test_a_failure_leaves_no_mark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail() -> None:
        raise InexactArithmetic("exp(1.0) of numba is wrong")

    monkeypatch.setattr(elementary_functions, "_passed", False)
    monkeypatch.setattr(elementary_functions, "_mark", lambda: tmp_path / "passed")
    monkeypatch.setattr(elementary_functions, "measure", fail)
    with pytest.raises(InexactArithmetic):
        elementary_functions.check_elementary_functions()
    assert not (tmp_path / "passed").exists()


@pytest.mark.usefixtures("_new_process")
def test_threads_at_once_measure_once(monkeypatch: pytest.MonkeyPatch) -> None:
    measured, start = [], threading.Barrier(4)

    def measure() -> None:
        measured.append(1)
        threading.Event().wait(0.05)

    def check() -> None:
        start.wait()
        elementary_functions.check_elementary_functions()

    monkeypatch.setattr(elementary_functions, "measure", measure)
    with ThreadPoolExecutor(4) as pool:
        for job in [pool.submit(check) for _ in range(4)]:
            job.result()
    assert len(measured) == 1


def test_the_mark_lies_beside_the_code_of_the_kernels_and_names_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mark = elementary_functions._mark()
    assert mark is not None
    elementary_functions._functions()  # compiles, if nothing is kept yet
    assert list(mark.parent.glob("elementary_kernels*.nbi"))
    monkeypatch.setattr(np, "__version__", "0.0")
    assert elementary_functions._mark() != mark


def test_imports_and_clients_measure_nothing() -> None:
    """Only a proof does."""
    code = (
        "import sys, accounting, paramsearch, paramsearch.deploy; "
        "import accounting.evaluator.noise_tables; "
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "accounting.evaluator.elementary_functions" in loaded
    assert not loaded & {"numba", "flint", "accounting.evaluator.compiled.elementary_kernels"}
