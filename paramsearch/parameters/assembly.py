"""From a configuration to a parameter file, and from a parameter file to a certified one."""

from __future__ import annotations

import math
from fractions import Fraction
from importlib import metadata
from typing import Any

from flint import arb

from accounting.base.balls import above, ball, ceil, precision
from accounting.base.errors import (
    InvalidConfiguration,
    InvalidParameter,
)
from accounting.base.validation import not_negative, probability, share, whole
from accounting.model.configuration import Proposal
from accounting.model.costs import bits_per_message
from accounting.model.family import Atom
from accounting.model.mechanism import ExactCentral, ExactNoise
from paramsearch.parameters.honest_fraction import as_written
from paramsearch.parameters.parameter_file import (
    AtomNoise,
    CentralNoise,
    Certificate,
    Cost,
    Error,
    ParameterFile,
    Provenance,
    refusals,
    sealed,
)
from paramsearch.parameters.problem_section import ProblemSection, problem_of

_CLOSE = 1e-12
"""Relative difference up to which a derived number counts as the same."""
_BITS = 192
"""Working precision for everything that is derived from the rationals."""
_RATE_BITS = 64
"""Significant bits of an atom's rate."""
_CENTRAL_RATE_BITS = 192
"""Fractional bits of the central rate, whose deviation from NB(1, q) is paid for in delta."""


def uncertified(
    proposal: Proposal,
    *,
    releases: int = 1,
    same_change: bool = False,
    honest: float = 1.0,
    seed: int | None = None,
    settings: dict[str, Any] | None = None,
) -> ParameterFile:
    """The deployable rationals of a configuration, rounded to no less noise; not certified yet.

    Several ``releases`` are for any sequence of changes of one user; with ``same_change`` only for
    the same change in each of them.
    With ``honest`` < 1 everybody adds so much more noise that this fraction of the users suffices.
    """
    with refusals("the problem"):
        problem = problem_of(
            dimension=proposal.dimension,
            same_change=same_change,
            n=whole("n", _given("n", proposal.n), least=1),
            max_value=proposal.max_value,
            eps=not_negative("eps", _given("eps", proposal.eps)),
            delta=probability("delta", _given("delta", proposal.delta)),
            adjacency="substitution",
            releases=whole("releases", releases, least=1),
            honest=share("honest", honest),
        )
    fraction = as_written(problem.honest)
    with precision(_BITS):
        q = min(
            above((-ball(Fraction(proposal.eps_central) / proposal.max_value)).exp()), _BELOW_ONE
        )
        central_rate = -(1 - ball(Fraction(q))).log() / ball(fraction)
        central = ExactCentral(p=Fraction(q), rate=_up(central_rate, _CENTRAL_RATE_BITS))
        atoms = []
        listed: dict[tuple[Atom, float], Fraction] = {}
        for elements, r, p in proposal.atoms:
            if r > 0 and p > 0:  # otherwise there is nothing to sample
                listed[elements, p] = listed.get((elements, p), Fraction(0)) + Fraction(r)
        for (elements, p), whole_r in listed.items():
            rate = ball(whole_r) * -(1 - ball(p)).log() / ball(fraction)
            digits = _RATE_BITS - math.frexp(float(rate.mid()))[1]
            atoms.append((elements, ExactNoise(p=Fraction(p), rate=_up(rate, digits))))
    return assemble(
        problem,
        central,
        atoms,
        Provenance(
            tool="paramsearch",
            version=metadata.version("paramsearch"),
            seed=seed,
            settings=settings or {},
        ),
    )


_BELOW_ONE = math.nextafter(1.0, 0.0)


def _given(name: str, value: Any) -> Any:
    if value is None:
        raise InvalidParameter(f"{name} is not given: add it to the configuration or as --{name}")
    return value


def _up(value: arb, bits: int) -> Fraction:
    """A multiple of 2^-bits at or above the ball, and hardly more."""
    return Fraction(ceil(value * arb(2) ** bits)) / Fraction(2) ** bits


