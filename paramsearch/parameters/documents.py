"""Documents that may be audited: a parameter file, or a configuration that is proposed.

A file of a known format whose hash, certificate or numbers do not fit is rejected, not ignored:
where its problem and its noise can be read all the same, an audit says what that noise gives.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field

from accounting.base import strict_json
from accounting.base.errors import AccountingError, InvalidConfiguration, InvalidParameter
from accounting.base.validation import AnyPath
from accounting.model.configuration import Proposal, blaming, exact_law
from accounting.model.costs import LARGEST_STEP
from accounting.model.laws.burst import LARGEST_M
from accounting.model.laws.noise import BURST, NEGATIVE_BINOMIAL, NoiseLaw
from accounting.model.mechanism import (
    ExactBurst,
    ExactCentral,
    ExactLaw,
    ExactNoise,
    Mechanism,
    noises,
)
from paramsearch.parameters.assembly import assemble, consistent
from paramsearch.parameters.parameter_file import Format, ParameterFile, from_json, refusals
from paramsearch.parameters.problem_section import AnyProblem
from paramsearch.parameters.sections import Elements, Probability, Provenance, Rational


@dataclass(frozen=True)
class RejectedFile:
    """A parameter file that is not what it says it is.

    Attributes:
        reason: Why it is rejected, in one sentence.
        remade: The file that its problem and its noise make, with every other number computed again
            and without a certificate; None if they cannot be read.
    """

    reason: str
    remade: ParameterFile | None


Document = ParameterFile | Proposal | RejectedFile


@dataclass(frozen=True)
class Source:
    """A document, and the SHA-256 of the bytes that it was read from."""

    document: Document
    sha256: str


class _Readable(BaseModel):
    """The fields that say what is deployed, whatever else a file has."""

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)


class _Noise(_Readable):
    rate: Rational
    p: Probability


class _NoiseOfAtom(_Noise):
    """The noise of an atom, of either law; a field that the law does not have is ignored, as all
    others are."""

    atom: Elements
    law: NoiseLaw = NEGATIVE_BINOMIAL
    m: Annotated[int, Field(ge=1, le=LARGEST_M)] | None = None

    def exact(self) -> ExactLaw:
        p, rate = Fraction(self.p), Fraction(self.rate)
        if self.law == BURST:
            if self.m is None:
                raise InvalidConfiguration(f"the bursts of atom {list(self.atom)} have no m")
            return ExactBurst(p=p, rate=rate, m=self.m)
        return ExactNoise(p=p, rate=rate)


class _Deployed(_Readable):
    problem: AnyProblem
    central: _Noise
    atoms: Annotated[tuple[_NoiseOfAtom, ...], Field(min_length=1)]


def mechanism_of(document: ParameterFile | Proposal) -> Mechanism:
    """What is deployed when every user adds noise; doubles are the exact numbers they are."""
    if isinstance(document, ParameterFile):
        return document.mechanism()
    if document.eps_central / document.max_value > LARGEST_STEP:
        raise InvalidParameter(
            f"eps_central = {document.eps_central} leaves no central noise at max_value = "
            f"{document.max_value}; take at most {LARGEST_STEP:g} per unit"
        )
    atoms = noises(
        (elements, None if noise is None else exact_law(noise))
        for elements, noise in document.atoms
    )
    step = Fraction(document.eps_central) / document.max_value
    return Mechanism(document.max_value, atoms, ExactCentral(step=step), document.dimension)


def read(path: AnyPath) -> ParameterFile | Proposal:
    """Read a parameter file (it has a ``format``) or a bare configuration.

    Args:
        path: The file.

    Returns:
        Whichever it is.

    Raises:
        InvalidConfiguration: If it is neither, or a parameter file that was changed.
        InvalidParameter: If a number of a configuration is outside its domain.
    """
    return _document(*_parsed(path)[:2])


def read_source(path: AnyPath) -> Source:
    """Read what may be audited, also a parameter file that has to be rejected.

    Args:
        path: The file.

    Returns:
        The document, with the hash of the bytes of the file.

    Raises:
        InvalidConfiguration: If it cannot be read, or is neither a configuration nor a parameter
            file of a known format.
        InvalidParameter: If a number of a configuration is outside its domain.

    >>> from paramsearch.tables.lookup import shipped_folder
    >>> found = read_source(shipped_folder() / "files" / "5-1-1e-06-0.9.json")
    >>> found.document.problem.max_value, len(found.sha256)
    (5, 64)
    """
    data, source, content = _parsed(path)
    document: Document
    try:
        document = _document(data, source)
    except InvalidConfiguration as error:
        if not isinstance(data, dict) or data.get("format") not in get_args(Format):
            raise
        document = RejectedFile(str(error).removeprefix(f"{source}: "), _remade(data))
    return Source(checked(document), hashlib.sha256(content).hexdigest())


def checked(document: Document) -> Document:
    """The document itself, unless it is a parameter file whose numbers contradict each other."""
    if not isinstance(document, ParameterFile):
        return document
    try:
        consistent(document)
    except InvalidConfiguration as error:
        return RejectedFile(str(error), _remade(document.model_dump(mode="json")))
    return document


def _parsed(path: AnyPath) -> tuple[Any, str, bytes]:
    """The value in a file, what errors call it, and the bytes."""
    source, content = str(path), strict_json.read_bytes(path)
    text = strict_json.decoded(content, source=source)
    return strict_json.parse(text, source=source), source, content


def _document(data: Any, source: str) -> ParameterFile | Proposal:
    if isinstance(data, dict) and "format" in data:
        return from_json(data, source=source)
    with blaming(source):
        return Proposal.of(data)


def _remade(data: dict[str, Any]) -> ParameterFile | None:
    """The file of the problem and the rationals alone; None if they cannot be read."""
    try:
        with refusals("the file"):
            found = _Deployed.model_validate_json(json.dumps(data))
        central = ExactCentral(p=Fraction(found.central.p), rate=Fraction(found.central.rate))
        atoms = [(entry.atom, entry.exact()) for entry in found.atoms]
        made = Provenance(tool="unknown", version="unknown", seed=None, settings={})
        return assemble(found.problem, central, atoms, made)
    except (AccountingError, RecursionError):
        return None
