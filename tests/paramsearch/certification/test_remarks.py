"""What is said where an estimate tells nothing, and where users send many messages."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from pages import words
from places import EXAMPLES, SHIPPED
from program import run

from accounting.model.configuration import Proposal
from paramsearch import Request, audit, generate, load, save
from paramsearch.certification.remarks import cost_remark, warnings_about
from paramsearch.parameters.assembly import rescaled
from paramsearch.parameters.expected_cost import ExpectedCost
from paramsearch.parameters.parameter_file import ParameterFile, digest, from_json
from paramsearch.report import page as report
from paramsearch.report.sections import AuditedFile

FIVE = SHIPPED / "5-1-1e-06-0.9.json"
SMALL = json.loads((EXAMPLES / "sum_to_2.json").read_text())
WARNED = (
    "the RMSE of the sum, 7.84615, is 1.569 times the largest sum, 5 (n = 1, values up to 5): the "
    "middle, guessed without any message, is never off by more than 2.5"
)


@pytest.mark.parametrize(("n", "warned"), [(1, True), (3, True), (4, False), (1000, False)])
def test_an_error_that_a_guess_beats(n: int, warned: bool) -> None:
    """Sums of n values up to 5 are within 2.5 n of the middle; the RMSE is 7.846."""
    file = rescaled(load(FIVE), n)
    assert (file.error.rmse >= 2.5 * n) == warned
    assert [text.startswith("the RMSE of the sum, 7.84615") for text in warnings_about(file)] == (
        [True] * warned
    )


def test_the_error_of_a_configuration_and_of_reals() -> None:
    proposal = Proposal.of({**SMALL, "n": 2})  # RMSE 3.116 of a sum up to 4
    assert "0.7791 times the largest sum, 4 (n = 2, values up to 2)" in warnings_about(proposal)[0]
    assert warnings_about(Proposal.of({**SMALL, "n": 20})) == []
    assert warnings_about(Proposal.of({k: v for k, v in SMALL.items() if k != "n"})) == []
    content = json.loads(FIVE.read_text())
    content["provenance"]["settings"] |= {"low": -1.0, "high": 1.0}
    file = load_changed(content)
    few, many = rescaled(file, 1), rescaled(file, 100)
    assert (
        "times the range of all sums, 2 (n = 1, values in an interval of length 2)"
        in (warnings_about(few)[0])
    )
    assert warnings_about(many) == []


def load_changed(content: dict[str, object]) -> ParameterFile:
    return from_json({**content, "sha256": digest(content)}, source="it")


def test_every_answer_warns_of_an_error_that_a_guess_beats(tmp_path: Path) -> None:
    """Was: certified without a word."""
    path = tmp_path / "one.json"
    made = run("rescale", FIVE, "--n", 1, "-o", path)
    assert (made.returncode, made.stderr) == (0, "")
    assert f"\nwarning: {WARNED}\n" in made.stdout
    audited = run("audit", path)
    assert audited.returncode == 0
    assert ["warning", WARNED] in [line.split(None, 1) for line in audited.stdout.splitlines()]
    assert json.loads(run("audit", path, "--json").stdout)["warnings"] == [WARNED]
    printed = run("certify", path, "--json")
    assert f"warning: {WARNED}\n" in printed.stderr
    asked = ("--n", 1, "--eps", 1, "--delta", "1e-6", "--max-value", 5)
    assert json.loads(run("lookup", *asked, "--json").stdout)["warnings"] == [WARNED]
    assert "warning" in run("lookup", *asked).stdout
    searched = run("generate", *asked, "--tries", 1, "-o", path)
    assert f"warning    {WARNED}\n" in searched.stdout
    source = AuditedFile(source="x", sha256="0" * 64, audited_on=date(2021, 7, 18))
    page = report.render(audit(load(path)), load(path), source, curve=None, pairs=None)
    assert "Warning: The RMSE of the sum, 7.84615, is 1.569 times the largest sum" in words(page)


def test_many_messages_draw_a_remark(tmp_path: Path) -> None:
    """The number of users that would send two messages each is exact."""
    file = load(FIVE)
    n = math.ceil(file.cost.noise_messages)
    assert cost_remark(ExpectedCost.of_file(rescaled(file, n))) is None
    few = rescaled(file, n - 1)
    remark = cost_remark(ExpectedCost.of_file(few))
    assert remark is not None
    assert f"shared among {n - 1:,} users, and {n:,} would send 2 each" in remark
    assert remark.endswith("; a larger error takes less noise")
    path = tmp_path / "few.json"
    save(few, path)
    assert json.loads(run("audit", path, "--json").stdout)["remark"] == remark
    assert ["remark", remark] in [
        line.split(None, 1) for line in run("audit", path).stdout.splitlines()
    ]
    assert json.loads(run("audit", FIVE, "--json").stdout)["remark"] is None
    assert f"remark: {remark}" in run("rescale", path, "--n", n - 1, "-o", path).stdout


def test_a_smaller_central_fraction_is_priced(tmp_path: Path) -> None:
    """Was: 139 messages per user without a word.  The prediction is that of a search."""
    asked = Request(n=20_000, eps=1.0, delta=1e-6, max_value=1, dimension=5000, tries=1)
    made = generate(asked)
    more = made.more_error
    assert made.file.cost.messages_per_user > 100
    assert more is not None
    there = generate(replace(asked, central_fraction=more.central_fraction))
    assert there.more_error is None  # it is no larger than that already
    assert more.messages_per_user == pytest.approx(there.file.cost.messages_per_user, rel=0.02)
    assert more.rmse == pytest.approx(there.file.error.rmse, rel=1e-6)
    assert generate(replace(asked, n=10_000_000)).more_error is None
    done = run(
        *("generate-sparse", "--n", 20_000, "--eps", 1, "--delta", "1e-6", "--dimension", 5000),
        *("--tries", 1, "-o", tmp_path / "file.json"),
    )
    assert "a larger error or a smaller dimension takes less noise\n" in done.stdout
    assert "\ncheaper    --central-fraction 0.5 would cost about 32." in done.stdout


def test_a_smaller_central_fraction_is_priced_for_numbers() -> None:
    asked = Request(n=1000, eps=1.0, delta=1e-6, max_value=4, tries=1)
    more = generate(asked).more_error
    assert more is not None
    there = generate(replace(asked, central_fraction=0.5)).file
    assert more.messages_per_user == pytest.approx(there.cost.messages_per_user, rel=0.1)
    assert more.rmse == pytest.approx(there.error.rmse, rel=1e-6)
