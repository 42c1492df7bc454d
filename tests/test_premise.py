"""Who is missing must not depend on the noise: said wherever a fraction of users is relied on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from places import ROOT
from program import run

from accounting.model.configuration import Proposal
from accounting.model.mechanism import Mechanism
from accounting.model.problem import Problem
from paramsearch import save
from paramsearch.certification.audit import audit
from paramsearch.certification.certify import certify
from paramsearch.deploy import Analyzer
from paramsearch.deploy.simulate import Simulation
from paramsearch.generation.generate_real import RealRequest
from paramsearch.parameters import honest_fraction, parameter_file
from paramsearch.parameters.assembly import uncertified
from paramsearch.parameters.claim import Claim
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.parameters.problem_section import ProblemSection
from paramsearch.parameters.sections import Certificate
from paramsearch.parameters.words import file_claim_in_words
from paramsearch.report.page import render
from paramsearch.report.sections import AuditedFile

PREMISE = re.compile(r"[Ww]ho is missing (?:must|does) not depend on the noise")
TEXTS = (
    "README.md",
    "accounting/README.md",
    "accounting/composition/dropouts/dropouts.md",
    "accounting/composition/releases.md",
    "accounting/model/laws/bursts.md",
    "accounting/notary/notary.md",
    "paramsearch/cli/README.md",
    "paramsearch/deploy/GUIDE.md",
    "paramsearch/deploy/README.md",
    "paramsearch/deploy/SPECIFICATION.md",
    "paramsearch/deploy/participation.py",
    "paramsearch/deploy/javascript/index.html",
    "paramsearch/deploy/javascript/paramsearch.d.ts",
    "paramsearch/deploy/javascript/paramsearch.js",
    "paramsearch/parameters/parameter_file.schema.json",
)
"""Documents, proofs, clients and the schema."""
DOCUMENTED = (
    Analyzer,
    Certificate,
    Claim,
    Mechanism.thinned,
    ParameterFile,
    Problem,
    ProblemSection,
    RealRequest,
    Simulation,
    honest_fraction,
    parameter_file,
)
"""What has a fraction of the users, or a number of participants, among its parameters."""
ASKING = (
    ("audit", "--honest"),
    ("certify", "--honest"),
    ("compare", "--honest"),
    ("generate", "--honest"),
    ("generate-real", "--honest"),
    ("generate-sparse", "--honest"),
    ("profile", "--honest"),
    ("simulate", "--honest"),
    ("analyze", "--users"),
)
"""Commands with their options for it."""
SMALL = {
    "max_value": 1,
    "eps": 2.0,
    "delta": 0.05,
    "n": 500,
    "eps_central": 1.0,
    "atoms": [{"atom": [-1, 1], "r": 12.0, "p": 0.8}],
}


def says_so(text: str) -> bool:
    """Whatever breaks its lines, or frames them."""
    return PREMISE.search(re.sub(r"[\s*│]+", " ", text)) is not None


@pytest.mark.parametrize("path", TEXTS)
def test_texts(path: str) -> None:
    assert says_so((ROOT / path).read_text(encoding="utf-8"))


@pytest.mark.parametrize("what", DOCUMENTED, ids=lambda what: what.__name__)
def test_docstrings(what: object) -> None:
    assert says_so(what.__doc__ or "")


@pytest.mark.parametrize(("command", "option"), ASKING)
def test_help(command: str, option: str) -> None:
    options = re.split(r"\n│[ *]+(?=--[a-z])", run(command, "--help").stdout)
    (about,) = (text for text in options if text.startswith(f"{option} "))
    assert says_so(about)


def test_every_command_with_such_an_option_is_listed() -> None:
    for path in (ROOT / "paramsearch" / "cli").rglob("*.py"):
        for name in re.findall(r"^    (honest|users): ", path.read_text(encoding="utf-8"), re.M):
            command = path.stem.replace("_", "-")
            if (command, f"--{name}") == ("simulate", "--users"):  # how many there are to be
                continue
            elsewhere = command in ("options", "requirement")  # the latter reads a file
            assert (command, f"--{name}") in ASKING or elsewhere, path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("premise") / "made.json"
    save(certify(uncertified(Proposal.of(SMALL), honest=0.75)), path)
    return path


@pytest.mark.parametrize(
    "command", [("audit",), ("profile",), ("certify", "-o", "again.json")], ids=lambda c: c[0]
)
def test_answers_about_a_fraction(
    made: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made.parent)
    done = run(command[0], made, *command[1:])
    assert (done.returncode, says_so(done.stdout)) == (0, True)


def test_the_other_answers(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made.parent)
    messages = run("randomize", made, "--value", "-", stdin="1\n0\n" * 250).stdout
    assert says_so(run("analyze", made, stdin=messages).stdout)
    assert says_so(run("compose", f"{made}:2", "--delta", "0.3").stdout)
    small = ("--n", "500", "--eps", "2", "--delta", "0.05", "--max-value", "1")
    assert says_so(run("compare", *small, "--honest", "0.75").stdout)


def test_the_report(made: Path) -> None:
    file = parameter_file.load(made)
    found = audit(file)
    about = AuditedFile(source="x", sha256="0" * 64, audited_on=_day())
    page = render(found, file, about, curve=None, pairs=None)
    assert len(PREMISE.findall(re.sub(r"\s+", " ", page))) >= 3  # claim, plain words, glossary
    everybody = certify(uncertified(Proposal.of(SMALL)))
    assert says_so(file_claim_in_words(file))
    assert not says_so(file_claim_in_words(everybody))


def _day() -> object:
    from datetime import date

    return date(2024, 2, 29)
