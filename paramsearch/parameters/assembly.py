"""From a configuration to a parameter file, and from a parameter file to a certified one."""

from __future__ import annotations

import math
import platform
from fractions import Fraction
from importlib import metadata
from typing import Any

from flint import arb

from accounting.base.balls import above, ball, ceil, precision
from accounting.base.enclosure import exactly
from accounting.base.errors import (
    InvalidConfiguration,
    InvalidParameter,
    TooLarge,
    Undecided,
    Violated,
)
from accounting.base.progress import Progress, silent
from accounting.base.validation import gap_width, not_negative, probability, real, whole
from accounting.model.configuration import Proposal
from accounting.model.family import Atom
from accounting.model.mechanism import ExactCentral, ExactNoise, Mechanism
from accounting.model.proof_types import GAP, Tier
from accounting.proof.prove import Proof, prove, unprotected
from paramsearch.cli.display import worst_case
from paramsearch.parameters.honest_fraction import as_written, claimed_fraction
from paramsearch.parameters.parameter_file import (
    AtomNoise,
    CentralNoise,
    Certificate,
    Change,
    Cost,
    Error,
    ParameterFile,
    Provenance,
    SequenceCertificate,
    refusals,
    sealed,
)
from paramsearch.parameters.problem_section import Problem, problem_of

_BITS = 192
"""Working precision for everything that is derived from the rationals."""
_RATE_BITS = 64
"""Significant bits of an atom's rate."""
_CENTRAL_RATE_BITS = 192
"""Fractional bits of the central rate, whose deviation from NB(1, q) is paid for in delta."""


def parameters(
    proposal: Proposal,
    *,
    n: int | None = None,
    eps: float | None = None,
    delta: float | None = None,
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
            n=whole("n", _given("n", n, proposal.n), least=1),
            max_value=proposal.max_value,
            eps=not_negative("eps", _given("eps", eps, proposal.eps)),
            delta=probability("delta", _given("delta", delta, proposal.delta)),
            adjacency="substitution",
            releases=whole("releases", releases, least=1),
            honest=fraction(honest),
        )
    share = as_written(problem.honest)
    with precision(_BITS):
        q = min(
            above((-ball(Fraction(proposal.eps_central) / proposal.max_value)).exp()), _BELOW_ONE
        )
        central_rate = -(1 - ball(Fraction(q))).log() / ball(share)
        central = ExactCentral(p=Fraction(q), rate=_up(central_rate, _CENTRAL_RATE_BITS))
        atoms = []
        listed: dict[tuple[Atom, float], Fraction] = {}
        for elements, r, p in proposal.atoms:
            if r > 0 and p > 0:  # otherwise there is nothing to sample
                listed[elements, p] = listed.get((elements, p), Fraction(0)) + Fraction(r)
        for (elements, p), whole_r in listed.items():
            rate = ball(whole_r) * -(1 - ball(p)).log() / ball(share)
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


def fraction(value: float) -> float:
    """The fraction of the users who add noise."""
    number = real("honest", value)
    if not 0 < number <= 1:
        raise InvalidParameter(f"honest = {number} must be greater than 0 and at most 1")
    return number


def _given(name: str, option: Any, stated: Any) -> Any:
    value = option if option is not None else stated
    if value is None:
        raise InvalidParameter(f"{name} is not given: add it to the configuration or as --{name}")
    return value


def _up(value: arb, bits: int) -> Fraction:
    """A multiple of 2^-bits at or above the ball, and hardly more."""
    return Fraction(ceil(value * arb(2) ** bits)) / Fraction(2) ** bits


def assemble(
    problem: Problem,
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
        bits = max(1, (dimension * len(alphabet) - 1).bit_length())
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
    file: ParameterFile, problem: Problem, certificate: Certificate | None
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


def _with_users(problem: Problem, n: int) -> Problem:
    with refusals("the problem"):
        return type(problem)(**{**problem.model_dump(), "n": whole("n", n, least=1)})


def for_users(file: ParameterFile, n: int) -> ParameterFile:
    """The same noise for another number of users, with the certificate: that is about the view,
    which does not depend on who adds which part of the noise."""
    return _assembled_for(file, _with_users(file.problem, n), file.certificate)


def claimed(file: ParameterFile) -> Mechanism:
    """The mechanism of the claim: what the honest fraction of the users does."""
    return file.mechanism().thinned(claimed_fraction(file))


def certify(
    file: ParameterFile,
    *,
    tier: Tier = "auto",
    gap: float = GAP,
    deadline: float = math.inf,
    progress: Progress = silent,
) -> ParameterFile:
    """The file with a certificate, or Violated or Undecided."""
    problem = file.problem
    gap = gap_width(gap)
    mechanism = claimed(file)
    try:
        proof = prove(
            mechanism,
            problem.eps,
            releases=problem.releases,
            same_change=problem.same_change,
            tier=tier,
            gap=gap,
            claim=problem.delta,
            deadline=deadline,
            progress=progress,
        )
    except TooLarge as error:
        raise Undecided(str(error)) from error
    bounds = f"delta at eps = {exactly(problem.eps)} lies in {proof.enclosure}"
    any_sequence = problem.releases > 1 and not problem.same_change
    worst = worst_case(proof, any_sequence=any_sequence)
    if proof.enclosure.lower == 1:
        raise Violated(f"delta is 1 where {worst}: no noise hides it; {unprotected(mechanism)}")
    if proof.enclosure.lower > problem.delta:
        raise Violated(
            f"{bounds}, above the claimed {problem.delta!r}: too much is given away "
            f"{'with' if any_sequence else 'where'} {worst}; " + remedy(mechanism, problem.eps)
        )
    if proof.enclosure.upper > problem.delta:
        raise Undecided(
            f"{bounds}, which does not decide the claimed {problem.delta!r}; add a little noise, "
            "or ask for a smaller gap or another tier"
        )
    return reassembled(file, certificate_of(proof, problem))


def remedy(mechanism: Mechanism, eps: float) -> str:
    """What may help against a violation."""
    with precision(_BITS):
        central = mechanism.central.loss() * mechanism.max_value * mechanism.coordinates
        if central > ball(eps):
            half = " / 2, since a change touches two coordinates" if mechanism.dimension > 1 else ""
            return f"take eps_central below eps{half}, or claim a larger delta"
    return "add noise, or claim a larger eps or delta, or fewer releases if there are several"


def certificate_of(proof: Proof, problem: Problem) -> Certificate:
    fields: dict[str, Any] = {
        "eps": proof.eps,
        "delta_lower": proof.enclosure.lower,
        "delta_upper": proof.enclosure.upper,
        "worst_pair": proof.worst_pair,
        "proof": dict(proof.covered),
        "precision": proof.precision,
        "sampler_deviation": proof.deviation,
        "software": {
            "paramsearch": metadata.version("paramsearch"),
            "python-flint": metadata.version("python-flint"),
            "python": platform.python_version(),
        },
    }
    if problem.releases == 1 or problem.same_change:
        return Certificate(**fields)
    made = tuple(Change(change=pair, times=times) for pair, times in proof.worst_sequence)
    return SequenceCertificate(**fields, worst_sequence=made)
