"""A configuration of the protocol: the atoms, their noise, and the central noise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, get_args

from accounting.base import strict_json
from accounting.base.enclosure import Summarized, counted, exactly
from accounting.base.errors import AccountingError, InvalidConfiguration, InvalidParameter, TooLarge
from accounting.base.validation import (
    AnyPath,
    instance,
    not_negative,
    one_of,
    positive,
    probability,
    shown,
    whole,
)
from accounting.model.change import SUBSTITUTION, Adjacency, check_adjacency, dimension_of
from accounting.model.costs import (
    LARGEST_STEP,
    AtomParameters,
    central_messages,
    discrete_laplace_variance,
)
from accounting.model.family import Atom, Family, atom
from accounting.model.laws.burst import LARGEST_M, Burst
from accounting.model.laws.negative_binomial import NegativeBinomial
from accounting.model.laws.noise import BURST, NEGATIVE_BINOMIAL, Law, NoiseLaw, NoiseSum
from accounting.model.mechanism import ExactBurst, ExactLaw, ExactNoise
from accounting.model.proof_types import MOST_PARTS

_MOST_R = 1 << 53
"""Smallest sum of r, or of rates, that is not merged."""
_A_LAW = "give a law such as NegativeBinomial(r=12.0, p=0.98)"
_A_LIST = "give pairs such as ((-1, 1), NegativeBinomial(r=12.0, p=0.98))"
"""The remedies for atoms of another type."""
_KEYS = {"max_value", "eps", "delta", "n", "eps_central", "atoms", "dimension", "adjacency"}


@dataclass(frozen=True)
class Configuration:
    """A configuration: noise for every atom of a family, and NB(1, e^{-eps_central / max_value}) on
    +1 and on -1.

    Args:
        family: The atoms.
        noise: The noise of every atom, summed over all users.
        eps_central: The privacy loss that the central noise alone has for a change by max_value.
        dimension: More than 1 for vectors with at most one non-zero coordinate; every coordinate
            has independent noise.

    Raises:
        InvalidConfiguration: If the atoms with noise are not those of the family.
        InvalidParameter: If eps_central or the dimension is outside its domain.

    >>> noise = NegativeBinomial.from_mean(mean=310.0, r=12.0)
    >>> config = Configuration.of(1, [((-1, 1), noise)], eps_central=0.9)
    >>> config
    <Configuration max_value=1 atoms=1 eps_central=0.9 dimension=1 noise_messages=621.37>
    >>> round(config.mse, 2)
    2.31
    """

    family: Family
    noise: Mapping[Atom, NoiseSum]
    eps_central: float
    dimension: int = 1

    def __post_init__(self) -> None:
        instance("family", self.family, Family, "Family(max_value, atoms) makes one")
        instance("noise", self.noise, Mapping, "Configuration.of(...) makes one from a list")
        for listed, noise in self.noise.items():
            instance(f"the noise of atom {shown(listed)}", noise, NoiseSum, _A_LAW)
        object.__setattr__(self, "dimension", dimension_of(self.dimension))
        object.__setattr__(self, "eps_central", positive("eps_central", self.eps_central))
        if self.eps_central / self.family.max_value > LARGEST_STEP:
            raise InvalidParameter(
                f"eps_central = {self.eps_central} leaves no central noise at "
                f"max_value = {self.family.max_value}: take at most {LARGEST_STEP:g} per unit, by "
                "a smaller eps or a smaller share of it"
            )
        if set(self.noise) != set(self.family.atoms):
            odd = sorted(set(self.noise) ^ set(self.family.atoms))[0]
            raise InvalidConfiguration(f"atom {list(odd)} has no noise or is not in the family")

    @staticmethod
    def of(
        max_value: int,
        atoms: Iterable[tuple[Iterable[int], Law]],
        *,
        eps_central: float,
        dimension: int = 1,
    ) -> Configuration:
        """Make a configuration from a list of atoms.

        Args:
            max_value: Inputs are the integers 0..max_value.
            atoms: Atoms with their noise; an atom that is listed more than once carries the sum of
                the listed noises.
            eps_central: The privacy loss that the central noise alone has for a change by
                max_value.
            dimension: More than 1 for vectors with at most one non-zero coordinate.

        Returns:
            The configuration.

        Raises:
            InvalidFamily: If the atoms do not protect every input.
            InvalidParameter: If a number is outside its domain.
            TooLarge: If an atom is listed too often with different p.

        >>> noise = NegativeBinomial(r=12.0, p=0.98)
        >>> twice = Configuration.of(1, [((-1, 1), noise), ((1, -1), noise)], eps_central=0.9)
        >>> twice.noise[-1, 1]
        NoiseSum(NB(r=24, p=0.98))
        """
        parts: dict[Atom, list[Law]] = {}
        for elements, noise in _pairs(atoms):
            instance(
                f"the noise of atom {shown(elements)}", noise, (NegativeBinomial, Burst), _A_LAW
            )
            parts.setdefault(atom(elements), []).append(noise)
        family = Family(max_value, tuple(parts))
        noise_of = {elements: _sum(elements, listed) for elements, listed in parts.items()}
        return Configuration(family, noise_of, eps_central, dimension)

    def __repr__(self) -> str:
        return (
            f"<Configuration max_value={self.max_value} atoms={len(self.noise)} "
            f"eps_central={self.eps_central:.6g} dimension={self.dimension} "
            f"noise_messages={self.noise_messages:.6g}>"
        )

    @property
    def max_value(self) -> int:
        return self.family.max_value

    @property
    def step(self) -> float:
        """eps_central / max_value, the privacy loss of a change of the sum by one."""
        return self.eps_central / self.max_value

    @property
    def noise_messages(self) -> float:
        """Expected number, 2 E[central] + sum of |s| E[D^s], over all users and coordinates."""
        atoms = math.fsum(len(s) * noise.mean for s, noise in self.noise.items())
        return self.dimension * (central_messages(self.step) + atoms)

    @property
    def mse(self) -> float:
        """Mean squared error of the sum, in every coordinate: its noise is Discrete Laplace."""
        return discrete_laplace_variance(self.step)


def _pairs(atoms: Any) -> Iterator[tuple[Iterable[int], Law]]:
    """Refuse what is no list of pairs of an atom and its noise."""
    instance("atoms", atoms, Iterable, _A_LIST)
    for i, listed in enumerate(atoms):
        instance(f"atoms[{i}]", listed, (tuple, list), _A_LIST)
        if len(listed) != 2:
            raise InvalidParameter(
                f"atoms[{i}] has {counted(len(listed), 'entry', 'entries')}; {_A_LIST}"
            )
        elements, noise = listed
        instance(f"the atom of atoms[{i}]", elements, Iterable, _A_LIST)
        yield elements, noise


def _sum(elements: Atom, listed: list[Law]) -> NoiseSum:
    """Add noises; those of one law with the same p are merged if the sum of their r, or of their
    rates, is a double."""
    if len(listed) == 1:
        return NoiseSum.of(listed)
    alike: dict[Law, list[float]] = {}
    for noise in listed:
        kind, amount = (
            (replace(noise, rate=1.0), noise.rate)
            if isinstance(noise, Burst)
            else (NegativeBinomial(1.0, noise.p), noise.r)
        )
        alike.setdefault(kind, []).append(amount)
    parts: list[Law] = []
    for kind, amounts in alike.items():
        exact = sum(map(Fraction, amounts), Fraction(0))
        merged = exact < _MOST_R and Fraction(float(exact)) == exact
        parts += [kind.times(amount) for amount in ([float(exact)] if merged else amounts)]
    if len(parts) > MOST_PARTS:
        raise TooLarge(
            f"atom {list(elements)!s:.60} is listed {len(listed):,} times, which makes a sum of "
            f"{len(parts):,} noises, more than {MOST_PARTS}; give it once, with the sum of all r "
            "that have the same p"
        )
    return NoiseSum.of(parts)


def exact_law(noise: Law) -> ExactLaw:
    """Return the law whose parameters are exactly these doubles."""
    if isinstance(noise, Burst):
        return ExactBurst(p=Fraction(noise.p), rate=Fraction(noise.rate), m=noise.m)
    return ExactNoise(p=Fraction(noise.p), r=Fraction(noise.r))


def load(path: AnyPath) -> Configuration:
    """Read a configuration file.

    Args:
        path: A JSON file as ``loads`` takes it.

    Returns:
        The configuration.

    Raises:
        AccountingError: If the file cannot be read or is not a configuration; the error names the
            file and the cause.
    """
    return loads(strict_json.read_text(path), source=str(path))


def loads(text: str, *, source: str = "the configuration") -> Configuration:
    """Parse the JSON text of a configuration.

    Args:
        text: A JSON object with max_value, eps_central and atoms; dimension, adjacency, eps,
            delta and n are optional.
        source: What errors call the text.

    Returns:
        The configuration.

    Raises:
        AccountingError: If the text is not a configuration; the error names the cause.

    >>> atoms = '[{"atom": [-1, 1], "r": 12.0, "p": 0.98}]'
    >>> loads('{"max_value": 1, "eps_central": 0.9, "atoms": ' + atoms + '}').max_value
    1
    """
    data = strict_json.parse(text, source=source)
    with blaming(source):
        return Proposal.of(data).configuration()


@contextmanager
def blaming(source: str) -> Iterator[None]:
    """Prefix errors with the file that they are about."""
    try:
        yield
    except AccountingError as error:
        raise type(error)(f"{source}: {error}") from error


@dataclass(frozen=True, repr=False)
class Proposal(Summarized):
    """A proposed configuration, the content of a configuration file, which may leave messages
    without noise.

    Args:
        max_value: Inputs are the integers 0..max_value.
        atoms: Atoms with their noise, whose parameters are exact doubles, or with none.
        eps_central: The privacy loss that the central noise alone has for a change by max_value.
        eps: The eps of the claimed guarantee, if there is one.
        delta: The delta of the claimed guarantee, if there is one.
        n: Number of users, if it is given.
        dimension: More than 1 for vectors with at most one non-zero coordinate.
        adjacency: Which data sets are neighbors under the claimed guarantee.

    >>> atoms = (AtomParameters((-1, 1), NegativeBinomial(r=12.0, p=0.98)),)
    >>> proposal = Proposal(1, atoms, 0.9, eps=1.0, delta=1e-6, n=1000)
    >>> proposal.configuration().max_value
    1
    """

    max_value: int
    atoms: tuple[AtomParameters, ...]
    eps_central: float
    eps: float | None
    delta: float | None
    n: int | None
    dimension: int = 1
    adjacency: Adjacency = SUBSTITUTION

    def summary(self) -> tuple[str, str]:
        """Return the problem as far as it is given, and the size of the noise."""
        given = {"n": self.n, "max_value": self.max_value, "eps": self.eps, "delta": self.delta}
        if self.dimension > 1:
            given["dimension"] = self.dimension
        problem = ", ".join(
            f"{name} = {exactly(value)}" for name, value in given.items() if value is not None
        )
        problem += "" if self.adjacency == SUBSTITUTION else f", {self.adjacency}"
        return (
            problem,
            f"{counted(len(self.atoms), 'atom')}, eps_central = {exactly(self.eps_central)}",
        )

    @staticmethod
    def of(data: Any) -> Proposal:
        """Check decoded JSON.

        Args:
            data: The decoded JSON object of a configuration file.

        Returns:
            The proposal.

        Raises:
            InvalidConfiguration: If keys are missing or unknown, or have values of a wrong type.
            InvalidFamily: If an atom is not a zero-sum multiset of integers.
            InvalidParameter: If a number is outside its domain.

        >>> Proposal.of({"max_value": 1, "eps_central": 0.9, "atoms": [], "n": 1000}).n
        1000
        """
        if not isinstance(data, dict):
            raise InvalidConfiguration("expected a JSON object with " + ", ".join(sorted(_KEYS)))
        unknown = sorted(set(data) - _KEYS)
        if "format" in unknown:
            raise InvalidConfiguration("this is a parameter file: paramsearch audit reads it")
        if unknown:
            raise InvalidConfiguration(
                f"unknown key {shown(unknown[0])}; known: " + ", ".join(sorted(_KEYS))
            )
        for key in ("max_value", "eps_central", "atoms"):
            if key not in data:
                raise InvalidConfiguration(f"the key {key!r} is missing")
        if not isinstance(data["atoms"], list):
            raise InvalidConfiguration(f"'atoms' must be a list, not {shown(data['atoms'])}")
        eps, delta, n = (data.get(key) for key in ("eps", "delta", "n"))
        adjacency = data.get("adjacency", SUBSTITUTION)
        check_adjacency(adjacency)
        return Proposal(
            max_value=whole("max_value", data["max_value"], least=1),
            atoms=tuple(_entry(i, entry) for i, entry in enumerate(data["atoms"])),
            eps_central=positive("eps_central", data["eps_central"]),
            eps=None if eps is None else not_negative("eps", eps),
            delta=None if delta is None else probability("delta", delta),
            n=None if n is None else whole("n", n, least=1),
            dimension=dimension_of(data.get("dimension", 1)),
            adjacency=adjacency,
        )

    def configuration(self) -> Configuration:
        """Return the configuration for the evaluators, which need noise on every atom.

        Raises:
            InvalidParameter: If an atom has none.
        """
        atoms = []
        for elements, noise in self.atoms:
            if noise is None:
                raise InvalidParameter(
                    f"atom {list(elements)!s:.60} has no noise: its r or p, or the rate of its "
                    "bursts, is 0, and must be greater"
                )
            atoms.append((elements, noise))
        return Configuration.of(
            self.max_value, atoms, eps_central=self.eps_central, dimension=self.dimension
        )


def _entry(i: int, entry: Any) -> AtomParameters:
    if not isinstance(entry, dict):
        raise InvalidConfiguration(f"atoms[{i}] must be an object with atom, r and p")
    law = entry.get("law", NEGATIVE_BINOMIAL)
    one_of(f"atoms[{i}].law", law, get_args(NoiseLaw))
    names = {"rate", "p", "m"} if law == BURST else {"r", "p"}
    if set(entry) - {"law"} != {"atom", *names}:
        raise InvalidConfiguration(
            f"atoms[{i}] must have exactly the keys atom, {', '.join(sorted(names, reverse=True))}"
            f"{' and law' if law == BURST else ''}, not {', '.join(map(str, entry))!s:.80}"
        )
    if not isinstance(entry["atom"], list):
        raise InvalidConfiguration(f"atoms[{i}].atom = {shown(entry['atom'])} must be a list")
    elements = atom(entry["atom"])
    of_atom = f"of atom {entry['atom']}"
    p = not_negative(f"p {of_atom}", entry["p"])
    if p >= 1:
        raise InvalidParameter(f"p {of_atom} = {p} must be less than 1")
    if law == BURST:
        rate = not_negative(f"rate {of_atom}", entry["rate"])
        m = whole(f"m {of_atom}", entry["m"], least=1, most=LARGEST_M)
        if not p:
            raise InvalidParameter(f"p {of_atom} = 0: bursts need a p greater than 0")
        return AtomParameters(elements, Burst(rate, p, m) if rate else None)
    r = not_negative(f"r {of_atom}", entry["r"])
    return AtomParameters(elements, NegativeBinomial(r, p) if r and p else None)
