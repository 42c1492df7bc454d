"""``paramsearch audit``, ``certify``, ``sign`` and ``schema`` as their users meet them."""

from __future__ import annotations

import contextlib
import json
import math
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from places import EXAMPLES
from program import run
from theorem import theorem

from accounting import AccountingError, Protocol
from accounting.base.errors import InvalidParameter
from accounting.model.configuration import Proposal, loads
from accounting.model.question import Question
from paramsearch.certification.audit import audit
from paramsearch.certification.certificate_check import _deviation
from paramsearch.certification.certify import certify
from paramsearch.parameters.assembly import reassembled, uncertified
from paramsearch.parameters.claim import Claim
from paramsearch.parameters.documents import read
from paramsearch.parameters.honest_fraction import claimed_fraction
from paramsearch.parameters.parameter_file import ParameterFile, dumps, from_json, load
from paramsearch.tables.lookup import shipped_folder

EXAMPLE = EXAMPLES / "sum_to_2.json"


@cache
def certified_text() -> str:
    return dumps(certify(uncertified(Proposal.of(json.loads(EXAMPLE.read_text())))))


@pytest.fixture
def certified(tmp_path: Path) -> Path:
    path = tmp_path / "certified.json"
    path.write_text(certified_text())
    return path


def config(tmp_path: Path, **changes: Any) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(EXAMPLE.read_text()), **changes}))
    return path


