"""The certified parameter file: JSON that a client can deploy and an auditor can check.

Clients deploy exact rationals.  The noise of an atom is compound Poisson over all n users:
Poisson(rate) events, each a logarithmic(p) count, so one user draws Poisson(rate / n) events; the
sum is NB(r, p) with r = -rate / log(1 - p).  Format 5 has another law besides.  ``r``, ``mean``,
``eps_central``, ``cost`` and ``error`` follow from the rationals; an audit recomputes them.

The certificate is about the multiset of the messages of all users.  It holds if nothing else can be
seen: a shuffler hides where a message comes from, how many messages one user sends, when they are
sent, and every identifier that could be linked.  And it holds for the noise as it was drawn: who is
missing must not depend on the noise.  Few users draw any, and if just these are lost, nothing is
left (paramsearch/deploy/GUIDE.md).

Compatibility.  ``format`` names the layout.  Within one format no field is added, removed or
reinterpreted: a reader refuses unknown fields, and any change of layout or meaning is a new number.
This package reads every format that it has ever written.

``correlated-noise-parameters/1``   inputs are integers.
``correlated-noise-parameters/2``   inputs are integer vectors with at most one non-zero coordinate.
    ``problem.dimension`` is new.  Every coordinate has all the noise of the file to itself; a
    message is a coordinate and a value.  ``cost`` is for all coordinates, ``error`` for each.
    ``certificate.worst_pair`` may be [j, 0, 0, k]: one coordinate loses j, another gains k.
``correlated-noise-parameters/3``   several releases, for any sequence of changes: one user's whole
    sequence of inputs is replaced by any other, chosen adaptively.  ``problem.changes`` is "any",
    ``problem.dimension`` is present for vectors only, and ``certificate.worst_sequence`` lists the
    changes of a bad sequence with the number of releases for each.

``correlated-noise-parameters/4``   the guarantee is for zero-out: ``problem.adjacency`` is
    "zero-out", and one user's input is replaced by none (0, or the empty vector), or appears in its
    place, in every release.  Everything else is as in formats 1 to 3: ``problem.dimension`` is
    present for vectors, ``problem.changes`` and ``certificate.worst_sequence`` for any sequence of
    changes.

``correlated-noise-parameters/5``   some atom has noise that comes in bursts, which earlier readers
    would sample wrongly.  Every atom names its ``law``: "negative-binomial", with the fields of the
    earlier formats, or "burst", with the whole number ``m`` in place of ``r``: Poisson(rate)
    events of all users together, each of 1 + NB(m, p) copies.  Everything else is as in formats 1
    to 4: ``problem.adjacency`` says for which adjacency the guarantee is.

Formats 1 to 3 are for substitution: one user's input is replaced by any other.  That covers
zero-out; the reverse is false.

In formats 1 and 2, and in 4 and 5 without ``problem.changes``, ``releases`` > 1 guarantees less:
it covers only a user who makes the *same change* in every release, not one whose input changes
differently from release to release.

``sha256`` is the hash of the canonical JSON (RFC 8785) of everything else, so white space and the
order of keys do not matter.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, Literal

import rfc8785
from pydantic import (
    BaseModel,
    Field,
    model_validator,
)

from accounting.base import strict_json
from accounting.base.enclosure import Enclosure, Summarized, counted, exactly
from accounting.base.errors import InternalError, InvalidConfiguration
from accounting.base.validation import AnyPath
from accounting.model.change import ZERO_OUT, Change, change_count, directions
from accounting.model.laws.noise import BURST, NEGATIVE_BINOMIAL, NoiseLaw
from accounting.model.mechanism import ExactCentral, Mechanism, noises
from accounting.model.proof_types import BALL, BALL_2D, BALL_COUPLED, COMPARISON, FAST
from paramsearch.files import write_atomically
from paramsearch.parameters.problem_section import (
    TAGS,
    AnyProblem,
    Part,
    ProblemSection,
    VectorSection,
)
from paramsearch.parameters.sections import (
    LAW_TAGS,
    AnyAtomNoise,
    BurstNoise,
    CentralNoise,
    Certificate,
    Cost,
    Error,
    Provenance,
    SequenceCertificate,
    Value,
)
from paramsearch.refusals import refused_in_words

Format = Literal[
    "correlated-noise-parameters/1",
    "correlated-noise-parameters/2",
    "correlated-noise-parameters/3",
    "correlated-noise-parameters/4",
    "correlated-noise-parameters/5",
]
INTEGERS: Format = "correlated-noise-parameters/1"
VECTORS: Format = "correlated-noise-parameters/2"
SEQUENCES: Format = "correlated-noise-parameters/3"
ABSENCES: Format = "correlated-noise-parameters/4"
NAMED_LAWS: Format = "correlated-noise-parameters/5"
refusals = partial(
    refused_in_words,
    hint="`paramsearch schema` describes every field",
    alternatives={*TAGS, *LAW_TAGS, "Certificate", "SequenceCertificate"},
)
"""What a parameter file may not have becomes one InvalidConfiguration."""


class ParameterFile(Summarized, Part):
    """One parameter file, immutable.  ``certificate`` is null until the file is certified.

    The guarantee is about the multiset of the messages of all users.  Whoever sees them must not
    also see the origin of a message; the number of messages of one user (most users draw no noise:
    then an input of 0 sends nothing, and any other input sends itself alone); the time or order of
    sending; identifiers that link messages to each other or to a user.  And the guarantee needs the
    noise of ``problem.n`` users, or of the fraction ``problem.honest`` of them: who is missing must
    not depend on the noise that was drawn, since the few users who drew some have all of it.
    """

    format: Format
    """The layout, with its number."""
    problem: AnyProblem
    """What is guaranteed, and for whom."""
    central: CentralNoise
    """The noise on +1 and -1, which makes the error."""
    atoms: Annotated[tuple[AnyAtomNoise, ...], Field(min_length=1)]
    """The noise on the atoms, which sums to zero."""
    alphabet: Annotated[tuple[Value, ...], Field(min_length=2)]
    """The values of all messages; a message is sent as its place in this list."""
    cost: Cost
    """Expected numbers of messages and bits."""
    error: Error
    """The error of the sum."""
    certificate: Certificate | SequenceCertificate | None
    """The proven bounds of delta; null if nothing is proved."""
    provenance: Provenance
    """How the parameters were found."""
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    """Hash of the canonical JSON of everything else."""

    @property
    def dimension(self) -> int:
        """1 for integers."""
        problem = self.problem
        return problem.dimension if isinstance(problem, VectorSection) else 1

    @property
    def noise(self) -> NoiseLaw:
        """The law that a client has to know: bursts if any atom has them."""
        return BURST if self.format == NAMED_LAWS else NEGATIVE_BINOMIAL

    @model_validator(mode="after")
    def _format_of_the_problem(self) -> ParameterFile:
        if self.format != _format(self.problem, self.atoms):
            raise ValueError(
                f"format = {self.format!r} does not fit: a file with bursts has format 5, else one "
                "with a problem for zero-out has format 4, else one with any changes in several "
                "releases has format 3, else one with a dimension has format 2, one without has 1"
            )
        if any(hasattr(entry, "law") != (self.format == NAMED_LAWS) for entry in self.atoms):
            raise ValueError("every atom has a law in format 5, and none in the formats before")
        return self

    @model_validator(mode="after")
    def _certified_is_claimed(self) -> ParameterFile:
        """A certificate that could not belong to this problem, whatever the parameters."""
        certificate, problem = self.certificate, self.problem
        if certificate is None:
            return self
        worst = certificate.worst_pair
        pairs = change_count(
            max_value=problem.max_value, dimension=self.dimension, adjacency=problem.adjacency
        )
        if certificate.eps != problem.eps:
            raise ValueError(f"certificate.eps = {certificate.eps} is not the problem's")
        if not certificate.delta_lower <= certificate.delta_upper:
            raise ValueError(
                f"certificate.delta_lower = {certificate.delta_lower} is above its delta_upper = "
                f"{certificate.delta_upper}"
            )
        if not certificate.delta_upper <= problem.delta:
            raise ValueError(
                f"certificate.delta_upper = {certificate.delta_upper} does not prove the claim "
                f"problem.delta = {problem.delta}"
            )
        if not self._is_change(worst):
            raise ValueError(f"certificate.worst_pair = {list(worst)} is no change of an input")
        if isinstance(certificate, SequenceCertificate) != hasattr(problem, "changes"):
            raise ValueError(
                "certificate.worst_sequence belongs to any changes in several releases, and only "
                "there"
            )
        if isinstance(certificate, SequenceCertificate):
            made = certificate.worst_sequence
            if made and sum(step.times for step in made) != problem.releases:
                raise ValueError(
                    "certificate.worst_sequence does not have as many changes as "
                    f"there are releases, {problem.releases:,}"
                )
            if not all(self._is_change(step.change) for step in made):
                raise ValueError("certificate.worst_sequence has what is no change of an input")
            if len(directions([Change.of(c.change) for c in made], problem.adjacency)) > 1:
                raise ValueError(
                    "certificate.worst_sequence has inputs that vanish and inputs that appear: "
                    "under zero-out it is one or the other"
                )
        unknown = set(certificate.proof) - {BALL, BALL_2D, BALL_COUPLED, FAST, COMPARISON}
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
        return change.possible(
            max_value=self.problem.max_value,
            dimension=self.dimension,
            adjacency=self.problem.adjacency,
        )

    @model_validator(mode="after")
    def _sealed(self) -> ParameterFile:
        found = digest(self.model_dump(mode="json"))
        if found != self.sha256:
            raise ValueError(
                f"its sha256 is {found[:16]}..., not {self.sha256[:16]}...: the file was changed "
                "after it was sealed; take the original"
            )
        return self

    def mechanism(self) -> Mechanism:
        """Return the mechanism of the deployed sampler with all users."""
        atoms = noises((entry.atom, entry.exact()) for entry in self.atoms)
        central = ExactCentral(p=Fraction(self.central.p), rate=Fraction(self.central.rate))
        return Mechanism(self.problem.max_value, atoms, central, self.dimension)

    def __str__(self) -> str:
        problem = self.problem
        vectors = f", dimension = {self.dimension:,}" if self.dimension > 1 else ""
        several = f", {problem.releases:,} releases" if problem.releases > 1 else ""
        of = " of the rounded integers" if self._rounded else ""
        several += f" with the same change{of} in each" if problem.same_change else ""
        honest = f", honest = {exactly(problem.honest)}" if problem.honest < 1 else ""
        zero_out = ", zero-out" if problem.adjacency == ZERO_OUT else ""
        state = "not certified" if self.certificate is None else "certified"
        return (
            f"({exactly(problem.eps)}, {exactly(problem.delta)}) for n = {problem.n:,}, "
            f"max_value = {problem.max_value:,}{vectors}{several}{honest}{zero_out}; "
            f"{counted(len(self.atoms), 'atom')}, {state}"
        )

    @property
    def _rounded(self) -> bool:
        """Whether the file says that its integers are rounded real values."""
        return {"low", "high"} <= self.provenance.settings.keys()

    def summary(self) -> tuple[str, str]:
        """The problem, and the cost, the error and the bounds that the file states."""
        cost, certificate = self.cost, self.certificate
        numbers = (
            f"{cost.noise_messages:,.1f} noise messages, {cost.messages_per_user:.6g} messages and "
            f"{cost.bits_per_user:.6g} bits per user; RMSE {self.error.rmse:.6g}"
            + (" in steps of the rounding" if self._rounded else "")
        )
        if certificate is not None:
            bounds = Enclosure(certificate.delta_lower, certificate.delta_upper)
            numbers += f"; delta in {bounds}"
        return str(self), numbers

    def canonical(self) -> bytes:
        """The canonical JSON (RFC 8785) of the whole file: what a signature signs."""
        return rfc8785.dumps(self.model_dump(mode="json"))


def _format(problem: ProblemSection, atoms: Iterable[AnyAtomNoise]) -> Format:
    if any(isinstance(entry, BurstNoise) for entry in atoms):
        return NAMED_LAWS
    if problem.adjacency == ZERO_OUT:
        return ABSENCES
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
    content["format"] = _format(parts["problem"], parts["atoms"])
    return from_json({**content, "sha256": digest(content)}, source="the parameters")


def load(path: AnyPath) -> ParameterFile:
    """Read a parameter file and check its form and hash; ``audit`` checks what it says.

    Args:
        path: The file.

    Returns:
        The parameters.

    Raises:
        InvalidConfiguration: If the file cannot be read, has another form, or was changed after it
            was sealed.

    >>> from paramsearch.tables.lookup import shipped_folder
    >>> load(shipped_folder() / "files" / "5-1-1e-06-0.9.json")
    <ParameterFile (1, 1e-06) for n = 1,000,000, max_value = 5; 6 atoms, certified
     5,479.7 noise messages, 1.00548 messages and 3.01644 bits per user; RMSE 7.84615; delta in ...>
    """
    data = strict_json.read(path)
    if isinstance(data, dict) and "format" not in data:
        raise InvalidConfiguration(
            f"{path} has no format, so it is no parameter file; if it is a configuration, "
            "`paramsearch certify` makes one of it"
        )
    return from_json(data, source=str(path))


def from_json(data: Any, *, source: str) -> ParameterFile:
    """From decoded JSON; anything wrong is one InvalidConfiguration."""
    if isinstance(data, dict) and _is_newer(data.get("format")):
        raise InvalidConfiguration(
            f"{source}: format = {data['format']!r:.60} is newer than those that this version of "
            f"paramsearch knows, up to {NAMED_LAWS.partition('/')[2]}: upgrade it"
        )
    with refusals(source):
        try:
            return ParameterFile.model_validate_json(json.dumps(data))
        except RecursionError as error:
            raise InvalidConfiguration(f"{source} is nested too deeply") from error


def _is_newer(given: object) -> bool:
    """Tell whether this names a format that a later version may have."""
    name, _, known = NAMED_LAWS.partition("/")
    found = re.fullmatch(rf"{name}/([1-9][0-9]{{0,8}})", given) if isinstance(given, str) else None
    return found is not None and int(found[1]) > int(known)


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


def save(parameters: ParameterFile, path: AnyPath) -> None:
    """Write a parameter file, whole or not at all; ``load`` gives back the same parameters.

    Args:
        parameters: What to write.
        path: Where to write it.

    Raises:
        InvalidParameter: If it cannot be written there.
        InternalError: If ``load`` would give back something else; then nothing is written.
    """
    text = dumps(parameters)
    if from_json(strict_json.parse(text, source=str(path)), source=str(path)) != parameters:
        raise InternalError(
            f"{path} would not be read as what was to be written, so it is not written: please "
            "report the command"
        )
    write_atomically(path, text.encode())
