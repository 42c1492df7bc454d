"""What an audit says beyond its verdict: what holds instead, which noise is weak, what a rejected
file would give, and what it all costs."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import typer
from places import EXAMPLES
from program import run

from accounting import Enclosure, InvalidConfiguration, Proposal
from paramsearch import Audit, Claim, RejectedFile, audit, certify, load, read_source, uncertified
from paramsearch.certification import audit as auditor
from paramsearch.cli.proving.audit_answer import Answer
from paramsearch.cli.tables import audit_table
from paramsearch.filling.worker import AuditJob, run_audit
from paramsearch.parameters.expected_cost import ExpectedCost
from paramsearch.parameters.parameter_file import ParameterFile, digest, dumps, from_json
from paramsearch.parameters.words import atom_in_words
from paramsearch.tables.index import row_of
from paramsearch.tables.lookup import shipped_folder

EXAMPLE = EXAMPLES / "sum_to_2.json"
SMALL = json.loads(EXAMPLE.read_text())


def changed(data: dict[str, Any], *path: str | int, to: Any) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(data))
    inner: Any = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = to
    return copy


@pytest.fixture(scope="module")
def sealed() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(dumps(certify(uncertified(Proposal.of(SMALL)))))
    return found


def with_weak_atom(index: int, cut: float) -> Proposal:
    """A file of the table as a configuration, with only a part of the noise on one atom."""
    file = load(shipped_folder() / "files" / "5-1-1e-06-0.9.json")
    atoms = [
        {"atom": list(a.atom), "r": a.r / (cut if i == index else 1), "p": float(Fraction(a.p))}
        for i, a in enumerate(file.atoms)
    ]
    data = {"max_value": 5, "eps": 1.0, "delta": 1e-6, "n": 1000, "atoms": atoms}
    return Proposal.of({**data, "eps_central": file.central.eps_central})


def test_no_eps_holds_where_messages_are_impossible_too_often() -> None:
    found = audit(with_weak_atom(1, 5))
    assert found.verdict == "violated"
    assert found.limit is not None
    assert 1e-6 < found.limit.lower <= found.limit.upper < 1e-2
    assert found.satisfied_eps is None
    assert found.searched
    for eps in (2.0, 40.0):  # a theorem about every eps
        claim = Claim.of(with_weak_atom(1, 5), eps=eps)
        assert audit(with_weak_atom(1, 5), claim, explain=False).verdict == "violated"


@pytest.mark.parametrize("index", [1, 3])
def test_the_weak_atom_is_named(index: int) -> None:
    proposal = with_weak_atom(index, 5)
    weak = audit(proposal).weak_noise
    assert weak is not None
    assert weak.atom == proposal.atoms[index].elements
    assert 3 < weak.factor < 7
    assert 0 < weak.share < 0.05
    assert weak.enough  # the rest of the noise is what the table has
    more = [
        {"atom": list(s), "r": law.r * (1.05 * weak.factor if s == weak.atom else 1), "p": law.p}
        for s, law in proposal.atoms
    ]
    data = {"max_value": 5, "eps": 1.0, "delta": 1e-6, "eps_central": proposal.eps_central}
    assert audit(Proposal.of({**data, "atoms": more}), tier="fast").verdict == "certified"


def test_noise_that_is_missing_everywhere_is_said(tmp_path: Path) -> None:
    little = [{**entry, "r": 0.5, "p": 0.5} for entry in SMALL["atoms"]]
    path = tmp_path / "little.json"
    path.write_text(json.dumps({**SMALL, "atoms": little}))
    done = run("audit", path)
    assert done.returncode == 1
    assert "weak noise" in done.stdout
    assert "times as much needed for the worst change (an estimate); other changes need" in (
        done.stdout
    )
    assert "no eps holds at delta = 1e-06: as eps grows without bound" in done.stdout
    assert "messages that the other input cannot produce" in done.stdout


@pytest.mark.parametrize("index", [0, 1])
def test_an_atom_that_is_never_sent_is_named(tmp_path: Path, index: int) -> None:
    atoms = [{**entry, "r": 0.0} if i == index else entry for i, entry in enumerate(SMALL["atoms"])]
    path = tmp_path / "silent.json"
    path.write_text(json.dumps({**SMALL, "atoms": atoms}))
    assert "no noise" not in run("audit", EXAMPLE, "--delta", "1e-9").stdout
    told = run("audit", path)
    assert told.returncode == 1
    named = atom_in_words(tuple(atoms[index]["atom"]))
    assert re.search(rf"^no noise +{re.escape(named)}$", told.stdout, re.MULTILINE), told.stdout
    answer = json.loads(run("audit", path, "--verdict-only", "--json").stdout)
    assert answer["atoms_without_noise"] == [atoms[index]["atom"]]


def test_the_search_is_shown_and_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    proposal = Proposal.of({**SMALL, "delta": 1e-8})
    said: list[str] = []
    assert audit(proposal, progress=said.append).satisfied_eps is not None
    assert any("looking for the eps that does hold" in text for text in said)
    assert any("looking for the weak noise" in text for text in said)

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(auditor, "satisfied_eps", never)
    monkeypatch.setattr(auditor, "weak_noise", never)
    found = audit(proposal, explain=False)
    assert (found.verdict, found.satisfied_eps, found.limit) == ("violated", None, None)


def test_the_search_ends_without_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a minute, or the time of the proof; what it calls learns of that deadline."""
    monkeypatch.setattr(auditor, "_SEARCH_SECONDS", 1e-9)
    clock = [0.0]
    monkeypatch.setattr(auditor.time, "monotonic", lambda: clock[0])

    def endless(*_: Any, progress: Any, **__: Any) -> None:
        for _ in range(1000):
            clock[0] += 10.0
            progress("another eps")

    monkeypatch.setattr(auditor, "satisfied_eps", endless)
    with pytest.raises(ValueError, match="budget"):  # the real search turns this into None
        audit(Proposal.of({**SMALL, "delta": 1e-8}))
    assert clock[0] < 100


