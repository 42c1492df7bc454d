"""Test vectors for other languages; ``python tests/oracles/deploy_vectors.py`` writes them.

``tests/oracles/vectors/integers.json`` and ``vectors.json`` each hold

- ``file``: a parameter file;
- ``randomizer``: bits (a string of 0 and 1, read from the left), a value (for vectors a coordinate
  and a value), and the sorted symbols that the randomizer sends, having read exactly these bits;
- ``encoder``: symbols and the hexadecimal text of their packed form;
- ``analyzer``: symbols and the sum of each coordinate, with the number of rejected symbols.

``paramsearch/deploy`` defines how bits become messages: ``randomizer.py`` (one Poisson number of
events, then for each event the atom, for vectors the coordinate, and the copies), ``samplers.py``
and ``exact_events.py``.  Atoms are in the order +1, -1, then as in the file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from accounting.model.configuration import Proposal
from paramsearch import certify, uncertified
from paramsearch.deploy import Analyzer, Codec, Randomizer, SeededBits, Tape
from paramsearch.parameters.parameter_file import ParameterFile

FOLDER = Path(__file__).parent / "vectors"
PROBLEM = {
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
CASES = 40


class Recorder:
    """A seeded source that remembers what was read."""

    def __init__(self, seed: str) -> None:
        self.source, self.text = SeededBits(seed), ""

    def bits(self, count: int) -> int:
        found = self.source.bits(count)
        self.text += f"{found:0{count}b}" if count else ""
        return found


def made(file: ParameterFile) -> dict[str, Any]:
    codec = Codec.of(file)
    randomizer = []
    everything = []
    for case in range(CASES):
        value: Any = case % 4
        if file.dimension > 1:
            value = (case % file.dimension, case % 4)
        recorder = Recorder(f"vectors {file.dimension} {case}")
        symbols = Randomizer(file, recorder, not_private=True)(value)
        assert Randomizer(file, Tape(recorder.text), not_private=True)(value) == symbols
        randomizer.append({"bits": recorder.text, "value": value, "symbols": symbols})
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
        "file": file.model_dump(mode="json"),
        "randomizer": randomizer,
        "encoder": encoder,
        "analyzer": analyzer,
    }


def files() -> dict[str, ParameterFile]:
    return {
        name: certify(uncertified(Proposal.of({**PROBLEM, "dimension": dimension})))
        for name, dimension in (("integers", 1), ("vectors", 5))
    }


if __name__ == "__main__":
    for name, file in files().items():
        (FOLDER / f"{name}.json").write_text(json.dumps(made(file)) + "\n")