def test_certify_then_audit_for_machines(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    done = run("certify", EXAMPLE, "-o", target)
    assert (done.returncode, done.stderr) == (0, "")
    assert "certified (1, 1e-06)" in done.stdout
    done = run("audit", target, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert answer["verdict"] == "certified"
    assert answer["eps"] == 1.0
    assert 0 < answer["delta_lower"] <= answer["delta_upper"] <= 1e-6
    assert answer["worst_pair"] == [2, 0]
    assert answer["proof"] == {"ball": 6}
    again = run("certify", target, "--json")
    assert json.loads(again.stdout) == json.loads(target.read_text())


def test_violated_with_its_witness(certified: Path) -> None:
    done = run("audit", certified, "--delta", "1e-8", "--json")
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    assert answer["verdict"] == "violated"
    assert answer["delta_lower"] > 1e-8
    low, high = answer["satisfied_eps"]
    assert 1 < low <= high < 1.1
    held = audit(read(certified), Claim.of(read(certified), eps=high, delta=1e-8))
    assert held.verdict == "certified"
    done = run("audit", certified, "--delta", "1e-8")
    assert done.returncode == 1
    for word in ("violated", "input 2 becomes 0", "instead", "holds at delta = 1e-08"):
        assert word in done.stdout


def test_undecided_at_the_truth(certified: Path) -> None:
    found = audit(read(certified), gap=1e-6).proof
    assert found is not None
    middle = (found.enclosure.lower + found.enclosure.upper) / 2
    done = run("audit", certified, "--delta", repr(middle), "--json")
    assert done.returncode == 3
    assert json.loads(done.stdout)["verdict"] == "undecided"
    done = run("audit", certified, "--budget", "1e-9", "--json")
    assert done.returncode == 3


@pytest.mark.parametrize(
    "tier", ["fast", *(pytest.param(t, marks=pytest.mark.slow) for t in ("ball", "mixed"))]
)
def test_tiers_releases_and_other_points(certified: Path, tier: str) -> None:
    answers = {}
    for options in (("--eps", "1.2"), ("--releases", "2", "--eps", "2.2"), ("--eps", "0.9")):
        done = run("audit", certified, "--tier", tier, "--json", *options)
        answers[options] = json.loads(done.stdout)["verdict"]
        assert done.returncode == {"certified": 0, "violated": 1}[answers[options]]
    assert list(answers.values()) == ["certified", "certified", "violated"]


def test_a_fraction_of_the_users(certified: Path, tmp_path: Path) -> None:
    done = run("audit", certified, "--honest", "0.9", "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["verdict"], answer["honest"]) == (1, "violated", 0.9)
    # less central noise, and less of every atom's: worse than thinning the atoms alone
    fewer = json.loads(EXAMPLE.read_text())
    for entry in fewer["atoms"]:
        entry["r"] *= 0.9
    floor = Protocol(loads(json.dumps(fewer))).delta(1.0).enclosure.lower
    assert answer["delta_upper"] > floor
    target = tmp_path / "robust.json"
    assert run("certify", EXAMPLE, "--honest", "0.9", "-o", target).returncode == 0
    assert run("audit", target).returncode == 0


@pytest.mark.parametrize(
    ("changes", "value"),
    [
        ({"max_value": 3}, 3),
        ({"atoms": [{"atom": [-1, 1], "r": 12.0, "p": 0.985}]}, 2),
        (
            {
                "atoms": [
                    {"atom": [-1, 1], "r": 12.0, "p": 0.985},
                    {"atom": [2, -1, -1], "r": 0, "p": 0.98},
                ]
            },
            2,
        ),
    ],
)
def test_a_message_without_noise(tmp_path: Path, changes: dict[str, Any], value: int) -> None:
    path = config(tmp_path, **changes)
    done = run("audit", path, "--json")
    assert (done.returncode, done.stderr) == (1, "")
    answer = json.loads(done.stdout)
    assert answer["verdict"] == "violated"
    assert answer["delta_lower"] == answer["delta_upper"] == 1.0
    assert answer["worst_pair"] == [value, 0]
    assert answer["satisfied_eps"] is None
    assert f"input {value} becomes 0, no noise hides it" in answer["reason"]


def test_no_noise_on_the_unit_atom_is_decided_too(tmp_path: Path) -> None:
    """The central noise alone hides +1 and -1, badly: no crash and no delta = 1."""
    path = config(tmp_path, max_value=1, atoms=[])
    done = run("audit", path, "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["verdict"]) == (1, "violated")
    # under input 1 the count of +1 is at least 1: the other law gives 0 the mass 1 - e^-0.9
    assert abs(answer["delta_upper"] - (1 - math.exp(-0.9))) < 1e-3


def test_more_atoms_than_values_is_an_upper_bound(tmp_path: Path) -> None:
    atoms = json.loads(EXAMPLE.read_text())["atoms"]
    path = config(tmp_path, atoms=[*atoms, {"atom": [-2, 2], "r": 5.0, "p": 0.9}])
    extra = config(tmp_path, atoms=[*atoms, {"atom": [-2, -1, 1, 2], "r": 5.0, "p": 0.9}])
    for file in {path, extra}:
        answer = json.loads(run("audit", file, "--json").stdout)
        assert answer["delta_upper"] <= 1


@pytest.mark.parametrize("max_value", [2])
def test_the_papers_theorem_is_far_too_cautious(max_value: int) -> None:
    found = audit(Proposal.of(theorem(max_value)), gap=1e-2)
    assert found.verdict == "certified"
    assert found.proof is not None
    assert found.proof.enclosure.upper < 1e-50


@pytest.mark.slow
@pytest.mark.parametrize("max_value", [5, 10])
def test_the_papers_theorem_at_larger_values(max_value: int) -> None:
    found = audit(Proposal.of(theorem(max_value)), gap=1e-2)
    assert found.verdict == "certified"
    assert found.proof is not None
    assert found.proof.enclosure.upper < 1e-60


@pytest.mark.parametrize("max_value", [2, 5, 10])
@pytest.mark.parametrize("cut", [20, 150])
def test_the_papers_theorem_with_too_little_noise(max_value: int, cut: float) -> None:
    """Natural logarithm in Gamma and t cut: the verdict follows the truth, by either proof."""
    data = theorem(max_value, log=math.log, cut=cut)
    found = audit(Proposal.of(data), gap=1e-2)
    assert found.proof is not None
    fast = Protocol(loads(json.dumps(data))).delta(1.0).enclosure
    expected = "certified" if fast.upper <= 1e-6 else "violated"
    assert found.verdict == expected
    assert max(fast.lower, found.proof.enclosure.lower) <= min(
        fast.upper, found.proof.enclosure.upper
    )
    if expected == "violated":
        assert found.satisfied_eps is not None
        assert found.satisfied_eps.lower > 1
        worst = found.proof.worst_change
        assert Protocol(loads(json.dumps(data))).delta_of(worst, 1.0).enclosure.upper > 1e-6


def test_signatures(certified: Path, tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    done = run("sign", certified, "--key", key, "--create-key")
    assert done.returncode == 0, done.stderr
    assert key.stat().st_mode & 0o077 == 0
    public = tmp_path / "key.pem.pub"
    done = run("audit", certified, "--public-key", public, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["signature"] == "good, by the key key.pem.pub"
    again = run("sign", certified, "--key", key, "--create-key")
    assert again.returncode == 2
    assert "never overwritten" in again.stderr
    other = run("certify", EXAMPLE, "--delta", "2e-6", "-o", tmp_path / "other.json")
    assert other.returncode == 0
    done = run(
        "audit",
        tmp_path / "other.json",
        "--public-key",
        public,
        "--signature",
        f"{certified}.sig",
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not one of this file" in done.stderr
    for wrong, cause in ((key, "it is a private one"), (certified, "it is not PEM")):
        done = run("audit", certified, "--public-key", wrong)
        assert done.returncode == 2
        assert f"{wrong} cannot be the public key: {cause}" in done.stderr
    done = run("sign", certified, "--key", public)
    assert done.returncode == 2
    assert f"{public} cannot be the private key: it is a public one" in done.stderr


def test_schema_is_printed() -> None:
    done = run("schema")
    assert done.returncode == 0
    assert json.loads(done.stdout)["$id"] == "urn:correlated-noise-parameters:5"


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


BAD_FILES: dict[str, bytes] = {
    "empty": b"",
    "truncated": b"%s",  # filled in below
    "not UTF-8": b'{"format": "\xff\xfe"}',
    "deeply nested": nested(200_000),
    "nested in a field": b'{"format": ' + nested(3000) + b"}",
    "NaN": b'{"max_value": 2, "eps_central": NaN, "atoms": []}',
    "infinite": b'{"max_value": 2, "eps_central": 1e999, "atoms": []}',
    "huge integer": b'{"max_value": ' + b"9" * 5000 + b', "eps_central": 1, "atoms": []}',
    "duplicate key": b'{"max_value": 2, "max_value": 3, "eps_central": 1, "atoms": []}',
    "wrong version": b'{"format": "correlated-noise-parameters/99"}',
    "a list": b"[1, 2, 3]",
    "a number": b"7",
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_one_line(name: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    content = BAD_FILES[name]
    path.write_bytes(certified_text().encode()[:-100] if content == b"%s" else content)
    done = run("audit", path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert len(done.stderr) < 600
    assert "Traceback" not in done.stderr


def test_oversized_and_missing_files(tmp_path: Path) -> None:
    big = tmp_path / "big.json"
    with big.open("wb") as stream:
        stream.truncate(100 << 20)
    for path, message in ((big, "larger than 64 MiB"), (tmp_path / "none.json", "No such file")):
        done = run("audit", path)
        assert (done.returncode, done.stdout) == (2, "")
        assert message in done.stderr


@pytest.mark.parametrize(
    "options",
    [
        ("--eps", "-1"),
        ("--delta", "0"),
        ("--delta", "nan"),
        ("--honest", "0"),
        ("--honest", "1.5"),
        ("--releases", "0"),
        ("--tier", "sloppy"),
        ("--gap", "0"),
        ("--budget", "-1"),
        ("--report", "report.pdf"),
        ("--report", "nowhere/report.html"),
        ("--signature", "x.sig"),
    ],
)
def test_bad_options(certified: Path, options: tuple[str, ...]) -> None:
    done = run("audit", certified, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert options[0].strip("-") in done.stderr


def test_nothing_is_written_when_it_is_refused(tmp_path: Path) -> None:
    path = config(tmp_path, delta=1e-9)
    done = run("certify", path, "-o", tmp_path / "out.json")
    assert done.returncode == 1
    assert done.stderr.startswith("violated: ")
    assert [item.name for item in tmp_path.iterdir()] == ["config.json"]


def mutated(text: str, rng: random.Random) -> str:
    """One to three small edits, of characters or of whole tokens."""
    out = list(text)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = rng.randrange(len(out))
        match rng.randrange(5):
            case 0:
                out[at] = rng.choice('0123456789"{}[],:-+.eE/ntfu \\\x00é')
            case 1:
                del out[at : at + rng.choice((1, 1, 5, 50))]
            case 2:
                out.insert(at, rng.choice('0123456789"{}[],:-.e/'))
            case 3:
                other = rng.randrange(len(out))
                out[at], out[other] = out[other], out[at]
            case _:
                digits = [i for i, c in enumerate(out) if c.isdigit()]
                out[rng.choice(digits)] = rng.choice("0123456789")
        if not out:
            return ""
    return "".join(out)


@pytest.mark.slow
def test_ten_thousand_mutations_of_a_certified_file(tmp_path: Path) -> None:
    """A changed file is refused; one that still loads says exactly what the original says."""
    rng = random.Random(5)
    original = certified_text()
    path = tmp_path / "mutated.json"
    meaning = json.loads(original)
    for _ in range(10_000):
        path.write_text(mutated(original, rng))
        with contextlib.suppress(AccountingError):
            found = read(path)
            assert not isinstance(found, Proposal)
            assert json.loads(dumps(found)) == meaning


@pytest.mark.slow
def test_mutations_of_a_bare_configuration(tmp_path: Path) -> None:
    """No hash protects it: whatever is certified must hold by the other proof as well."""
    rng = random.Random(6)
    path = tmp_path / "mutated.json"
    decided = 0
    for _ in range(1500):
        path.write_text(mutated(EXAMPLE.read_text(), rng))
        with contextlib.suppress(AccountingError):
            document = read(path)
            assert isinstance(document, Proposal)
            means = [law.mean if law else 0.0 for _, law in document.atoms]
            if max(means, default=0) > 1e5 or document.max_value > 20:
                continue  # valid, and slow
            found = audit(document, explain=False, gap=1e-2)
            if found.verdict == "certified" and decided < 60:
                decided += 1
                fast = Protocol(document.configuration()).delta(found.claim.eps).enclosure
                assert fast.lower <= found.claim.delta
    assert decided > 20


@pytest.mark.parametrize(
    "wrong",
    [
        {"honest": 2.0},
        {"honest": 0.0},
        {"honest": math.nan},
        {"delta": 2.0},
        {"delta": math.nan},
        {"eps": -1.0},
        {"eps": math.nan},
        {"releases": 0},
        {"same_change": True},
    ],
)
def test_no_claim_is_beyond_what_can_be_deployed(wrong: dict[str, Any]) -> None:
    """A fraction above 1 would be proved with noise that nobody adds."""
    with pytest.raises(InvalidParameter):
        Claim(**{"eps": 1.0, "delta": 1e-6, **wrong})


def test_no_question_without_a_number() -> None:
    for wrong in ({"eps": math.nan}, {"eps": 1.0, "claim": math.nan}, {"eps": 1.0, "claim": -1.0}):
        with pytest.raises(InvalidParameter):
            Question(**wrong)


def restated(**changes: float) -> ParameterFile:
    """The certified example whose certificate says something else, sealed again."""
    file = from_json(json.loads(certified_text()), source="the file")
    assert file.certificate is not None
    return reassembled(file, file.certificate.model_copy(update=changes))


def test_a_certificate_is_compared_with_the_proof_in_all_its_numbers(tmp_path: Path) -> None:
    """Was: confirmed, since only delta_upper was looked at."""
    good = restated().certificate
    assert good is not None
    assert good.sampler_deviation > 0
    assert audit(restated()).confirmed
    # a weaker statement is still true
    assert audit(restated(delta_lower=0.0)).confirmed
    assert audit(restated(sampler_deviation=2 * good.sampler_deviation)).confirmed
    # the proof contradicts these
    above = audit(restated(delta_lower=1.5 * good.delta_upper, delta_upper=2 * good.delta_upper))
    assert (above.verdict, above.noise_verdict) == ("misstated", "certified")
    assert above.confirmed is False
    assert above.reason.startswith("the certificate says delta is at least ")
    closely = {"delta_lower": good.delta_upper * (1 + 1e-9), "delta_upper": 2 * good.delta_upper}
    assert audit(restated(**closely)).verdict == "misstated"
    for stated in (0.0, good.sampler_deviation * (1 - 1e-6)):
        less = audit(restated(sampler_deviation=stated))
        assert (less.verdict, less.confirmed) == ("rejected", False)
        assert f"the sampler adds at most {stated!r} to delta" in less.reason
    path = tmp_path / "less.json"
    path.write_text(dumps(restated(sampler_deviation=0.0)))
    done = run("audit", str(path), "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["verdict"] == "rejected"


def test_no_certificate_of_the_package_understates_its_sampler() -> None:
    for path in (shipped_folder() / "files").iterdir():
        file = load(path)
        assert file.certificate is not None
        mechanism = file.mechanism().thinned(claimed_fraction(file))
        assert mechanism.central.whole()
        found = _deviation(file.certificate, mechanism, Claim.of(file))
        assert found.standing == "confirmed"
