"""Files, names and numbers chosen to break something: no traceback, no false word, no lost file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from accounting import Configuration, NegativeBinomial
from accounting.base.balls import ball, precision
from accounting.base.enclosure import at_least, at_most
from accounting.model.configuration import Proposal
from accounting.model.family import hubs
from accounting.model.mechanism import ExactCentral, ExactNoise, Mechanism
from accounting.model.question import Question
from accounting.notary.notary import Notary
from accounting.proof.prove import prove
from accounting.proof.satisfied_eps import satisfied_eps
from paramsearch.certification.audit import audit
from paramsearch.certification.certify import certify
from paramsearch.parameters.assembly import uncertified
from paramsearch.parameters.parameter_file import digest, dumps, from_json

SMALL: dict[str, Any] = {
    "max_value": 1,
    "eps": 1.0,
    "delta": 0.3,
    "n": 100,
    "eps_central": 1.0,
    "atoms": [{"atom": [-1, 1], "r": 2.0, "p": 0.5}],
}


def command(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "paramsearch", *map(str, arguments)],
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=120,
        **options,
    )


def written(tmp_path: Path, **changes: Any) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**SMALL, **changes}))
    return path


def resealed(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(dumps(certify(uncertified(Proposal.of(SMALL)))))
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    data["sha256"] = digest(data)
    return data


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(SMALL).replace('"max_value": 1', '"max_value": 1' + "0" * 400),
        json.dumps(SMALL).replace('"n": 100', '"n": 1' + "0" * 400),
        json.dumps(SMALL).replace("[-1, 1]", f"[{'9' * 4300}, {'9' * 4300}]"),
        json.dumps(SMALL).replace('"eps_central": 1.0', '"eps_central": 40.0'),
    ],
)
def test_enormous_numbers(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    done = command("audit", path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"delta": 1e-320},
        {"eps_central": 5e-324},
        {"atoms": [{"atom": [-1, 1], "r": 1e308, "p": 0.5}]},
        {"atoms": [{"atom": [-1, 1], "r": 1e-308, "p": 0.5}]},
        {"atoms": [{"atom": [-1, 1], "r": 2.0, "p": 5e-324}]},
        {"atoms": [{"atom": [-1, 1], "r": 2.0, "p": 1 - 2**-53}]},
        {"eps": 1e300},
        {"eps": 1500.0},
    ],
)
def test_extreme_numbers_are_decided_or_not(changes: dict[str, Any]) -> None:
    found = audit(Proposal.of({**SMALL, **changes}), explain=False)
    assert found.verdict in ("certified", "violated", "undecided")


@pytest.mark.parametrize(
    "options",
    [
        ("--gap", "0"),
        ("--gap", "nan"),
        ("--releases", "100000000000"),
        ("--n", "99999999999999999999"),
        ("--honest", "1e-320"),
        ("--eps", "1500"),
    ],
)
def test_what_certify_refuses(tmp_path: Path, options: tuple[str, str]) -> None:
    done = command("certify", written(tmp_path), "-o", tmp_path / "out.json", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("central", "p"), f"1/{10**200}"),
        (("central", "rate"), f"1/{10**900}"),
        (("central", "rate"), f"{10**900}/1"),
        (("certificate", "delta_upper"), 0.9),
        (("certificate", "delta_lower"), 0.29),
        (("certificate", "worst_pair"), [7, 7]),
        (("certificate", "worst_pair"), [0, 2]),
        (("certificate", "proof"), {"ball": 999}),
        (("certificate", "eps"), 2.0),
    ],
)
def test_resealed_nonsense(tmp_path: Path, path: tuple[str, ...], value: Any) -> None:
    file = tmp_path / "forged.json"
    file.write_text(json.dumps(resealed(path, value)))
    done = command("audit", file, "--json")
    assert (done.returncode, done.stderr) == (2, "")
    answer = json.loads(done.stdout)
    assert answer["verdict"] == "rejected"
    assert "parameters" in answer["reason"] or "certificate" in answer["reason"]
    assert 0 <= answer["delta_lower"] <= answer["delta_upper"] <= 1


def test_a_certificate_without_lower_bounds_must_be_reproduced() -> None:
    noise = {"r": 3.0, "p": 0.5}
    atoms = [{"atom": a, **noise} for a in ([-1, 1], [-1, -1, 2], [-2, 1, 1], [-2, 2])]
    data = {**SMALL, "max_value": 2, "atoms": atoms, "delta": 0.9, "eps_central": 2.0}
    file = json.loads(dumps(certify(uncertified(Proposal.of(data)))))
    assert audit(from_json(file, source="it")).verdict == "certified"
    file["certificate"]["delta_upper"] = 1e-300
    file["sha256"] = digest(file)
    found = audit(from_json(file, source="it"))
    assert found.verdict == "rejected"
    assert "not reproduced" in found.reason
    assert found.noise_verdict == "certified"


def test_strings_that_look_like_lists_survive() -> None:
    data = resealed(("provenance", "tool"), "[ ]  [  1,   2 ]")
    file = from_json(data, source="it")
    assert (
        from_json(json.loads(dumps(certify(file))), source="it").provenance.tool
        == data["provenance"]["tool"]
    )


def test_entries_without_noise_are_left_to_the_notary(tmp_path: Path) -> None:
    silent = {"atom": [-1, 1], "r": 0.0, "p": 0.5}
    path = written(tmp_path, atoms=[*SMALL["atoms"], silent])
    assert command("certify", path, "-o", tmp_path / "out.json").returncode == 0
    assert command("audit", path).returncode == 0


def test_the_eps_that_holds_counts_the_deviation() -> None:
    """A central rate that is off: both ends of the answer are checked with the deviation inside."""
    half = Fraction(1, 2)
    with precision(128):
        rate = Fraction(float((-(1 - ball(half)).log()).mid())) * (1 - Fraction(4, 10**5))
    atoms = {(-1, 1): (ExactNoise(p=half, rate=Fraction(2)),)}
    mechanism = Mechanism(1, atoms, ExactCentral(p=half, rate=rate))
    for delta in (0.2, 0.24069243):
        found = satisfied_eps(mechanism, delta)
        assert found is not None
        assert prove(mechanism, Question(eps=found.upper)).enclosure.upper <= delta
        assert prove(mechanism, Question(eps=found.lower * 0.999)).enclosure.lower > delta


@pytest.mark.parametrize("name", ["[red]x.json", "[/foo].json", "a b;$(c).json"])
def test_names_are_not_markup(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    done = command("certify", written(tmp_path), "-o", tmp_path / name)
    assert done.returncode == 0
    assert name in done.stdout
    report = (tmp_path / name).with_suffix(".html")
    done = command("audit", tmp_path / name, "--report", report)
    assert done.returncode == 0
    assert report.exists()


def test_long_names_and_special_files(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 250 + ".json")
    long.write_text(json.dumps(SMALL))
    assert command("audit", long).returncode == 0
    assert command("certify", long, "-o", tmp_path / ("y" * 300)).returncode == 2
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", Path("/dev/zero"), tmp_path):
        assert command("audit", path).returncode == 2
    assert command("certify", long, "-o", os.devnull).returncode == 2


def test_a_key_is_never_overwritten(tmp_path: Path) -> None:
    file, key = tmp_path / "file.json", tmp_path / "key"
    assert command("certify", written(tmp_path), "-o", file).returncode == 0
    assert command("sign", file, "--key", key, "--create-key", "--json").returncode == 0
    before = key.read_bytes()
    for output in (key, tmp_path / "key.pub", file):
        assert command("sign", file, "--key", key, "-o", output).returncode == 2
    assert key.read_bytes() == before


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="only Linux has a device that is always full"
)
def test_an_answer_that_cannot_be_written_is_no_verdict(tmp_path: Path) -> None:
    path = written(tmp_path)
    with open("/dev/full", "w") as full:
        assert command("audit", path, stdout=full).returncode == 2


def test_a_closed_pipe_does_not_change_a_verdict(tmp_path: Path) -> None:
    path = written(tmp_path)
    read_end, write_end = os.pipe()
    os.close(read_end)
    assert command("audit", path, stdout=write_end).returncode == 0
    assert command("audit", path, "--delta", "1e-30", stdout=write_end).returncode == 1
    os.close(write_end)


def large() -> dict[str, Any]:
    entries = []
    for atom in hubs(60).atoms:
        noise = NegativeBinomial.from_mean(mean=4000.0, r=12.0)
        entries.append({"atom": list(atom), "r": noise.r, "p": noise.p})
    return {**SMALL, "max_value": 60, "delta": 1e-6, "eps_central": 0.9, "atoms": entries}


def test_interrupted_and_out_of_time(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    path.write_text(json.dumps(large()))
    started = time.monotonic()
    assert command("audit", path, "--budget", "1").returncode == 3
    assert time.monotonic() - started < 60
    target = tmp_path / "out.json"
    running = subprocess.Popen(
        [sys.executable, "-m", "paramsearch", "certify", str(path), "-o", str(target)],
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(2.5)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130
    assert errors == "interrupted\n"
    assert [item.name for item in tmp_path.iterdir()] == ["large.json"]


def test_many_values_without_an_atom_of_their_own() -> None:
    """A dense kernel of all values would not fit into memory: say so, or find the message."""
    rest = tuple(range(2, 5001))
    noise = (ExactNoise(p=Fraction(1, 2), r=Fraction(2)),)
    atoms = {(-1, 1): noise, (-sum(rest), *rest): noise}
    central = ExactCentral(step=Fraction(1, 100))
    with pytest.raises(ValueError, match="too many"):
        Notary(Mechanism(5000, atoms, central)).enclose(1.0)


@pytest.mark.parametrize("value", [1 / 3, 0.15803013970713942, 1 - 2**-53, 1e-300, 5e-324, 0.0, 1])
def test_printed_bounds_are_bounds(value: float) -> None:
    assert Fraction(at_least(value)) <= Fraction(value) <= Fraction(at_most(value))


def test_configurations_still_need_noise_everywhere() -> None:
    with pytest.raises(ValueError, match="r"):
        Configuration.of(1, [((-1, 1), NegativeBinomial(0.0, 0.5))], eps_central=1.0)