def test_the_search_may_use_all_of_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Was: cut short after a minute, or three times the proof."""
    clock = [0.0]
    monkeypatch.setattr(auditor.time, "monotonic", lambda: clock[0])

    def slow(*_: Any, progress: Any, **__: Any) -> Enclosure:
        clock[0] += 900.0
        progress("another eps")
        return Enclosure(1.0, 1.1)

    monkeypatch.setattr(auditor, "satisfied_eps", slow)
    found = audit(Proposal.of({**SMALL, "delta": 1e-8}), budget=1000.0)
    assert found.satisfied_eps == Enclosure(1.0, 1.1)
    assert found.searched
    assert found.seconds == 900


def said_instead(found: Audit, document: Proposal) -> str:
    facts = Answer(found=found, document=document, file_sha256="0" * 64).for_people()
    return next(fact[1] for fact in facts if fact[0] == "instead")


def test_what_is_said_where_no_eps_is_found() -> None:
    """What decides it: the time, the bounds, or the limit of delta."""
    document = Proposal.of({**SMALL, "delta": 1e-8})
    found = replace(audit(document), satisfied_eps=None, seconds=61.2)
    assert found.searched
    late = replace(found, searched=False)
    told = said_instead(late, document)
    assert (
        told
        == "not searched to the end: out of time after 61 s; --budget 350 gives the search more"
    )
    wide = replace(late, satisfied_eps=Enclosure(1.0, 1.125))
    told = said_instead(wide, document)
    assert told.startswith(
        "eps = 1.125 holds at delta = 1e-08; the smallest one that does is above 1:"
    )
    assert told.endswith("out of time after 61 s; --budget 350 gives the search more")
    below = replace(found, limit=Enclosure(1e-12, 2e-12))
    assert "though a large one does" in said_instead(below, document)
    assert "upper bounds of delta" in said_instead(below, document)
    around = replace(found, limit=Enclosure(1e-9, 1e-7))
    assert "whether one does is not decided" in said_instead(around, document)
    above = replace(found, limit=Enclosure(2e-8, 1e-7))
    assert said_instead(above, document).startswith("no eps holds at delta = 1e-08: as eps grows")


def test_only_the_verdict(tmp_path: Path) -> None:
    done = run("audit", EXAMPLE, "--delta", "1e-8", "--verdict-only")
    assert done.returncode == 1
    assert "instead" not in done.stdout
    assert "weak noise" not in done.stdout
    answer = json.loads(run("audit", EXAMPLE, "--delta", "1e-8", "--verdict-only", "--json").stdout)
    assert answer["satisfied_eps"] is None
    assert answer["satisfied_eps_searched"] is False
    assert answer["weak_noise"] is None


def test_a_configuration_has_the_cost_of_its_file(sealed: dict[str, Any]) -> None:
    """Rounding to rationals changes the noise by less than one part in 10^12."""
    answer = json.loads(run("audit", EXAMPLE, "--json").stdout)
    for part in ("cost", "error"):
        assert set(answer[part]) == set(sealed[part])
        for name, value in sealed[part].items():
            assert answer[part][name] == pytest.approx(value, rel=1e-12)
    lines = dict(line.split(None, 1) for line in run("audit", EXAMPLE).stdout.splitlines())
    assert lines["cost"] == (
        "3,343.5 noise messages, 1.03344 messages and 2.06687 bits per user (n = 100,000)"
    )
    assert lines["error"] == "RMSE 3.11634 of the sum, 1.113 times the central one at eps = 1"


def test_a_configuration_without_users_has_no_cost(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({key: value for key, value in SMALL.items() if key != "n"}))
    answer = json.loads(run("audit", path, "--json").stdout)
    assert answer["verdict"] == "certified"
    assert answer["cost"] is None
    assert answer["error"] is None


@pytest.mark.parametrize("dimension", [1, 7])
def test_symbols_outside_the_range_are_counted(dimension: int) -> None:
    atoms = [*SMALL["atoms"], {"atom": [-4, 2, 2], "r": 5.0, "p": 0.5}]
    proposal = Proposal.of({**SMALL, "atoms": atoms, "dimension": dimension, "eps_central": 0.4})
    file = uncertified(proposal)
    found = ExpectedCost.of(proposal, Claim.of(proposal))
    assert found is not None
    assert found.cost.bits_per_message == file.cost.bits_per_message
    assert found.cost.noise_messages == pytest.approx(file.cost.noise_messages)
    assert found.error.rmse_over_central == pytest.approx(file.error.rmse_over_central)


@pytest.mark.slow
def test_a_changed_file_is_rejected_with_what_its_noise_gives(
    sealed: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "changed.json"
    weaker = changed(sealed, "atoms", 0, "rate", to="30/1")
    cheaper = changed(sealed, "cost", "noise_messages", to=1.0)
    resealed = changed(cheaper, "sha256", to=digest(cheaper))
    for data, noise in ((weaker, "violated"), (cheaper, "certified"), (resealed, "certified")):
        path.write_text(json.dumps(data))
        done = run("audit", path, "--json")
        assert (done.returncode, done.stderr) == (2, "")
        answer = json.loads(done.stdout)
        assert (answer["verdict"], answer["noise_verdict"]) == ("rejected", noise)
        assert (answer["delta_lower"] > 1e-6) == (noise == "violated")
        assert (answer["delta_upper"] <= 1e-6) == (noise == "certified")
        assert answer["cost"]["noise_messages"] > 1000  # of the noise, whatever the file says
        assert answer["sha256"] is None
        assert answer["file_sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        words = run("audit", path)
        assert words.returncode == 2
        assert words.stdout.splitlines()[0].split() == ["verdict", "rejected"]
        assert "by itself it" in words.stdout


def test_a_rejected_file_whose_noise_cannot_be_read(sealed: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "changed.json"
    for data in (
        changed(sealed, "atoms", 0, "rate", to="-1/2"),
        changed(sealed, "problem", to=7),
        changed(sealed, "central", "p", to="3/2"),
        changed(sealed, "atoms", to=[]),
    ):
        path.write_text(json.dumps(data))
        done = run("audit", path, "--json", "--report", tmp_path / "report.html")
        assert done.returncode == 2
        answer = json.loads(done.stdout)
        assert (answer["verdict"], answer["noise_verdict"]) == ("rejected", None)
        assert (answer["delta_lower"], answer["delta_upper"]) == (0.0, 1.0)
        assert "no report" in done.stderr
        assert not (tmp_path / "report.html").exists()
        document = read_source(path).document
        assert isinstance(document, RejectedFile)
        with pytest.raises(InvalidConfiguration):
            audit(document)


def test_the_verdict_on_a_rejected_file_is_no_certificate(sealed: dict[str, Any]) -> None:
    data = changed(sealed, "error", "rmse", to=1e-3)
    file = from_json({**data, "sha256": digest(data)}, source="it")
    found = audit(file)
    assert (found.verdict, found.noise_verdict) == ("rejected", "certified")
    assert "error.rmse = 0.001" in found.reason
    assert str(found).startswith("rejected: ")


def test_what_is_no_parameter_file_stays_an_error(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    for text in ('{"format": "correlated-noise-parameters/99"}', '{"format": 7}', "{", "[]"):
        path.write_text(text)
        done = run("audit", path, "--json")
        assert done.returncode == 2
        assert "failure" in json.loads(done.stdout)
        with pytest.raises(InvalidConfiguration):
            read_source(path)


def test_a_rejected_file_has_no_good_signature(sealed: dict[str, Any], tmp_path: Path) -> None:
    path, key = tmp_path / "file.json", tmp_path / "key.pem"
    path.write_text(json.dumps(sealed))
    assert run("sign", path, "--key", key, "--create-key").returncode == 0
    path.write_text(json.dumps(changed(sealed, "problem", "n", to=5)))
    done = run("audit", path, "--public-key", f"{key}.pub", "--json")
    assert done.returncode == 2
    answer = json.loads(done.stdout)
    assert answer["verdict"] == "rejected"
    assert answer["signature"] == "not checked: the file is rejected"


def test_the_hash_of_the_bytes(sealed: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text(json.dumps(sealed, indent=7))
    answer = json.loads(run("audit", path, "--json").stdout)
    assert answer["sha256"] == sealed["sha256"]
    assert answer["file_sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    told = run("audit", path).stdout
    assert f"sha256 {answer['file_sha256']} of the file as it was read" in told
    assert f"{answer['sha256']} of its content, which clients show" in told
    answer = json.loads(run("audit", EXAMPLE, "--json").stdout)
    assert answer["sha256"] is None
    assert answer["file_sha256"] == hashlib.sha256(EXAMPLE.read_bytes()).hexdigest()


def test_what_a_rejected_file_makes_is_a_file_without_a_certificate(
    sealed: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "file.json"
    path.write_text(json.dumps(changed(sealed, "provenance", "tool", to="another")))
    document = read_source(path).document
    assert isinstance(document, RejectedFile)
    assert isinstance(document.remade, ParameterFile)
    assert document.remade.certificate is None
    assert document.remade.atoms == from_json(sealed, source="it").atoms


def test_a_table_does_not_take_a_rejected_file_for_a_good_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "files/5-1-1e-06-0.9.json"
    data = changed(json.loads((shipped_folder() / name).read_text()), "error", "mse", to=1.0)
    forged = from_json({**data, "sha256": digest(data)}, source="it")
    row = row_of(forged, name=name)
    assert row is not None
    result = run_audit(AuditJob(row, dumps(forged), "fast"))
    assert result.verdict == "rejected"
    assert "error.mse = 1.0" in result.because
    monkeypatch.setattr(audit_table, "_verdicts", lambda *_: iter([result]))
    with pytest.raises(typer.Exit) as ended:
        audit_table.audit_table(as_json=True)
    assert ended.value.exit_code == 2
    assert json.loads(capsys.readouterr().out)["verdicts"] == {"rejected": 1}
