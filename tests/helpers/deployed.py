"""A small certified file, and a seeded randomizer of it."""

from __future__ import annotations

from functools import cache

from accounting.model.configuration import Proposal
from paramsearch import certify, uncertified
from paramsearch.deploy import (
    Randomizer,
    SeededBits,
)
from paramsearch.parameters.parameter_file import ParameterFile

SUM = {
    "max_value": 3,
    "eps": 2.0,
    "delta": 0.2,
    "n": 50,
    "eps_central": 1.5,
    "atoms": [
        {"atom": [-1, 1], "r": 3.0, "p": 0.6},
        {"atom": [2, -1, -1], "r": 3.0, "p": 0.6},
        {"atom": [3, -2, -1], "r": 3.0, "p": 0.6},
        {"atom": [-2, 1, 1], "r": 3.0, "p": 0.6},
    ],
}


BOTH_LAWS = {
    **SUM,
    "atoms": [
        {"atom": [-1, 1], "law": "burst", "rate": 3.0, "p": 0.6, "m": 1},
        {"atom": [2, -1, -1], "r": 3.0, "p": 0.6},
        {"atom": [3, -2, -1], "law": "burst", "rate": 3.0, "p": 0.6, "m": 3},
        {"atom": [-2, 1, 1], "r": 3.0, "p": 0.6},
    ],
}


@cache
def file(
    dimension: int = 1, honest: float = 1.0, n: int = 50, *, bursts: bool = False
) -> ParameterFile:
    base = BOTH_LAWS if bursts else SUM
    proposal = Proposal.of({**base, "dimension": dimension, "delta": 0.5, "n": n})
    return certify(uncertified(proposal, honest=honest))


def seeded(made: ParameterFile, seed: object = 1) -> Randomizer:
    return Randomizer(made, SeededBits(str(seed)), not_private=True)
