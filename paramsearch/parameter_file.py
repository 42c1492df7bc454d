"""The certified parameter file: JSON that a client can deploy and an auditor can check.

What is deployed are exact rationals. The noise of an atom is compound Poisson over all n users:
Poisson(rate) events, each a logarithmic(p) count, so a user draws Poisson(rate / n) events; the
sum is NB(r, p) with r = -rate / log(1 - p). ``r``, ``mean``, ``eps_central``, ``cost`` and
``error`` follow from the rationals; an audit recomputes them.

Compatibility. ``format`` names the layout. Within one format no field is added, removed or
reinterpreted: a reader refuses unknown fields, and any change of layout or meaning is a new number.
A reader of this package reads every format it has ever written.

``correlated-noise-parameters/1``   inputs are integers.
``correlated-noise-parameters/2``   inputs are vectors with at most one non-zero coordinate, an
    integer. ``problem.dimension`` is new. Every coordinate has all the noise of the file to itself;
    a message is a coordinate and a value. ``cost`` is for all coordinates, ``error`` for each.
    ``certificate.worst_pair`` may be [j, 0, 0, k]: one coordinate loses j, another gains k.

``sha256`` is taken over the canonical JSON (RFC 8785) of everything else, so white space and the
order of keys are free.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

import rfc8785
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    model_validator,
)

from accounting import InvalidConfiguration, strict_json
from accounting.configuration import LARGEST_DIMENSION
from accounting.family import atom
from accounting.notary import ExactCentral, ExactNoise, Mechanism
from accounting.notary.mechanism import noises
from accounting.notary.notary import BALL, BALL_2D
from accounting.proof import FAST
from paramsearch.files import write_atomically

Format = Literal["correlated-noise-parameters/1", "correlated-noise-parameters/2"]
INTEGERS: Format = "correlated-noise-parameters/1"
VECTORS: Format = "correlated-noise-parameters/2"
_LONGEST_RATIONAL = 1000


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


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


class Problem(_Part):
    """What is guaranteed: (eps, delta) for every change of one user's input, for all the releases
    together, as long as the fraction ``honest`` of the n users adds its noise."""

    n: Annotated[int, Field(ge=1, lt=1 << 53)]
    max_value: Annotated[int, Field(ge=1, le=1 << 20)]
    eps: Annotated[float, Field(ge=0, le=1000)]
    delta: Annotated[float, Field(gt=0, lt=1)]
    adjacency: Literal["substitution"]
    releases: Annotated[int, Field(ge=1, lt=1 << 31)]
    honest: Annotated[float, Field(gt=0, le=1)]


class VectorProblem(Problem):
    """The same for vectors of this dimension with at most one non-zero coordinate: a change takes
    the value from one coordinate and puts one at the same or another."""

    dimension: Annotated[int, Field(ge=2, le=LARGEST_DIMENSION)]


_TAGS = {"integers", "vectors"}


def _kind(problem: Any) -> str:
    stated = "dimension" in problem if isinstance(problem, dict) else hasattr(problem, "dimension")
    return "vectors" if stated else "integers"


AnyProblem = Annotated[
    Annotated[Problem, Tag("integers")] | Annotated[VectorProblem, Tag("vectors")],
    Discriminator(_kind),
]


class CentralNoise(_Part):
    """On +1 and, independently, on -1."""

    rate: Rational
    p: Probability
    r: Positive
    mean: Positive
    eps_central: Positive


class AtomNoise(_Part):
    """On every message of the atom at once; atoms may repeat, their noises add."""

    atom: Annotated[
        tuple[Value, ...], Field(min_length=2, max_length=1 << 20), AfterValidator(_atom)
    ]
    rate: Rational
    p: Probability
    r: Positive
    mean: Positive


class Cost(_Part):
    """Expected values; a user with input 0 sends one message less."""

    noise_messages: Positive
    messages_per_user: Positive
    bits_per_message: Count
    bits_per_user: Positive


class Error(_Part):
    """Of the sum; ``rmse_over_central`` is against the Discrete Laplace mechanism at eps, which for
    vectors has to hide a change by twice max_value."""

    mse: Positive
    rmse: Positive
    rmse_over_central: NotNegative


class Certificate(_Part):
    """delta(eps) of the deployed sampler over all ordered pairs.

    ``proof`` counts the pairs by the method that proved them; ``sampler_deviation`` is inside both
    bounds; ``precision`` is in bits.
    """

    eps: NotNegative
    delta_lower: NotNegative
    delta_upper: Annotated[float, Field(ge=0, le=1)]
    worst_pair: Annotated[tuple[Input, ...], Field(min_length=2, max_length=4)]
    proof: Annotated[dict[str, Count], Field(min_length=1)]
    precision: Count
    sampler_deviation: NotNegative
    software: dict[str, str]


class Provenance(_Part):
    """How the parameters were found; nothing here is needed to trust them."""

    tool: str
    version: str
    seed: Count | None
    settings: dict[str, str | float | int | bool | None]


class ParameterFile(_Part):
    """One parameter file, immutable.  ``certificate`` is null until somebody certifies it."""

    format: Format
    problem: AnyProblem
    central: CentralNoise
    atoms: Annotated[tuple[AtomNoise, ...], Field(min_length=1)]
    alphabet: Annotated[tuple[Value, ...], Field(min_length=2)]
    cost: Cost
    error: Error
    certificate: Certificate | None
    provenance: Provenance
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]

    @property
    def dimension(self) -> int:
        """1 for integers."""
        problem = self.problem
        return problem.dimension if isinstance(problem, VectorProblem) else 1

    @model_validator(mode="after")
    def _format_of_the_problem(self) -> ParameterFile:
        if self.format != _format(self.problem):
            raise ValueError(
                f"format = {self.format!r} does not fit: a problem with a dimension has format 2, "
                "one without has format 1"
            )
        return self

    @model_validator(mode="after")
    def _certified_is_claimed(self) -> ParameterFile:
        """A certificate that could not belong to this problem, whatever the parameters."""
        certificate, problem = self.certificate, self.problem
        if certificate is None:
            return self
        worst, pairs = certificate.worst_pair, pair_count(problem)
        if certificate.eps != problem.eps:
            raise ValueError(f"certificate.eps = {certificate.eps} is not the problem's")
        if not certificate.delta_lower <= certificate.delta_upper <= problem.delta:
            raise ValueError("certificate: delta_lower <= delta_upper <= problem.delta fails")
        changed = len(worst) == 2 and worst[0] != worst[1]
        if len(worst) == 4 and self.dimension > 1:
            changed = worst[1] == worst[2] == 0 < min(worst[0], worst[3])
        if max(worst) > problem.max_value or not changed:
            raise ValueError(f"certificate.worst_pair = {list(worst)} is no change of an input")
        unknown = set(certificate.proof) - {BALL, BALL_2D, FAST}
        if unknown:
            raise ValueError(f"certificate.proof has the unknown method {min(unknown)!r:.40}")
        if sum(certificate.proof.values()) != pairs:
            raise ValueError(f"certificate.proof does not cover the {pairs} ordered pairs")
        return self

    @model_validator(mode="after")
    def _sealed(self) -> ParameterFile:
        found = digest(self.model_dump(mode="json"))
        if found != self.sha256:
            raise ValueError(
                f"its sha256 is {found[:16]}..., not {self.sha256[:16]}...: the file was changed "
                "after it was sealed"
            )
        return self

    def mechanism(self) -> Mechanism:
        """What the deployed sampler does with all users."""
        atoms = noises(
            (entry.atom, ExactNoise(p=Fraction(entry.p), rate=Fraction(entry.rate)))
            for entry in self.atoms
        )
        central = ExactCentral(p=Fraction(self.central.p), rate=Fraction(self.central.rate))
        return Mechanism(self.problem.max_value, atoms, central, self.dimension)

    def canonical(self) -> bytes:
        """The canonical JSON (RFC 8785) of the whole file: what a signature signs."""
        return rfc8785.dumps(self.model_dump(mode="json"))


def pair_count(problem: Problem) -> int:
    """How many changes of one input there are, ordered."""
    top = problem.max_value
    moves = top * top if isinstance(problem, VectorProblem) else 0
    return top * (top + 1) + moves


def _format(problem: Problem) -> Format:
    return VECTORS if isinstance(problem, VectorProblem) else INTEGERS


def digest(document: Mapping[str, Any]) -> str:
    """SHA-256 over the canonical JSON of all fields but ``sha256``."""
    content = {key: value for key, value in document.items() if key != "sha256"}
    return hashlib.sha256(rfc8785.dumps(content)).hexdigest()


def sealed(**parts: Any) -> ParameterFile:
    """A parameter file with its hash, from the parts of the model."""
    content = {
        name: part.model_dump(mode="json") if isinstance(part, BaseModel) else part
        for name, part in parts.items()
    }
    content["atoms"] = [entry.model_dump(mode="json") for entry in parts["atoms"]]
    content["format"] = _format(parts["problem"])
    return from_json({**content, "sha256": digest(content)}, source="the parameters")


def load(path: Path) -> ParameterFile:
    """Read a file and check its form and hash; ``paramsearch.audit`` checks what it says."""
    return from_json(strict_json.read(path), source=str(path))


def from_json(data: Any, *, source: str) -> ParameterFile:
    """From decoded JSON; anything wrong is one InvalidConfiguration."""
    with refusals(source):
        try:
            return ParameterFile.model_validate_json(json.dumps(data))
        except RecursionError as error:
            raise InvalidConfiguration(f"{source} is nested too deeply") from error


@contextmanager
def refusals(source: str) -> Iterator[None]:
    """What a model refuses becomes one InvalidConfiguration that names the place and the value."""
    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part not in _TAGS)
        given = "" if isinstance(first["input"], (dict, list)) else f" = {first['input']!r:.60}"
        message = first["msg"].removeprefix("Value error, ")
        text = f"{where}{given}: {message}" if where else message
        raise InvalidConfiguration(f"{source}: {text}") from None
    except rfc8785.CanonicalizationError as error:
        raise InvalidConfiguration(f"{source} has no canonical form: {error}") from error


def dumps(parameters: ParameterFile) -> str:
    """The text of the file; ``from_json`` of it gives the same parameters."""
    return _pretty(parameters.model_dump(mode="json"), "\n") + "\n"


def _pretty(value: Any, line: str) -> str:
    """Indented JSON with lists of numbers on one line."""
    deeper = line + " "
    if isinstance(value, dict) and value:
        items = [f"{json.dumps(key)}: {_pretty(item, deeper)}" for key, item in value.items()]
        return "{" + deeper + f",{deeper}".join(items) + line + "}"
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        items = [_pretty(item, deeper) for item in value]
        return "[" + deeper + f",{deeper}".join(items) + line + "]"
    return json.dumps(value)


def save(parameters: ParameterFile, path: Path) -> None:
    """Write the file atomically."""
    text = dumps(parameters)
    assert from_json(strict_json.parse(text, source=str(path)), source=str(path)) == parameters
    write_atomically(path, text.encode())


def schema() -> dict[str, Any]:
    """The JSON Schema of both formats of the file (2020-12)."""
    document = ParameterFile.model_json_schema()
    of_vectors = {"properties": {"problem": {"required": ["dimension"]}}}
    document["if"] = {"properties": {"format": {"const": VECTORS}}}
    document["then"] = of_vectors
    document["else"] = {"not": of_vectors}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{VECTORS.replace('/', ':')}",
        **document,
    }
