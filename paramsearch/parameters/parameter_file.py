"""The certified parameter file: JSON that a client can deploy and an auditor can check.

What is deployed are exact rationals. The noise of an atom is compound Poisson over all n users:
Poisson(rate) events, each a logarithmic(p) count, so a user draws Poisson(rate / n) events; the
sum is NB(r, p) with r = -rate / log(1 - p). ``r``, ``mean``, ``eps_central``, ``cost`` and
``error`` follow from the rationals; an audit recomputes them.

What the certificate is about is the multiset of the messages of all users.  It holds if nothing
else can be seen: a shuffler hides where a message comes from, how many messages one user sends,
when they are sent, and all ids that can be linked.

Compatibility. ``format`` names the layout. Within one format no field is added, removed or
reinterpreted: a reader refuses unknown fields, and any change of layout or meaning is a new number.
A reader of this package reads every format it has ever written.

``correlated-noise-parameters/1``   inputs are integers.
``correlated-noise-parameters/2``   inputs are vectors with at most one non-zero coordinate, an
    integer. ``problem.dimension`` is new. Every coordinate has all the noise of the file to itself;
    a message is a coordinate and a value. ``cost`` is for all coordinates, ``error`` for each.
    ``certificate.worst_pair`` may be [j, 0, 0, k]: one coordinate loses j, another gains k.
``correlated-noise-parameters/3``   several releases, for any sequence of changes: one user's whole
    sequence of values is replaced by any other, chosen adaptively. ``problem.changes`` is "any",
    ``problem.dimension`` is there for vectors only, and ``certificate.worst_sequence`` has the
    changes of a bad sequence, with how often each is made.

In formats 1 and 2, ``releases`` > 1 guarantees less: only that one user makes the *same change* in
every release. A user whose value changes differently from release to release is not covered.

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
    Field,
    ValidationError,
    model_validator,
)

from accounting.base import strict_json
from accounting.base.errors import InvalidConfiguration
from accounting.model.change import Change, change_count
from accounting.model.family import atom
from accounting.model.mechanism import ExactCentral, ExactNoise, Mechanism, noises
from accounting.model.proof_types import BALL, BALL_2D, FAST, MOST_RELEASES
from paramsearch.files import write_atomically
from paramsearch.parameters.problem_section import (
    TAGS,
    AnyProblem,
    Part,
    ProblemSection,
    VectorSection,
)

Format = Literal[
    "correlated-noise-parameters/1",
    "correlated-noise-parameters/2",
    "correlated-noise-parameters/3",
]
INTEGERS: Format = "correlated-noise-parameters/1"
VECTORS: Format = "correlated-noise-parameters/2"
SEQUENCES: Format = "correlated-noise-parameters/3"
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


class CentralNoise(Part):
    """On +1 and, independently, on -1."""

    rate: Rational
    p: Probability
    r: Positive
    mean: Positive
    eps_central: Positive


class AtomNoise(Part):
    """On every message of the atom at once; atoms may repeat, their noises add."""

    atom: Annotated[
        tuple[Value, ...], Field(min_length=2, max_length=1 << 20), AfterValidator(_atom)
    ]
    rate: Rational
    p: Probability
    r: Positive
    mean: Positive


class Cost(Part):
    """Expected values; a user with input 0 sends one message less."""

    noise_messages: Positive
    messages_per_user: Positive
    bits_per_message: Count
    bits_per_user: Positive


class Error(Part):
    """Of the sum; ``rmse_over_central`` is against the Discrete Laplace mechanism at eps, which for
    vectors has to hide a change by twice max_value."""

    mse: Positive
    rmse: Positive
    rmse_over_central: NotNegative


class Certificate(Part):
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


class RepeatedChange(Part, title="Change"):
    """One change of one user's input, and in how many of the releases it is made."""

    change: Annotated[tuple[Input, ...], Field(min_length=2, max_length=4)]
    times: Annotated[int, Field(ge=1, le=MOST_RELEASES)]


class SequenceCertificate(Certificate):
    """delta(eps) of the deployed sampler over all sequences of changes, adaptive ones included.

    ``worst_sequence`` is a fixed sequence that is bad; an adaptive one, which begins with
    ``worst_pair``, may attain more, and ``delta_lower`` is what is proved of either.
    """

    worst_sequence: tuple[RepeatedChange, ...]


class Provenance(Part):
    """How the parameters were found; nothing here is needed to trust them."""

    tool: str
    version: str
    seed: Count | None
    settings: dict[str, str | float | int | bool | None]


