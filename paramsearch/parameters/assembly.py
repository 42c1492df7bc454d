"""From a configuration to a parameter file, and from a parameter file to a certified one."""

from __future__ import annotations

import math
from collections.abc import Hashable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from accounting.base.balls import above, ball, ceil, precision
from accounting.base.errors import InvalidConfiguration, InvalidParameter, required
from accounting.base.validation import not_negative, probability, share, whole
from accounting.model.change import touched_coordinates
from accounting.model.costs import bits_per_message
from accounting.model.laws.noise import BURST, NEGATIVE_BINOMIAL
from accounting.model.mechanism import Atom, ExactBurst, ExactCentral, ExactLaw
from paramsearch.parameters.honest_fraction import as_written
from paramsearch.parameters.parameter_file import ParameterFile, refusals, sealed
from paramsearch.parameters.problem_section import ProblemSection, problem_of
from paramsearch.parameters.sections import (
    AnyAtomNoise,
    AtomNoise,
    BurstNoise,
    CentralNoise,
    Certificate,
    Cost,
    Error,
    NamedAtomNoise,
    Provenance,
)

if TYPE_CHECKING:
    from flint import arb

    from accounting.model.configuration import Proposal

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
    """The deployable rationals of a configuration, with no less noise; not certified yet.

    Args:
        proposal: The configuration, with the n, eps and delta that it is for.
        releases: Number of releases that the claim covers together.
        same_change: Whether it covers them only for a user who makes the same change in each.
        honest: Fraction of the users whose noise has to suffice; every user adds more accordingly.
        seed: Of the search that found the noise, for the provenance.
        settings: Of that search, for the provenance.

    Returns:
        A parameter file without a certificate.

    Raises:
        InvalidParameter: If a number is missing or outside its domain.
        InvalidConfiguration: If the configuration has no noise, or does not fit the file format.

    >>> from accounting import Proposal
    >>> data = {"max_value": 1, "eps": 1.0, "delta": 1e-4, "n": 1000, "eps_central": 0.9}
    >>> uncertified(Proposal.of({**data, "atoms": [{"atom": [-1, 1], "r": 12.0, "p": 0.96}]}))
    <ParameterFile (1, 0.0001) for n = 1,000, max_value = 1; 1 atom, not certified
     577.4 noise messages, 1.57737 messages and 1.57737 bits per user; RMSE 1.51954>
    """
    from importlib.metadata import version  # costs a client a tenth of its imports

    from accounting.model.configuration import exact_law

    with refusals("the problem"):
        problem = problem_of(
            dimension=proposal.dimension,
            same_change=same_change,
            n=whole("n", _given("n", proposal.n), least=1),
            max_value=proposal.max_value,
            eps=not_negative("eps", _given("eps", proposal.eps)),
            delta=probability("delta", _given("delta", proposal.delta)),
            adjacency=proposal.adjacency,
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
        listed: dict[tuple[Atom, Hashable], Any] = {}
        for elements, noise in proposal.atoms:
            if noise is not None:  # otherwise there is nothing to sample
                law = exact_law(noise)
                key = elements, law.kind
                listed[key] = listed[key].plus(law) if key in listed else law
        atoms = [(key[0], _deployed(law, fraction)) for key, law in listed.items()]
    return assemble(
        problem,
        central,
        atoms,
        Provenance(
            tool="paramsearch",
            version=version("paramsearch"),
            seed=seed,
            settings=settings or {},
        ),
    )


_BELOW_ONE = math.nextafter(1.0, 0.0)


def _deployed(noise: ExactLaw, fraction: Fraction) -> ExactLaw:
    """Return the law that all users sample: a rational rate, such that this fraction of them has
    enough."""
    rate = noise.event_rate() / ball(fraction)
    digits = _RATE_BITS - math.frexp(float(rate.mid()))[1]
    return noise.with_rate(_up(rate, digits))


def _given(name: str, value: Any) -> Any:
    if value is None:
        raise InvalidParameter(f"{name} is not given: add it to the configuration or as --{name}")
    return value


def _up(value: arb, bits: int) -> Fraction:
    """A multiple of 2^-bits at or above the ball, and hardly more."""
    return Fraction(ceil(value * ball(2.0) ** bits)) / Fraction(2) ** bits


def assemble(
    problem: ProblemSection,
    central: ExactCentral,
    atoms: list[tuple[tuple[int, ...], ExactLaw]],
    provenance: Provenance,
    certificate: Certificate | None = None,
) -> ParameterFile:
    """The file of these rationals; every other number in it is computed from them here."""
    central_p = required(central.p, "the parameter p of the central noise")
    central_rate = required(central.rate, "the event rate of the central noise")
    if not atoms:
        raise InvalidConfiguration("no atom has noise; give some to [-1, 1] at least")
    with precision(_BITS), refusals("the parameters"):
        q = ball(central_p)
        central_mean = central.share() * q / (1 - q)
        dimension = getattr(problem, "dimension", 1)
        noise = 2 * central_mean
        entries = []
        named = any(isinstance(part, ExactBurst) for _, part in atoms)
        for elements, part in atoms:
            noise += len(elements) * part.mean()
            entries.append(_entry(elements, part, named=named))
        alphabet = _alphabet(problem.max_value, [elements for elements, _ in atoms])
        bits = bits_per_message(dimension * len(alphabet))
        noise *= dimension
        per_user = 1 + noise / problem.n
        mse = 2 * central_mean / (1 - q)
        touched = touched_coordinates(dimension, problem.adjacency)
        half = ball(problem.eps) / (2 * problem.max_value * touched)
        ratio = (mse * 2).sqrt() * half.sinh()
        return sealed(
            problem=problem,
            central=CentralNoise(
                rate=_text(central_rate),
                p=_text(central_p),
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


def _entry(elements: tuple[int, ...], part: ExactLaw, *, named: bool) -> AnyAtomNoise:
    """The noise of an atom as a file has it; ``named`` if the file names the law of every atom."""
    given: dict[str, Any] = {
        "atom": elements,
        "rate": _text(required(part.rate, "the event rate of the noise of an atom")),
        "p": _text(part.p),
        "mean": _double(part.mean()),
    }
    if isinstance(part, ExactBurst):
        return BurstNoise(**given, law=BURST, m=part.m)
    given["r"] = _double(part.shape())
    return NamedAtomNoise(**given, law=NEGATIVE_BINOMIAL) if named else AtomNoise(**given)


def _alphabet(max_value: int, atoms: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The values in use, by magnitude, positive first; a message is its index here."""
    used = {1, -1, *range(2, max_value + 1), *(value for elements in atoms for value in elements)}
    return tuple(sorted(used, key=lambda value: (abs(value), value < 0)))


def _text(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}"


def _double(value: arb) -> float:
    return float(value.mid())


def reassembled(file: ParameterFile, certificate: Certificate | None) -> ParameterFile:
    """Return the file with the same problem, rationals and provenance; everything else is computed
    again."""
    return _assembled_for(file, file.problem, certificate)


def _assembled_for(
    file: ParameterFile, problem: ProblemSection, certificate: Certificate | None
) -> ParameterFile:
    central = ExactCentral(p=Fraction(file.central.p), rate=Fraction(file.central.rate))
    atoms = [(entry.atom, entry.exact()) for entry in file.atoms]
    return assemble(problem, central, atoms, file.provenance, certificate)


def rescaled(file: ParameterFile, n: int) -> ParameterFile:
    """Return the same total noise for another number of users; not certified yet.

    The messages that are seen do not depend on n, only which user adds which part of them.

    Args:
        file: A parameter file, certified or not.
        n: The new number of users.

    Returns:
        A parameter file without a certificate.

    Raises:
        InvalidParameter: If n is outside its domain.
    """
    return _assembled_for(file, _with_users(file.problem, n), None)


def _with_users(problem: ProblemSection, n: int) -> ProblemSection:
    with refusals("the problem"):
        return type(problem)(**{**problem.model_dump(), "n": whole("n", n, least=1)})


def for_users(file: ParameterFile, n: int) -> ParameterFile:
    """Return the same total noise for another number of users, with its certificate.

    The certificate is about what is seen, which does not depend on who adds which part.
    """
    return _assembled_for(file, _with_users(file.problem, n), file.certificate)


def consistent(file: ParameterFile) -> None:
    """Refuse a file whose other numbers are not what its rationals give."""
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
