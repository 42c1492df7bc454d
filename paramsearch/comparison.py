"""The protocol with certified and with published noise, beside the mechanisms it competes with."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from importlib import resources

from accounting.base import strict_json
from accounting.base.arrays import FloatArray
from accounting.baselines import (
    Baseline,
    DiscreteLaplace,
    FragmentedRappor,
    Laplace,
    NonPrivate,
    RandomizedResponse,
    SplitAndMix,
)
from accounting.baselines.correlated import CorrelatedNoise
from accounting.model.configuration import Proposal
from accounting.model.costs import AtomParameters, bits_per_message
from accounting.model.family import halves
from accounting.model.problem import Problem
from paramsearch.parameters.parameter_file import ParameterFile, from_json
from paramsearch.search import paper_parameters as paper
from paramsearch.search.dominance.screening import dominance
from paramsearch.search.target import Target
from paramsearch.tables.cell import Cell


def certified_noise(problem: Problem, file: ParameterFile) -> CorrelatedNoise:
    """The protocol with the noise of a certified file, which serves any n."""
    atoms = tuple(
        AtomParameters(entry.atom, r=entry.r, p=float(Fraction(entry.p))) for entry in file.atoms
    )
    return CorrelatedNoise(
        problem,
        atoms,
        eps_central=file.central.eps_central,
        bits_per_message=file.cost.bits_per_message,
        name="correlated noise, ours",
        guarantee="(eps, delta), certified",
    )


def published_noise(problem: Problem, *, central_fraction: float) -> Iterator[CorrelatedNoise]:
    """The protocol with the paper's noise: by its theorem, and by its refined bound with the t' of
    the dominance program."""
    target = Target(problem, central_fraction * problem.eps)
    yield _published(problem, paper.theorem(target), "correlated noise, paper's theorem")
    proposal = paper.refined(target, t_prime=_t_prime(problem.max_value))
    yield _published(problem, proposal, "correlated noise, paper's refined")


@cache
def _t_prime(max_value: int) -> FloatArray:
    """The t' of the paper's family, which depends on max_value only."""
    return dominance(halves(max_value)).t_prime


def _published(problem: Problem, proposal: Proposal, name: str) -> CorrelatedNoise:
    used = {value for elements, _, _ in proposal.atoms for value in elements}
    used |= set(range(1, problem.max_value + 1))
    bits = bits_per_message(len(used))  # at most the ceil(log2(max_value)) + 1 of the paper
    if problem.max_value == 1:
        name = "Ghazi et al. 2020"  # they published the case of max_value 1
    return CorrelatedNoise(
        problem,
        proposal.atoms,
        eps_central=proposal.eps_central,
        bits_per_message=bits,
        name=name,
        guarantee="(eps, delta), as published",
    )


def all_mechanisms(
    problem: Problem, *, file: ParameterFile | None = None, central_fraction: float = 0.9
) -> Iterator[Baseline]:
    """All mechanisms for a problem, that of the certified file last.

    The paper's two versions of the protocol are one if max_value is 1.
    """
    yield from (
        NonPrivate(problem),
        DiscreteLaplace(problem),
        Laplace(problem),
        SplitAndMix(problem),
        FragmentedRappor(problem),
        RandomizedResponse(problem),
    )
    published = list(published_noise(problem, central_fraction=central_fraction))
    yield from published[:1] if problem.max_value == 1 else published
    if file is not None:
        yield certified_noise(problem, file)


@cache
def shipped_file(
    *, max_value: int, eps: float, delta: float, central_fraction: float
) -> ParameterFile | None:
    """The file of a problem in the table that comes with this package; None if there is none."""
    cell = Cell(max_value, eps, delta, central_fraction)
    path = resources.files("paramsearch") / "data" / "files" / f"{cell.name}.json"
    if not path.is_file():
        return None
    return from_json(strict_json.parse(path.read_text("utf-8"), source=path.name), source=path.name)