def assemble(
    problem: ProblemSection,
    central: ExactCentral,
    atoms: list[tuple[tuple[int, ...], ExactNoise]],
    provenance: Provenance,
    certificate: Certificate | None = None,
) -> ParameterFile:
    """The file of these rationals; everything that follows from them is computed here."""
    assert central.p is not None
    assert central.rate is not None
    if not atoms:
        raise InvalidConfiguration("no atom has noise; give some to [-1, 1] at least")
    with precision(_BITS), refusals("the parameters"):
        q = ball(central.p)
        central_mean = central.share() * q / (1 - q)
        dimension = getattr(problem, "dimension", 1)
        noise = 2 * central_mean
        entries = []
        for elements, part in atoms:
            assert part.rate is not None
            p, r = ball(part.p), part.shape()
            mean = r * p / (1 - p)
            noise += len(elements) * mean
            entries.append(
                AtomNoise(
                    atom=elements,
                    rate=_text(part.rate),
                    p=_text(part.p),
                    r=_double(r),
                    mean=_double(mean),
                )
            )
        alphabet = _alphabet(problem.max_value, [elements for elements, _ in atoms])
        bits = bits_per_message(dimension * len(alphabet))
        noise *= dimension
        per_user = 1 + noise / problem.n
        mse = 2 * central_mean / (1 - q)
        half = ball(problem.eps) / (2 * problem.max_value * min(dimension, 2))
        ratio = (mse * 2).sqrt() * half.sinh()
        return sealed(
            problem=problem,
            central=CentralNoise(
                rate=_text(central.rate),
                p=_text(central.p),
                r=_double(central.share()),
                mean=_double(central_mean),
                eps_central=_double(central.loss() * problem.max_value),
            ),
            atoms=tuple(entries),
            alphabet=alphabet,
            cost=Cost(
                noise_messages=_double(noise),
                messages_per_user=_double(per_user),
                bits_per_message=bits,
                bits_per_user=_double(bits * per_user),
            ),
            error=Error(
                mse=_double(mse), rmse=_double(mse.sqrt()), rmse_over_central=_double(ratio)
            ),
            certificate=certificate,
            provenance=provenance,
        )


def _alphabet(max_value: int, atoms: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The values in use, by magnitude, positive first; a message is its index here."""
    used = {1, -1, *range(2, max_value + 1), *(value for elements in atoms for value in elements)}
    return tuple(sorted(used, key=lambda value: (abs(value), value < 0)))


def _text(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}"


def _double(value: arb) -> float:
    return float(value.mid())


def reassembled(file: ParameterFile, certificate: Certificate | None) -> ParameterFile:
    """The same problem, rationals and provenance, with everything else computed anew."""
    return _assembled_for(file, file.problem, certificate)


def _assembled_for(
    file: ParameterFile, problem: ProblemSection, certificate: Certificate | None
) -> ParameterFile:
    central = ExactCentral(p=Fraction(file.central.p), rate=Fraction(file.central.rate))
    atoms = [
        (entry.atom, ExactNoise(p=Fraction(entry.p), rate=Fraction(entry.rate)))
        for entry in file.atoms
    ]
    return assemble(problem, central, atoms, file.provenance, certificate)


def rescaled(file: ParameterFile, n: int) -> ParameterFile:
    """The same noise in all for another number of users; not certified yet.

    What the view contains does not depend on n, only who adds which part of it.
    """
    return _assembled_for(file, _with_users(file.problem, n), None)


def _with_users(problem: ProblemSection, n: int) -> ProblemSection:
    with refusals("the problem"):
        return type(problem)(**{**problem.model_dump(), "n": whole("n", n, least=1)})


def for_users(file: ParameterFile, n: int) -> ParameterFile:
    """The same noise for another number of users, with the certificate: that is about the view,
    which does not depend on who adds which part of the noise."""
    return _assembled_for(file, _with_users(file.problem, n), file.certificate)


def consistent(file: ParameterFile) -> None:
    """Everything that follows from the rationals must be what they give."""
    expected = reassembled(file, file.certificate).model_dump(mode="json")
    _compare(file.model_dump(mode="json"), expected, "")


def _compare(given: Any, expected: Any, where: str) -> None:
    if isinstance(given, dict):
        for key, value in given.items():
            if key != "sha256":
                _compare(value, expected[key], f"{where}.{key}".lstrip("."))
    elif isinstance(given, list) and len(given) == len(expected):
        for i, (value, other) in enumerate(zip(given, expected, strict=True)):
            _compare(value, other, f"{where}[{i}]")
    elif isinstance(given, float) and isinstance(expected, float):
        if abs(given - expected) > _CLOSE * abs(expected):
            raise InvalidConfiguration(
                f"{where} = {given!r}, but the parameters give {expected!r}: the file was forged "
                "or made by faulty software"
            )
    elif given != expected:
        raise InvalidConfiguration(
            f"{where} = {given!r:.80}, but the parameters give {expected!r:.80}"
        )
