"""The sections of a parameter file, but for the problem itself."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from accounting.model.family import atom
from accounting.model.laws.burst import LARGEST_M, Burst
from accounting.model.laws.negative_binomial import NegativeBinomial
from accounting.model.laws.noise import BURST, NEGATIVE_BINOMIAL
from accounting.model.mechanism import ExactBurst, ExactNoise
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
    """Expected number of noise events of all users together, for each of +1 and -1."""
    p: Probability
    """Parameter of the logarithmic number of copies that an event has."""
    r: Positive
    """The sum of the copies is NB(r, p) over all users: r = -rate / log(1 - p)."""
    mean: Positive
    """Expected number of copies of all users together, r p / (1 - p)."""
    eps_central: Positive
    """The privacy loss that this noise alone has for a change of the sum by max_value."""

    def rounded(self) -> NegativeBinomial:
        """The law of each of the two noises in doubles."""
        return NegativeBinomial(self.r, float(Fraction(self.p)))


class AtomNoise(Part):
    """The noise of an atom: all its messages are sent together.  Atoms may repeat; noises add."""

    atom: Elements
    """The values of the messages that are sent together, sorted; their sum is zero."""
    rate: Rational
    """Expected number of noise events of all users together."""
    p: Probability
    """Parameter of the logarithmic number of copies that an event has."""
    r: Positive
    """The sum of the copies is NB(r, p) over all users: r = -rate / log(1 - p)."""
    mean: Positive
    """Expected number of copies of all users together, r p / (1 - p)."""

    def exact(self) -> ExactNoise:
        """The law of this noise."""
        return ExactNoise(p=Fraction(self.p), rate=Fraction(self.rate))

    def rounded(self) -> NegativeBinomial:
        """The law in doubles."""
        return NegativeBinomial(self.r, float(Fraction(self.p)))


class NamedAtomNoise(AtomNoise, title="NegativeBinomialNoise"):
    """The noise of an atom in a file that names the law of each, since some come in bursts."""

    law: Literal["negative-binomial"]
    """Events with a logarithmic(p) number of copies each."""


class BurstNoise(Part):
    """The noise of an atom that comes in bursts: each has 1 copy and NB(m, p) more, which is the
    sum of m geometric numbers.  Atoms may repeat; noises add."""

    atom: Elements
    """The values of the messages that are sent together, sorted; their sum is zero."""
    law: Literal["burst"]
    """Events with 1 + NB(m, p) copies each."""
    rate: Rational
    """Expected number of noise events of all users together."""
    p: Probability
    """Parameter of the geometric numbers: each is k with probability (1 - p) p^k."""
    m: Annotated[int, Field(ge=1, le=LARGEST_M)]
    """Number of geometric numbers of an event."""
    mean: Positive
    """Expected number of copies of all users together, rate (1 + m p / (1 - p))."""

    def exact(self) -> ExactBurst:
        """The law of this noise."""
        return ExactBurst(p=Fraction(self.p), rate=Fraction(self.rate), m=self.m)

    def rounded(self) -> Burst:
        """The law in doubles."""
        return Burst(float(Fraction(self.rate)), float(Fraction(self.p)), self.m)


def _law(noise: Any) -> str:
    """How the law of an atom is written: not at all before format 5."""
    found = noise.get("law") if isinstance(noise, dict) else getattr(noise, "law", None)
    return "unnamed" if found is None else str(found)


LAW_TAGS = {"unnamed", NEGATIVE_BINOMIAL, BURST}
AnyAtomNoise = Annotated[
    Annotated[AtomNoise, Tag("unnamed")]
    | Annotated[NamedAtomNoise, Tag(NEGATIVE_BINOMIAL)]
    | Annotated[BurstNoise, Tag(BURST)],
    Discriminator(_law),
]


class Cost(Part):
    """Expected numbers of messages and bits; a user with input 0 sends one message less."""

    noise_messages: Positive
    """Expected number of noise messages of all users together."""
    messages_per_user: Positive
    """Expected number of messages of a user whose input is not 0."""
    bits_per_message: Count
    """Length of a message."""
    bits_per_user: Positive
    """Expected number of bits of a user whose input is not 0."""


class Error(Part):
    """The error of the sum.  ``rmse_over_central`` compares it with the Discrete Laplace mechanism
    at eps, which for vectors has to hide a change of two coordinates, or of one under zero-out."""

    mse: Positive
    """Mean squared error of the sum; for vectors, of every coordinate."""
    rmse: Positive
    """Its square root."""
    rmse_over_central: NotNegative
    """``rmse`` in units of that of the Discrete Laplace mechanism for one release."""


class Certificate(Part):
    """Bounds of delta(eps) of the deployed sampler over all changes of one user's input, with the
    noise of the fraction ``problem.honest`` of the users; who is missing must not depend on the
    noise that was drawn.

    ``proof`` counts the changes by the method that bounded them from above; a method with 0 gave no
    more than ``delta_lower``.  ``sampler_deviation`` is already inside both bounds; ``precision``
    is in bits.
    """

    eps: NotNegative
    """The eps of the bounds, that of the problem."""
    delta_lower: NotNegative
    """delta(eps) is at least this."""
    delta_upper: Annotated[float, Field(ge=0, le=1)]
    """delta(eps) is at most this."""
    worst_pair: Annotated[tuple[Input, ...], Field(min_length=2, max_length=4)]
    """The worst change that is known: [j, k], or for vectors also [j, 0, 0, k]."""
    proof: Annotated[dict[str, Count], Field(min_length=1)]
    """Number of changes by the method that bounded them from above."""
    precision: Count
    """Working precision of the proof in bits."""
    sampler_deviation: NotNegative
    """What the deployed sampler may add to delta; inside both bounds."""
    software: dict[str, str]
    """Versions of what made the proof."""


class RepeatedChange(Part, title="Change"):
    """A change of one user's input, and the number of releases in which it is made."""

    change: Annotated[tuple[Input, ...], Field(min_length=2, max_length=4)]
    """The change: [j, k], or for vectors also [j, 0, 0, k]."""
    times: Annotated[int, Field(ge=1, le=MOST_RELEASES)]
    """Number of releases in which it is made."""


class SequenceCertificate(Certificate):
    """Bounds of delta(eps) of the deployed sampler over all sequences of changes, adaptive ones
    included.

    ``worst_sequence`` is a bad sequence that is fixed in advance.  An adaptive one, which begins
    with ``worst_pair``, may attain more; ``delta_lower`` is the larger of what is proved for both.
    """

    worst_sequence: tuple[RepeatedChange, ...]
    """The changes of a bad sequence that is fixed in advance, in their order."""


class Provenance(Part):
    """How the parameters were found; trust in them does not depend on it."""

    tool: str
    """Name of the program that wrote the file."""
    version: str
    """Version of that program."""
    seed: Count | None
    """Seed of the search; null if there was none."""
    settings: dict[str, str | float | int | bool | None]
    """Options and findings of the search."""
