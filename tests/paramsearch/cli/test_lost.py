"""``audit --lost``: what holds if users with noise are lost, in words, in JSON, on the page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deployed import SUM, file
from pages import words
from program import run

from accounting.model.configuration import Proposal
from paramsearch import save
from paramsearch.certification.audit import Audit, audit
from paramsearch.certification.certify import certify
from paramsearch.cli.proving.audit_answer import Answer
from paramsearch.parameters.assembly import reassembled, uncertified
from paramsearch.parameters.claim import Claim
from paramsearch.parameters.documents import RejectedFile
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.tables.lookup import shipped_folder

ONE = shipped_folder() / "files" / "1-1-1e-06-0.9.json"
FIVE = shipped_folder() / "files" / "5-1-1e-06-0.9.json"
NOISY = {**SUM, "delta": 0.05, "n": 1000, "eps": 1.8}
"""Far less is proved of it than it could claim."""


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lost") / "noisy.json"
    atoms = [{**entry, "r": 20.0} for entry in SUM["atoms"]]  # type: ignore[dict-item]
    save(certify(uncertified(Proposal.of({**NOISY, "atoms": atoms}))), path)
    return path


def asked(path: Path, *options: object) -> tuple[int, dict[str, Any], dict[str, str]]:
    """The exit code, the answer for machines, and that for people."""
    machines = run("audit", path, *options, "--json")
    people = run("audit", path, *options)
    assert machines.returncode == people.returncode
    lines = dict(line.split("  ", 1) for line in people.stdout.splitlines())
    return (
        machines.returncode,
        json.loads(machines.stdout),
        {k: v.strip() for k, v in lines.items()},
    )


def test_a_claim_that_meets_losses_is_certified(noisy: Path) -> None:
    code, found, said = asked(noisy, "--lost", "3")
    assert (code, found["verdict"], said["verdict"]) == (0, "certified", "certified")
    lost = found["lost"]
    assert lost["users"] == 3
    assert found["delta_upper"] < lost["delta_upper"] <= found["delta"]
    assert lost["worst_way_delta_lower"] > 0.999
    assert (lost["satisfied_eps"], lost["satisfied_eps_searched"]) == (found["eps"], False)
    shares = [left["fraction"] for left in lost["fractions"]]
    assert 0 < shares[-1] < shares[0] < 1
    assert "3 users with noise lost whatever they drew" in said["claim"]
    assert said["losses"].startswith("3 users with noise lost whatever they drew: delta is at most")
    assert "upper bounds only" in said["losses"]
    assert "nothing holds" in said["worst way"]
    assert "at every eps" in said["worst way"]
    assert found["certificate_confirmed"], "the claim without losses is the file's own"


def test_a_claim_that_losses_leave_open_is_undecided() -> None:
    code, found, said = asked(ONE, "--lost", "1", "--verdict-only")
    assert (code, found["verdict"]) == (3, "undecided")
    assert 6e-6 < found["lost"]["delta_upper"] < 2e-4
    assert found["delta_upper"] <= 1e-6
    assert found["lost"]["satisfied_eps"] is None
    assert not found["lost"]["satisfied_eps_searched"]
    assert "if nobody is lost, but the upper bound with 1 user with noise lost" in said["because"]
    assert "no lower bound is known" in said["because"]
    assert "holds" not in said["losses"], "--verdict-only looks for nothing"


@pytest.mark.slow
def test_the_eps_that_holds_with_losses() -> None:
    code, found, said = asked(FIVE, "--lost", "1")
    assert code == 3
    eps = found["lost"]["satisfied_eps"]
    assert 1 < eps < 1.03
    assert f"eps = {eps:.3f}"[:9] in said["losses"]
    again, _, _ = asked(FIVE, "--lost", "1", "--eps", str(eps))
    assert again == 0


def test_a_violation_stays_one(noisy: Path) -> None:
    code, found, said = asked(noisy, "--lost", "3", "--delta", "1e-9", "--verdict-only")
    assert (code, found["verdict"]) == (1, "violated")
    assert found["lost"]["delta_upper"] > found["delta_lower"] > 1e-9
    assert "losses" in said
    assert "worst way" in said


def test_all_of_them() -> None:
    """More users than have noise: nothing is proved, and that is found at once."""
    code, found, said = asked(ONE, "--lost", "1e6")
    assert (code, found["lost"]["delta_upper"]) == (3, 1.0)
    assert found["lost"]["satisfied_eps"] is None
    assert found["lost"]["satisfied_eps_searched"]
    assert "nothing is proved at eps = 1, and no eps was found" in said["losses"]


def test_without_losses_nothing_is_said_of_them(noisy: Path) -> None:
    code, found, said = asked(noisy)
    assert (code, found["lost"]) == (0, None)
    assert not {"losses", "worst way"} & said.keys()


@pytest.mark.parametrize(
    ("lost", "cause"),
    [
        ("0", "--lost = 0 must be at least 1"),
        ("-2", "--lost = -2 must be at least 1"),
        ("1001", "--lost = 1,001 is more than n = 1,000, the number of users"),
        ("1e20", "must be at most"),
        ("1e400", "is not a whole number"),
        ("two", "is not a whole number"),
    ],
)
def test_odd_numbers_are_refused(noisy: Path, lost: str, cause: str) -> None:
    done = run("audit", noisy, "--lost", lost, "--json")
    assert done.returncode == 2
    assert cause in json.loads(done.stdout)["failure"]["message"]


def test_more_than_the_honest_users_cannot_be_lost(noisy: Path) -> None:
    done = run("audit", noisy, "--lost", "501", "--honest", "0.5")
    assert done.returncode == 2
    assert "the 500 of n = 1,000 users who add noise" in done.stderr


def test_a_configuration_needs_its_n(tmp_path: Path) -> None:
    path = tmp_path / "no_n.json"
    path.write_text(json.dumps({key: value for key, value in SUM.items() if key != "n"}))
    done = run("audit", path, "--lost", "2")
    assert done.returncode == 2
    assert "add n to it" in done.stderr
    path.write_text(json.dumps(SUM))
    assert run("audit", path, "--lost", "2", "--verdict-only").returncode in (0, 3)


def about(document: ParameterFile | Proposal, lost: int, **claimed: Any) -> tuple[Audit, str]:
    claim = replace(Claim.of(document, **claimed), lost=lost)
    found = audit(document, claim, explain=False)
    answer = Answer(found=found, document=document, file_sha256="0" * 64)
    return found, "\n".join(f"{fact[0]}: {fact[1]}" for fact in answer.for_people())


@pytest.mark.parametrize(
    "options",
    [{"tier": "ball"}, {"tier": "fast"}, {"tier": "reference"}, {"tier": "mixed"}, {"budget": 60}],
)
def test_every_tier_answers(options: dict[str, Any]) -> None:
    small = Proposal.of(
        {
            "max_value": 1,
            "eps": 2.0,
            "delta": 0.05,
            "n": 500,
            "eps_central": 1.0,
            "atoms": [{"atom": [-1, 1], "r": 12.0, "p": 0.8}],
        }
    )
    found = audit(small, replace(Claim.of(small), lost=2), explain=False, **options)
    assert found.lost is not None
    assert found.verdict == "certified"
    assert 1e-6 < found.lost.delta_upper <= 0.05


@pytest.mark.parametrize(
    ("made", "claimed"),
    [
        (file(3), {}),
        (file(bursts=True), {}),
        (file(honest=0.9), {}),
        (file(), {"adjacency": "zero-out"}),
        (file(), {"releases": 2, "eps": 4.0}),
        (file(), {"releases": 2, "same_change": True, "eps": 4.0}),
    ],
)
def test_vectors_bursts_adjacencies_and_releases(
    made: ParameterFile, claimed: dict[str, Any]
) -> None:
    found, said = about(made, 1, **claimed)
    assert found.lost is not None
    assert found.proof is not None
    assert found.proof.enclosure.lower < found.lost.delta_upper <= 1
    assert "1 user with noise lost whatever they drew" in said


def test_a_reserve_for_dropouts_is_one_for_losses() -> None:
    """Where all users add the noise of which nine tenths suffice."""
    atoms = [{**entry, "r": 20.0} for entry in SUM["atoms"]]  # type: ignore[dict-item]
    made = certify(uncertified(Proposal.of({**NOISY, "atoms": atoms}), honest=0.8))
    all_users, _ = about(made, 5, honest=1.0)
    some, _ = about(made, 5)
    assert all_users.lost is not None
    assert some.lost is not None
    assert all_users.lost.delta_upper < some.lost.delta_upper
    assert all_users.lost.noise_events > some.lost.noise_events > 0


def test_a_rejected_file_stays_rejected() -> None:
    made = reassembled(file(), None)
    found = audit(
        RejectedFile("it was changed", made), replace(Claim.of(made), lost=1), explain=False
    )
    assert (found.verdict, found.lost is not None) == ("rejected", True)


def test_a_budget_that_is_used_up() -> None:
    done = run("audit", ONE, "--lost", "3", "--budget", "0.001", "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["verdict"]) == (3, "undecided")
    assert answer["lost"]["delta_upper"] == 1
    assert not answer["lost"]["satisfied_eps_searched"]


def test_the_report(noisy: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert run("audit", noisy, "--lost", "3", "--report", page).returncode == 0
    text = words(page.read_text())
    for part in (
        "If users with noise are lost",
        "3 users with noise in every release, whatever they drew",
        "nothing holds: with a single lost user δ is at least 0.999",
        "the file says nobody with noise is lost",
        "but for 3 users with noise in every release, lost whatever they drew",
    ):
        assert part in text, part
    run("audit", noisy, "--report", page)
    assert "If users with noise are lost" not in words(page.read_text())


def test_events_and_the_largest_upload_are_beside_the_cost(tmp_path: Path) -> None:
    """Wherever people read the cost, and for machines in every answer about a file."""
    made, page = tmp_path / "made.json", tmp_path / "page.html"
    small = ("--n", "1e5", "--eps", "1", "--delta", "1e-6", "--max-value", "1")
    told = "noise events in all; with probability 0.9999 no upload has more than"
    assert told in run("lookup", *small, "-o", made).stdout
    assert told in run("generate", *small, "--tries", "1", "-o", made).stdout
    assert told in run("rescale", made, "--n", "2e5", "-o", made).stdout
    assert told in run("audit", made, "--report", page).stdout
    report = words(page.read_text())
    assert "Noise events" in report
    assert "Largest upload" in report
    audited = json.loads(run("audit", made, "--json").stdout)
    looked_up = json.loads(run("lookup", *small, "--json").stdout)
    for answer in (audited, looked_up):
        assert 40 < answer["noise_events"] < 60
        largest = answer["largest_upload"]
        assert largest["probability"] == 1e-4
        assert 250 < largest["messages"] < 450
        assert 0.4 < largest["share_of_noise"] < 0.7
    profile = json.loads(run("profile", made, "--json").stdout)
    assert profile["noise_events"] == pytest.approx(audited["noise_events"], rel=1e-9)
    assert "events; " in run("profile", made).stdout


def test_events_of_every_coordinate_and_release() -> None:
    one, many = file(), file(3)
    found = [Answer(found=audit(f), document=f, file_sha256="0" * 64) for f in (one, many)]
    events = [answer.for_machines()["noise_events"] for answer in found]
    assert events[1] == pytest.approx(3 * events[0], rel=1e-9)


def test_an_upload_of_any_size_is_not_described(tmp_path: Path) -> None:
    """A logarithmic number with so large a p has no bound below 2^53."""
    path = tmp_path / "huge.json"
    atoms = [{"atom": [-1, 1], "r": 20.0, "p": 1 - 2**-53}]
    path.write_text(json.dumps({**SUM, "max_value": 1, "atoms": atoms}))
    done = run("audit", path, "--tier", "light", "--budget", "5", "--json")
    assert json.loads(done.stdout).get("largest_upload") is None
    assert done.returncode in (0, 2, 3)
