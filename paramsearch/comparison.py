"""The protocol with certified and with published noise, beside other mechanisms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

from accounting.base import strict_json
from accounting.base.arrays import FloatArray
from accounting.base.enclosure import Summarized
from accounting.base.errors import InvalidParameter, TooLarge
from accounting.base.progress import Progress, silent
from accounting.base.validation import whole
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
from accounting.model.change import SUBSTITUTION, ZERO_OUT, Adjacency
from accounting.model.configuration import Proposal
from accounting.model.costs import AtomParameters, bits_per_message, largest_central_of
from accounting.model.family import halves
from accounting.model.laws.noise import NoiseLaw
from accounting.model.problem import Problem
from paramsearch.generation.generate import generate
from paramsearch.parameters.assembly import for_users
from paramsearch.parameters.parameter_file import ParameterFile, from_json
from paramsearch.request import DEFAULT_CENTRAL_FRACTION, Request
from paramsearch.search import paper_parameters as paper
from paramsearch.search.dominance.screening import dominance
from paramsearch.search.target import Target
from paramsearch.tables.cell import Cell

OURS, IN_BURSTS = "correlated noise, ours", ", bursts"
"""The name of the protocol with certified noise, and what is added where that is in bursts."""


def certified_noise(problem: Problem, file: ParameterFile) -> CorrelatedNoise:
    """Return the protocol with the noise of a certified file, which serves any n."""
    atoms = tuple(AtomParameters(entry.atom, entry.rounded()) for entry in file.atoms)
    return CorrelatedNoise(
        problem,
        atoms,
        eps_central=file.central.eps_central,
        bits_per_message=file.cost.bits_per_message,
        name=OURS,
        guarantee="(eps, delta), certified",
    )


def published_noise(problem: Problem, *, central_fraction: float) -> Iterator[CorrelatedNoise]:
    """Return the protocol with the paper's noise: by its theorem, and by its refined bound with the
    t' of the dominance program.

    Where a change of a vector touches two coordinates, each has the noise of (eps / 2, delta / 2);
    the central fraction is one of eps / 2 then.  The paper's guarantee is for substitution within a
    coordinate, which covers zero-out.

    Raises:
        InvalidParameter: For several releases, which the paper does not consider.
    """
    parts = problem.changed_coordinates
    each = replace(problem, eps=problem.eps / parts, delta=problem.delta / parts, dimension=1)
    target = Target(each, central_fraction * each.eps)
    yield _published(problem, paper.theorem(target), "correlated noise, paper's theorem")
    proposal = paper.refined(target, t_prime=_t_prime(problem.max_value))
    yield _published(problem, proposal, "correlated noise, paper's refined")


@cache
def _t_prime(max_value: int) -> FloatArray:
    """Return the t' of the paper's family, which depends on max_value only."""
    return dominance(halves(max_value)).t_prime


def _published(problem: Problem, proposal: Proposal, name: str) -> CorrelatedNoise:
    used = {value for elements, _ in proposal.atoms for value in elements}
    used |= set(range(1, problem.max_value + 1))
    # at most the ceil(log2(max_value)) + 1 of the paper, and a coordinate
    bits = bits_per_message(problem.dimension * len(used))
    if problem.max_value == 1:
        name = "Ghazi et al. 2020"  # they published the case of max_value 1
    return CorrelatedNoise(
        problem,
        proposal.atoms,
        eps_central=proposal.eps_central,
        bits_per_message=bits,
        name=name,
        guarantee="(eps, delta), as published"
        + (" for substitution" if problem.adjacency == ZERO_OUT else ""),
    )


@cache
def shipped_file(
    *,
    max_value: int,
    eps: float,
    delta: float,
    central_fraction: float,
    noise: NoiseLaw = "negative-binomial",
) -> ParameterFile | None:
    """Return the file of a problem in the table that comes with this package; None if there is
    none."""
    cell = Cell(max_value, eps, delta, central_fraction, noise=noise)
    path = resources.files("paramsearch") / "data" / "files" / f"{cell.name}.json"
    if not path.is_file():
        return None
    return from_json(strict_json.parse(path.read_text("utf-8"), source=path.name), source=path.name)


@dataclass(frozen=True, kw_only=True)
class ComparisonRow:
    """A mechanism with its error and its cost.

    Attributes:
        mechanism: Its name.
        adjacency: Which data sets are neighbors under its guarantee; None if it has none.
        rmse: Root mean square error of the sum, or of each coordinate of vectors; None if it has no
            bound.
        messages_per_user: Expected messages of a user with a non-zero value, in one release.
        bits_per_user: The same in bits.
        overhead: Bits in units of those of a sum without privacy, minus 1.
        guarantee: What is known about its privacy, in words.
    """

    mechanism: str
    adjacency: Adjacency | None
    rmse: float | None
    messages_per_user: float
    bits_per_user: float
    overhead: float
    guarantee: str


@dataclass(frozen=True, repr=False)
class Comparison(Summarized):
    """Several mechanisms for one problem.

    Attributes:
        rows: One for each mechanism; the protocol with certified noise is last, if it is there.
        left_out: Why other mechanisms have no row, each with its name.
        file: The certified noise, if it is there.
        interrupted: Whether an interrupt ended the search for it.
    """

    rows: tuple[ComparisonRow, ...]
    left_out: tuple[str, ...] = ()
    file: ParameterFile | None = None
    interrupted: bool = False

    def summary(self) -> tuple[str, str]:
        """Return the names of the mechanisms, and the last of them, which is ours."""
        names = ", ".join(row.mechanism for row in self.rows)
        last = self.rows[-1]
        error = "no bound of the error" if last.rmse is None else f"RMSE {last.rmse:.6g}"
        return names, (
            f"{last.mechanism}: {error}, {last.messages_per_user:.6g} messages and "
            f"{last.bits_per_user:.6g} bits per user; {last.guarantee}"
        )


def compare(
    request: Request,
    *,
    others: Comparison | None = None,
    progress: Progress = silent,
) -> Comparison:
    """Compare the protocol with other mechanisms for one problem.

    Every mechanism has the privacy of the problem as far as its guarantee says.  Vectors are
    compared by the error of each coordinate, several releases by the error and the cost of each of
    them.  Where only a fraction of the users is honest, its noise suffices.  A mechanism without a
    known answer for such a problem is left out.

    Args:
        request: The problem, the error to allow, and how hard to search where the package has no
            file for it.
        others: What ``other_mechanisms`` says of the request, if that is known.
        progress: Called with one line of text now and then.

    Returns:
        The rows, ours last, and which mechanisms are left out for which reason.

    Raises:
        InvalidParameter: If there is only one user, the request is not for a search, or the error
            is out of reach.
        Undecided: If no file could be certified.

    >>> found = compare(Request(n=100_000, eps=1.0, delta=1e-6, max_value=5))
    >>> [row.mechanism for row in found.rows][-2:]
    ["correlated noise, paper's refined", 'correlated noise, ours']
    >>> round(found.rows[-1].messages_per_user, 3), round(found.rows[-2].messages_per_user, 1)
    (1.055, 6.2)
    """
    others = other_mechanisms(request) if others is None else others
    file, interrupted = shipped_for(request), False
    if file is None:
        made = generate(request, progress=progress)
        file, interrupted = made.file, made.interrupted
    ours = ComparisonRow(
        mechanism=OURS + IN_BURSTS * (request.noise == "burst"),
        adjacency=request.adjacency,
        rmse=file.error.rmse,
        messages_per_user=file.cost.messages_per_user,
        bits_per_user=file.cost.bits_per_user,
        overhead=file.cost.bits_per_user / NonPrivate(request).bits - 1,
        guarantee="(eps, delta), certified",
    )
    return replace(others, rows=(*others.rows, ours), file=file, interrupted=interrupted)


_KINDS = (
    NonPrivate,
    DiscreteLaplace,
    Laplace,
    SplitAndMix,
    FragmentedRappor,
    RandomizedResponse,
)


def other_mechanisms(request: Request) -> Comparison:
    """List all mechanisms that need no search, and the reasons of those that have no answer.

    The paper's two versions of the protocol are one if max_value is 1.

    Raises:
        InvalidParameter: If there is only one user, the request is not for a search, or the error
            is out of reach.
    """
    whole("n", request.n, least=2)  # alone there is nobody to hide among; said before any search
    if request.method != "search":
        raise InvalidParameter(f"method = {request.method!r}: its noise is compared anyway")
    largest = largest_central_of(request)
    shares = [size / largest for size in request.central_choices(largest)]
    rows, left_out = [], []
    for kind in _KINDS:
        try:
            rows.append(_row(kind(request)))
        except (InvalidParameter, OverflowError) as error:
            reason = str(error)
            left_out.append(reason if reason.startswith(kind.name) else f"{kind.name}: {reason}")
    if request.releases > 1:
        left_out.append("correlated noise, the paper's: its parameters are for one release")
        return Comparison(tuple(rows), tuple(left_out))
    try:
        published = [list(published_noise(request, central_fraction=share)) for share in shares]
    except (InvalidParameter, TooLarge) as error:
        left_out.append(f"correlated noise, the paper's: {error}")
    else:
        cheapest = [
            min(same, key=lambda noise: noise.messages) for same in zip(*published, strict=True)
        ]
        rows += map(_row, cheapest[:1] if request.max_value == 1 else cheapest)
    return Comparison(tuple(rows), tuple(left_out))


def _row(baseline: Baseline) -> ComparisonRow:
    return ComparisonRow(
        mechanism=baseline.name,
        adjacency=None if isinstance(baseline, NonPrivate) else baseline.problem.adjacency,
        rmse=math.sqrt(baseline.mse) if math.isfinite(baseline.mse) else None,
        messages_per_user=baseline.messages,
        bits_per_user=baseline.bits,
        overhead=baseline.bits / NonPrivate(baseline.problem).bits - 1,
        guarantee=baseline.guarantee,
    )


def shipped_for(request: Request) -> ParameterFile | None:
    """Return the file for a request in the package's table, for its number of users; None if there
    is none, or tables do not answer such requests."""
    by_error = request.max_rmse is not None or request.max_error_ratio is not None
    special = request.dimension > 1 or request.releases > 1 or request.honest < 1
    special = special or request.adjacency != SUBSTITUTION  # the table's adjacency
    if by_error or special or request.cold or request.objective != "messages":
        return None
    fraction = request.central_fraction
    file = shipped_file(
        max_value=request.max_value,
        eps=request.eps,
        delta=request.delta,
        central_fraction=DEFAULT_CENTRAL_FRACTION if fraction is None else fraction,
        noise=request.noise,
    )
    return None if file is None else for_users(file, request.n)
