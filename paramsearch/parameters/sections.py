"""The sections of a parameter file, but for the problem itself."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from pydantic import AfterValidator, Field

from accounting.model.family import atom
from accounting.model.proof_types import MOST_RELEASES
from paramsearch.parameters.problem_section import Part

_LONGEST_RATIONAL = 1000
"""Characters of a rational."""


def _rational(text: str) -> str:
    value = Fraction(*map(int, text.split("/")))
    if f"{value.numerator}/{value.denominator}" != text:
        raise ValueError(f"{text:.40} is not in lowest terms")
    return text


def _share(text: str) -> str:
    if Fraction(text) >= 1:
        raise ValueError(f"{text:.40} is not less than 1")
    return text


def _atom(elements: tuple[int, ...]) -> tuple[int, ...]:
    if atom(elements) != elements:
        raise ValueError(f"atom {list(elements)} is not sorted")
    return elements


Rational = Annotated[
    str,
    Field(
        pattern=r"^[1-9][0-9]*/[1-9][0-9]*$",
        max_length=_LONGEST_RATIONAL,
        description="A positive rational in lowest terms, numerator/denominator.",
    ),
    AfterValidator(_rational),
]
Probability = Annotated[Rational, AfterValidator(_share)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0, lt=1 << 53)]
Value = Annotated[int, Field(gt=-(1 << 31), lt=1 << 31)]
Input = Annotated[int, Field(ge=0, lt=1 << 31)]
Elements = Annotated[
    tuple[Value, ...], Field(min_length=2, max_length=1 << 20), AfterValidator(_atom)
]


class CentralNoise(Part):
    """The noise on the message +1 and, independently, on the message -1."""

    rate: Rational
    p: Probability
    r: Positive
    mean: Positive
    eps_central: Positive


class AtomNoise(Part):
    """The noise of an atom: all its messages are sent together.  Atoms may repeat; noises add."""

    atom: Elements
    rate: Rational
    p: Probability
    r: Positive
    mean: Positive


class Cost(Part):
    """Expected numbers of messages and bits; a user with input 0 sends one message less."""

    noise_messages: Positive
    messages_per_user: Positive
    bits_per_message: Count
    bits_per_user: Positive


class Error(Part):
    """The error of the sum.  ``rmse_over_central`` compares it with the Discrete Laplace mechanism
    at eps, which for vectors has to hide a change of two coordinates."""

    mse: Positive
    rmse: Positive
    rmse_over_central: NotNegative


class Certificate(Part):
    """Bounds of delta(eps) of the deployed sampler over all changes of one user's input.

    ``proof`` counts the changes by the method that proved them; ``sampler_deviation`` is already
    inside both bounds; ``precision`` is in bits.
    """

    eps: NotNegative
    delta_lower: NotNegative
    delta_upper: Annotated[float, Field(ge=0, le=1)]
    worst_pair: Annotated[tuple[Input, ...], Field(min_length=2, max_length=4)]
    proof: Annotated[dict[str, Count], Field(min_length=1)]
    precision: Count
    sampler_deviation: NotNegative
    software: dict[str, str]


class RepeatedChange(Part, title="Change"):
    """A change of one user's input, and the number of releases in which it is made."""

    change: Annotated[tuple[Input, ...], Field(min_length=2, max_length=4)]
    times: Annotated[int, Field(ge=1, le=MOST_RELEASES)]


class SequenceCertificate(Certificate):
    """Bounds of delta(eps) of the deployed sampler over all sequences of changes, adaptive ones
    included.

    ``worst_sequence`` is a bad sequence that is fixed in advance.  An adaptive one, which begins
    with ``worst_pair``, may attain more; ``delta_lower`` is the larger of what is proved for both.
    """

    worst_sequence: tuple[RepeatedChange, ...]


class Provenance(Part):
    """How the parameters were found; trust in them does not depend on it."""

    tool: str
    version: str
    seed: Count | None
    settings: dict[str, str | float | int | bool | None]
