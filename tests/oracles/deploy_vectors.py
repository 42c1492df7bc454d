"""Test vectors for clients in any language; ``python tests/oracles/deploy_vectors.py`` writes them.

They are package data below ``paramsearch/deploy/vectors``; the specification beside that folder
says what the fields mean.  A new noise law is one more entry of ``PROBLEMS``.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from places import ROOT

from accounting.model.configuration import Proposal
from paramsearch import certify, uncertified
from paramsearch.deploy import Analyzer, Codec, RandomizedReals, Randomizer, SeededBits, Tape
from paramsearch.parameters.assembly import reassembled
from paramsearch.parameters.parameter_file import ParameterFile, digest, dumps

VERSION = 1
FOLDER = ROOT / "paramsearch" / "deploy" / "vectors" / str(VERSION)
CASES = 40
SUM = {
    "max_value": 3,
    "eps": 2.0,
    "delta": 0.5,
    "n": 4,
    "eps_central": 0.05,
    "atoms": [
        {"atom": [-1, 1], "r": 2.0, "p": 0.7},
        {"atom": [-1, -1, 2], "r": 1.5, "p": 0.6},
        {"atom": [-2, 1, 1], "r": 1.0, "p": 0.9},
        {"atom": [-2, -1, 3], "r": 2.5, "p": 0.5},
    ],
}
PROBLEMS: dict[str, dict[str, Any]] = {
    "integers": SUM,
    "vectors": {**SUM, "dimension": 5, "eps_central": 0.5, "n": 7},
    # powers of this p are too long to be written down as fractions
    "bursts": {
        **SUM,
        "atoms": [
            {"atom": [-1, 1], "law": "burst", "rate": 3.0, "p": 0.75, "m": 1},
            {"atom": [-1, -1, 2], "law": "burst", "rate": 2.0, "p": 0.6, "m": 3},
            {"atom": [-2, 1, 1], "r": 1.0, "p": 0.9},
            {"atom": [-2, -1, 3], "r": 2.5, "p": 0.5},
            {"atom": [-2, -1, 3], "law": "burst", "rate": 0.3, "p": 0.9963, "m": 1},
        ],
    },
    # the largest m, and the next to it
    "long_bursts": {
        **SUM,
        "n": 20,
        "atoms": [
            {"atom": [-1, 1], "law": "burst", "rate": 3.0, "p": 0.5, "m": 64},
            {"atom": [-1, -1, 2], "law": "burst", "rate": 2.0, "p": 0.1, "m": 64},
            {"atom": [-2, 1, 1], "r": 1.0, "p": 0.9},
            {"atom": [-2, -1, 3], "law": "burst", "rate": 4.0, "p": 0.01, "m": 63},
        ],
    },
    "reals": {**SUM, "n": 50, "atoms": [*SUM["atoms"], {"atom": [-1, 1], "r": 0.5, "p": 0.998}]},
}
RANGE = (-1.5, 2.0)
REALS = [-1.5, 2.0, -1.5 + 3.5 / 3, 0.1, 1.9999999999999998, 5e-324, -0.0, 1 / 3]
REFUSED = {
    "integers": [-1, 4, 1.5, True, "2", None, [0, 1], 2**70],
    "bursts": [-1, 4, 1.5, True, "2", None, [0, 1]],
    "long_bursts": [-1, 4, 1.5, True, "2", None, [0, 1]],
    "vectors": [1, [0, 4], [5, 1], [-1, 1], [0], [0, 1, 1], [0, 0.5], [0, True], "x", None],
    "reals": [-1.6, 2.0000000000000004, True, "1", None],
}


class Recorder:
    """A seeded source that remembers what was read."""

    def __init__(self, seed: str) -> None:
        self.source, self.text = SeededBits(seed), ""

    def bits(self, count: int) -> int:
        found = self.source.bits(count)
        self.text += f"{found:0{count}b}" if count else ""
        return found


def value_of(name: str, case: int) -> Any:
    if name == "vectors":
        return [case % 5, case % 4] if case else 0
    return REALS[case % len(REALS)] if name == "reals" else case % 4


def randomized(name: str, file: ParameterFile, source: Any, value: Any) -> list[int]:
    """What a user with this value sends, with these bits."""
    client = Randomizer(file, source, not_private=True)
    if name == "reals":
        return RandomizedReals(client, *RANGE)(value)
    return client(tuple(value) if isinstance(value, list) else value)


def made(name: str, file: ParameterFile) -> dict[str, Any]:
    codec = Codec.of(file)
    randomizer, everything = [], []
    for case in range(CASES):
        value = value_of(name, case)
        recorder = Recorder(f"{name} {case}")
        symbols = randomized(name, file, recorder, value)
        assert randomized(name, file, Tape(recorder.text), value) == symbols
        randomizer.append({"value": value, "bits": recorder.text, "symbols": symbols})
        everything.append(symbols)
    encoder = [{"symbols": s, "packed": codec.pack(s).hex()} for s in everything[:10]]
    analyzer = []
    for size in (1, 10, CASES):
        symbols = [s for some in everything[:size] for s in some] + [codec.symbols, -1][: size - 1]
        found = Analyzer(file)
        found.add(symbols)
        analyzer.append(
            {"symbols": symbols, "sums": found.sums.tolist(), "rejected": found.rejected}
        )
    return {
        "version": VERSION,
        "file": file.model_dump(mode="json"),
        "randomizer": randomizer,
        "refused": REFUSED[name],
        "encoder": encoder,
        "analyzer": analyzer,
    }


@cache
def files() -> dict[str, ParameterFile]:
    settings = dict(zip(("low", "high"), RANGE, strict=True))
    return {
        name: certify(
            uncertified(Proposal.of(problem), settings=settings if name == "reals" else {})
        )
        for name, problem in PROBLEMS.items()
    }


def _sealed(document: dict[str, Any]) -> str:
    return json.dumps({**document, "sha256": digest(document)})


def refusals() -> list[dict[str, Any]]:
    """Texts of files that no client may use; ``about`` is a word that explains each."""
    good = files()["integers"]
    small = json.loads(dumps(good))
    text = dumps(good)

    def changed(*place: str | int, to: Any) -> str:
        """Sealed again, so that the hash is right."""
        document = json.loads(text)
        at = document
        for part in place[:-1]:
            at = at[part]
        at[place[-1]] = to
        return _sealed(document)

    def without(*place: str | int) -> str:
        document = json.loads(text)
        at = document
        for part in place[:-1]:
            at = at[part]
        del at[place[-1]]
        return _sealed(document)

    def bursts(*place: str | int, to: Any) -> str:
        """The file with bursts, changed and sealed again; None removes the field."""
        document = json.loads(dumps(files()["bursts"]))
        at = document
        for part in place[:-1]:
            at = at[part]
        at[place[-1]] = to
        if to is None:
            del at[place[-1]]
        return _sealed(document)

    def large(**noise: Any) -> str:
        """The file with other noise on one atom, all other numbers as they follow from it."""
        made = uncertified(Proposal.of({**SUM, "atoms": [{"atom": [-1, 1], **noise}]}))
        return dumps(reassembled(made, good.certificate))

    certificate = small["certificate"]
    cases = {
        "not JSON": (text[:-3], "JSON"),
        "nothing": ("", "JSON"),
        "something after it": (text + "{}", "JSON"),
        "a comma left over": ('{"format": 1,}', "JSON"),
        "not an object": ("[]", ""),
        "not a number of JSON": (text.replace('"n": 4', '"n": 04'), "JSON"),
        "not finite": (text.replace('"n": 4', '"n": NaN'), ""),
        "an overflow": (text.replace('"eps": 2.0', '"eps": 1e999', 1), "finite"),
        "a key twice": (text.replace('"n": 4', '"n": 4, "n": 4'), "twice"),
        "changed after sealing": (text.replace('"n": 4', '"n": 5'), "sha256"),
        "another hash": (text.replace(small["sha256"], "0" * 64), "sha256"),
        "no certificate": (changed("certificate", to=None), "certificate"),
        "certificate is missing": (without("certificate"), "certificate"),
        "another eps": (changed("certificate", "eps", to=3.0), "eps"),
        "more than delta": (changed("certificate", "delta_upper", to=0.75), "delta"),
        "lower above upper": (changed("certificate", "delta_lower", to=0.5), "delta"),
        "no change": (changed("certificate", "worst_pair", to=[2, 2]), "worst_pair"),
        "a moved value of an integer": (
            changed("certificate", "worst_pair", to=[2, 0, 0, 1]),
            "worst_pair",
        ),
        "an unknown proof": (changed("certificate", "proof", to={"faith": 12}), "proof"),
        "a pair is not proved": (changed("certificate", "proof", to={"ball": 11}), "proof"),
        "worst_sequence of one release": (
            changed("certificate", to={**certificate, "worst_sequence": []}),
            "",
        ),
        "an unknown format": (changed("format", to="correlated-noise-parameters/9"), "format"),
        "the format of vectors": (changed("format", to="correlated-noise-parameters/2"), "format"),
        "an unknown field": (changed("notes", to="x"), "notes"),
        "an unknown field inside": (changed("atoms", 0, "weight", to=1), "weight"),
        "a missing field": (without("atoms", 0, "rate"), "rate"),
        "n is 0": (changed("problem", "n", to=0), "n"),
        "n is a text": (changed("problem", "n", to="4"), "n"),
        "n is not whole": (changed("problem", "n", to=4.5), "n"),
        "n is a double": (text.replace('"n": 4', '"n": 4.0'), "n"),
        "a huge n": (text.replace('"n": 4', '"n": 1' + "0" * 400), "n"),
        "n beyond 53 bits": (text.replace('"n": 4', f'"n": {2**53 + 1}'), "n"),
        "a huge max_value": (changed("problem", "max_value", to=2**20 + 1), "max_value"),
        "eps is true": (changed("problem", "eps", to=True), "eps"),
        "a zero denominator": (changed("atoms", 0, "p", to="1/0"), "p"),
        "p is 1": (changed("atoms", 0, "p", to="1/1"), "p"),
        "p above 1": (changed("atoms", 0, "p", to="7/5"), "p"),
        "p is a number": (changed("atoms", 0, "p", to=0.7), "p"),
        "a negative rate": (changed("central", "rate", to="-1/2"), "rate"),
        "not in lowest terms": (changed("atoms", 0, "rate", to="2/4"), "lowest terms"),
        "a long rational": (changed("atoms", 0, "rate", to="1/" + "3" * 1000), "rate"),
        "spaces in a rational": (changed("atoms", 0, "rate", to="1 / 2"), "rate"),
        "another line in a rational": (changed("atoms", 0, "rate", to="1/2\n"), "rate"),
        "more noise than stated": (changed("atoms", 0, "rate", to="1/2"), "parameters give"),
        "another r": (changed("atoms", 0, "r", to=2.1), "parameters give"),
        "another mean": (changed("central", "mean", to=59.0), "parameters give"),
        "another eps_central": (changed("central", "eps_central", to=0.06), "parameters give"),
        "another cost": (changed("cost", "noise_messages", to=1.0), "parameters give"),
        "another length": (changed("cost", "bits_per_message", to=4), "bits_per_message"),
        "another error": (changed("error", "rmse", to=1.0), "parameters give"),
        "another alphabet": (changed("alphabet", to=[1, -1, 2, -2]), "alphabet"),
        "another order": (changed("alphabet", to=[-1, 1, 2, -2, 3]), "alphabet"),
        "no atoms": (changed("atoms", to=[]), "atoms"),
        "atoms in an object": (changed("atoms", to={}), "atoms"),
        "an atom of one": (changed("atoms", 0, "atom", to=[1]), "atom"),
        "an atom with 0": (changed("atoms", 0, "atom", to=[-1, 0, 1]), "0"),
        "an atom with a sum": (changed("atoms", 0, "atom", to=[-1, 2]), "zero-sum"),
        "an unsorted atom": (changed("atoms", 0, "atom", to=[1, -1]), "sorted"),
        "an atom of huge numbers": (changed("atoms", 0, "atom", to=[-(2**31), 2**31]), "atom"),
        "an unknown adjacency": (changed("problem", "adjacency", to="none"), "adjacency"),
        "settings in settings": (changed("provenance", "settings", to={"a": {}}), "settings"),
        "a law in format 1": (changed("atoms", 0, "law", to="negative-binomial"), "law"),
        "bursts in format 1": (bursts("format", to="correlated-noise-parameters/1"), "format"),
        "an unknown law": (bursts("atoms", 0, "law", to="poisson"), "law"),
        "no law in format 5": (bursts("atoms", 2, "law", to=None), "law"),
        "no m": (bursts("atoms", 0, "m", to=None), "m"),
        "m is 0": (bursts("atoms", 0, "m", to=0), "m"),
        "m is 65": (bursts("atoms", 0, "m", to=65), "m"),
        "m is a double": (bursts("atoms", 0, "m", to=1.5), "m"),
        "m is true": (bursts("atoms", 0, "m", to=True), "m"),
        "another m": (bursts("atoms", 1, "m", to=4), "parameters give"),
        "r of bursts": (bursts("atoms", 0, "r", to=2.0), "r"),
        "events that are too large": (large(r=1.0, p=1 - 2.0**-20), "2^24"),
        "bursts that are too large": (large(law="burst", rate=1.0, p=1 - 2.0**-16, m=64), "2^24"),
        "rare events that are too large": (large(r=1e-60, p=1 - 2.0**-40), "2^24"),
        "rare events at the limit": (large(r=1e-60, p=2.0**23 / (2**23 + 1)), "2^24"),
        "rare bursts that are too large": (
            large(law="burst", rate=1e-60, p=1 - 2.0**-18, m=64),
            "2^24",
        ),
    }
    return [
        {"name": name, "content": content, "about": about}
        for name, (content, about) in cases.items()
    ]


def everything() -> dict[str, Any]:
    """The content of every file of vectors, by its name."""
    found: dict[str, Any] = {name: made(name, file) for name, file in files().items()}
    return {**found, "refusals": {"version": VERSION, "cases": refusals()}}


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.json"


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, content in everything().items():
        path_of(name).write_text(json.dumps(content) + "\n", encoding="utf-8")
