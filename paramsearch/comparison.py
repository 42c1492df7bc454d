"""Everything side by side: the protocol in three versions, and what it is compared with."""

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
from accounting.model.costs import bits_per_message
from accounting.model.family import halves
from accounting.model.problem import Problem
from paramsearch.parameters.parameter_file import ParameterFile, from_json
from paramsearch.search import paper_parameters as paper
from paramsearch.search.dominance import dominance
from paramsearch.search.target import Target
from paramsearch.tables.grid import Cell

OURS = "correlated noise, ours"


def ours(problem: Problem, file: ParameterFile) -> CorrelatedNoise:
    """The noise of a file does not depend on n."""
    atoms = tuple((entry.atom, entry.r, float(Fraction(entry.p))) for entry in file.atoms)
    return CorrelatedNoise(
        problem,
        atoms,
        file.central.eps_central,
        file.cost.bits_per_message,
        OURS,
        "(eps, delta), certified",
    )


def of_the_paper(problem: Problem, fraction: float) -> Iterator[CorrelatedNoise]:
    """By its theorem, and by its refined bound with the program's t'."""
    target = Target(problem, fraction * problem.eps)
    yield _published(problem, paper.theorem(target), "correlated noise, paper's theorem")
    proposal = paper.refined(target, t_prime=_t_prime(problem.max_value))
    yield _published(problem, proposal, "correlated noise, paper's refined")


@cache
def _t_prime(max_value: int) -> FloatArray:
    """Of the paper's family, which is that of max_value alone."""
    return dominance(halves(max_value)).t_prime


def _published(problem: Problem, proposal: Proposal, name: str) -> CorrelatedNoise:
    used = {value for elements, _, _ in proposal.atoms for value in elements}
    used |= set(range(1, problem.max_value + 1))
    bits = bits_per_message(len(used))  # at most the ceil(log2(max_value)) + 1 of the paper
    if problem.max_value == 1:
        name = "Ghazi et al. 2020"  # the case of max_value 1 is theirs
    return CorrelatedNoise(
        problem, proposal.atoms, proposal.eps_central, bits, name, "(eps, delta), as published"
    )


def everything(
    problem: Problem, file: ParameterFile | None = None, fraction: float = 0.9
) -> Iterator[Baseline]:
    """All of them, ours last; one of the paper's two where they are the same."""
    yield from (
        NonPrivate(problem),
        DiscreteLaplace(problem),
        Laplace(problem),
        SplitAndMix(problem),
        FragmentedRappor(problem),
        RandomizedResponse(problem),
    )
    published = list(of_the_paper(problem, fraction))
    yield from published[:1] if problem.max_value == 1 else published
    if file is not None:
        yield ours(problem, file)


@cache
def shipped(max_value: int, eps: float, delta: float, fraction: float) -> ParameterFile | None:
    """The precomputed file of a problem, if the package has it."""
    place = (
        resources.files("paramsearch") / "data" / "files" / name_of(max_value, eps, delta, fraction)
    )
    if not place.is_file():
        return None
    return from_json(
        strict_json.parse(place.read_text("utf-8"), source=place.name), source=place.name
    )


def name_of(max_value: int, eps: float, delta: float, fraction: float) -> str:
    """As in a table."""
    return Cell(max_value, eps, delta, fraction).name + ".json"