class ParameterFile(Part):
    """One parameter file, immutable.  ``certificate`` is null until somebody certifies it.

    The guarantee is about the multiset of the messages of all users.  Whoever sees them must not
    see, besides: the origin of a message; the number of messages of one user (most users draw no
    noise; of those, one with input 0 sends nothing, and any other sends the input alone); the time
    or order of sending; ids that link messages to each other or to a user.  And it needs the noise
    of ``problem.n`` users, or of the fraction ``problem.honest`` of them.
    """

    format: Format
    problem: AnyProblem
    central: CentralNoise
    atoms: Annotated[tuple[AtomNoise, ...], Field(min_length=1)]
    alphabet: Annotated[tuple[Value, ...], Field(min_length=2)]
    cost: Cost
    error: Error
    certificate: Certificate | SequenceCertificate | None
    provenance: Provenance
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]

    @property
    def dimension(self) -> int:
        """1 for integers."""
        problem = self.problem
        return problem.dimension if isinstance(problem, VectorSection) else 1

    @model_validator(mode="after")
    def _format_of_the_problem(self) -> ParameterFile:
        if self.format != _format(self.problem):
            raise ValueError(
                f"format = {self.format!r} does not fit: a problem with any changes in several "
                "releases has format 3, else one with a dimension has format 2, one without has 1"
            )
        return self

    @model_validator(mode="after")
    def _certified_is_claimed(self) -> ParameterFile:
        """A certificate that could not belong to this problem, whatever the parameters."""
        certificate, problem = self.certificate, self.problem
        if certificate is None:
            return self
        worst = certificate.worst_pair
        pairs = change_count(max_value=problem.max_value, dimension=self.dimension)
        if certificate.eps != problem.eps:
            raise ValueError(f"certificate.eps = {certificate.eps} is not the problem's")
        if not certificate.delta_lower <= certificate.delta_upper <= problem.delta:
            raise ValueError("certificate: delta_lower <= delta_upper <= problem.delta fails")
        if not self._is_change(worst):
            raise ValueError(f"certificate.worst_pair = {list(worst)} is no change of an input")
        if isinstance(certificate, SequenceCertificate) != (self.format == SEQUENCES):
            raise ValueError("certificate.worst_sequence belongs to format 3, and only there")
        if isinstance(certificate, SequenceCertificate):
            made = certificate.worst_sequence
            if made and sum(step.times for step in made) != problem.releases:
                raise ValueError(
                    "certificate.worst_sequence does not have as many changes as "
                    f"there are releases, {problem.releases:,}"
                )
            if not all(self._is_change(step.change) for step in made):
                raise ValueError("certificate.worst_sequence has what is no change of an input")
        unknown = set(certificate.proof) - {BALL, BALL_2D, FAST}
        if unknown:
            raise ValueError(f"certificate.proof has the unknown method {min(unknown)!r:.40}")
        if sum(certificate.proof.values()) != pairs:
            raise ValueError(f"certificate.proof does not cover the {pairs} ordered pairs")
        return self

    def _is_change(self, listed: tuple[int, ...]) -> bool:
        try:
            change = Change.of(listed)
        except ValueError:
            return False
        return change.possible(max_value=self.problem.max_value, dimension=self.dimension)

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


def _format(problem: ProblemSection) -> Format:
    if hasattr(problem, "changes"):
        return SEQUENCES
    return VECTORS if isinstance(problem, VectorSection) else INTEGERS


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
        where = ".".join(str(part) for part in first["loc"] if part not in TAGS)
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
    """The JSON Schema of all formats of the file (2020-12).

    Parts are published under their titles, which do not change with the names of classes.
    """
    text = json.dumps(ParameterFile.model_json_schema())
    for name, part in json.loads(text)["$defs"].items():
        text = text.replace(f'"#/$defs/{name}"', f'"#/$defs/{part["title"]}"')
    document = json.loads(text)
    parts = {part["title"]: part for part in document["$defs"].values()}
    document["$defs"] = dict(sorted(parts.items()))

    def requires(part: str, field: str) -> dict[str, Any]:
        return {"properties": {part: {"type": "object", "required": [field]}}}

    dimension, changes = requires("problem", "dimension"), requires("problem", "changes")
    of_format = {
        INTEGERS: {"not": {"anyOf": [dimension, changes]}},
        VECTORS: {"allOf": [dimension, {"not": changes}]},
        SEQUENCES: changes,
    }
    document["allOf"] = [
        {"if": {"properties": {"format": {"const": name}}}, "then": then}
        for name, then in of_format.items()
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{SEQUENCES.replace('/', ':')}",
        **document,
    }
