"""A configuration of the protocol: the atoms, their noise, and the central noise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from accounting.base import strict_json
from accounting.base.errors import AccountingError, InvalidConfiguration, InvalidParameter, TooLarge
from accounting.base.validation import not_negative, positive, probability, whole
from accounting.model.costs import discrete_laplace_variance
from accounting.model.family import Atom, Family, atom
from accounting.model.negative_binomial import NegativeBinomial
from accounting.model.noise import NoiseSum

LARGEST_STEP = 34.0
"""Of eps_central / max_value: beyond it e^{-2 step} leaves the range of the evaluators."""
LARGEST_DIMENSION = (1 << 31) - 1
MOST_PARTS = 64
"""Negative binomials whose sum is the noise of one atom."""
_MOST_R = 1 << 53
_KEYS = {"max_value", "eps", "delta", "n", "eps_central", "atoms", "dimension"}


def dimension_of(value: int) -> int:
    """1 for numbers, more for vectors."""
    return whole("dimension", value, least=1, most=LARGEST_DIMENSION)


@dataclass(frozen=True)
class Configuration:
    """Noise for every atom of a family, and NB(1, e^{-eps_central / max_value}) on +1 and on -1.

    With ``dimension`` > 1 inputs are vectors with at most one non-zero coordinate, and every
    coordinate has all this noise to itself.
    """

    family: Family
    noise: Mapping[Atom, NoiseSum]
    eps_central: float
    dimension: int = 1

    def __post_init__(self) -> None:
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
        atoms: Iterable[tuple[Iterable[int], NegativeBinomial]],
        *,
        eps_central: float,
        dimension: int = 1,
    ) -> Configuration:
        """An atom listed more than once carries the sum of the listed noises."""
        parts: dict[Atom, list[NegativeBinomial]] = {}
        for elements, noise in atoms:
            parts.setdefault(atom(elements), []).append(noise)
        family = Family(max_value, tuple(parts))
        noise_of = {elements: _sum(elements, listed) for elements, listed in parts.items()}
        return Configuration(family, noise_of, eps_central, dimension)

    @property
    def max_value(self) -> int:
        return self.family.max_value

    @property
    def step(self) -> float:
        """eps_central / max_value, the loss of a change by one in the sum."""
        return self.eps_central / self.max_value

    @property
    def noise_messages(self) -> float:
        """2 E[central] + sum of |s| E[D^s], over all users and coordinates."""
        atoms = math.fsum(len(s) * noise.mean for s, noise in self.noise.items())
        return self.dimension * (2 / math.expm1(self.step) + atoms)

    @property
    def mse(self) -> float:
        """The variance of the sum's Discrete Laplace noise, in every coordinate."""
        return discrete_laplace_variance(self.step)


def _sum(elements: Atom, listed: list[NegativeBinomial]) -> NoiseSum:
    """Noises with the same p become one where the sum of their r is a double."""
    if len(listed) == 1:
        return NoiseSum.of(listed)
    by_p: dict[float, list[float]] = {}
    for noise in listed:
        by_p.setdefault(noise.p, []).append(noise.r)
    parts = []
    for p, rs in by_p.items():
        exact = sum(map(Fraction, rs), Fraction(0))
        merged = exact < _MOST_R and Fraction(float(exact)) == exact
        parts += [NegativeBinomial(r, p) for r in ([float(exact)] if merged else rs)]
    if len(parts) > MOST_PARTS:
        raise TooLarge(
            f"atom {list(elements)!s:.60} is listed {len(listed):,} times, which makes a sum of "
            f"{len(parts):,} noises, more than {MOST_PARTS}; give it once, with the sum of all r "
            "that have the same p"
        )
    return NoiseSum.of(parts)


def load(path: Path) -> Configuration:
    """Read a configuration file; every error is an AccountingError that names the cause."""
    return loads(strict_json.read_text(path), source=str(path))


def loads(text: str, *, source: str = "the configuration") -> Configuration:
    """Parse the JSON text of a configuration."""
    data = strict_json.parse(text, source=source)
    with blaming(source):
        return Proposal.of(data).configuration()


@contextmanager
def blaming(source: str) -> Iterator[None]:
    """Errors inside name the file that they are about."""
    try:
        yield
    except AccountingError as error:
        raise type(error)(f"{source}: {error}") from error


@dataclass(frozen=True)
class Proposal:
    """What a configuration file says, number by number; it may leave messages without noise.

    Doubles are taken as the exact numbers they are; r = 0 or p = 0 is no noise.
    """

    max_value: int
    atoms: tuple[tuple[Atom, float, float], ...]
    eps_central: float
    eps: float | None
    delta: float | None
    n: int | None
    dimension: int = 1

    @staticmethod
    def of(data: Any) -> Proposal:
        """From decoded JSON, with nothing unknown in it."""
        if not isinstance(data, dict):
            raise InvalidConfiguration("expected a JSON object with " + ", ".join(sorted(_KEYS)))
        unknown = sorted(set(data) - _KEYS)
        if "format" in unknown:
            raise InvalidConfiguration("this is a parameter file: paramsearch audit reads it")
        if unknown:
            raise InvalidConfiguration(
                f"unknown key {unknown[0]!r}; known: " + ", ".join(sorted(_KEYS))
            )
        for key in ("max_value", "eps_central", "atoms"):
            if key not in data:
                raise InvalidConfiguration(f"the key {key!r} is missing")
        if not isinstance(data["atoms"], list):
            raise InvalidConfiguration(f"'atoms' must be a list, not {data['atoms']!r:.80}")
        eps, delta, n = (data.get(key) for key in ("eps", "delta", "n"))
        return Proposal(
            whole("max_value", data["max_value"], least=1),
            tuple(_entry(i, entry) for i, entry in enumerate(data["atoms"])),
            positive("eps_central", data["eps_central"]),
            None if eps is None else not_negative("eps", eps),
            None if delta is None else probability("delta", delta),
            None if n is None else whole("n", n, least=1),
            dimension_of(data.get("dimension", 1)),
        )

    def configuration(self) -> Configuration:
        """For the evaluators, which need noise everywhere."""
        atoms = []
        for elements, r, p in self.atoms:
            positive(f"r of atom {list(elements)}", r)
            probability(f"p of atom {list(elements)}", p)
            atoms.append((elements, NegativeBinomial(r, p)))
        return Configuration.of(
            self.max_value, atoms, eps_central=self.eps_central, dimension=self.dimension
        )


def _entry(i: int, entry: Any) -> tuple[Atom, float, float]:
    if not isinstance(entry, dict) or set(entry) != {"atom", "r", "p"}:
        keys = f"not {', '.join(map(str, entry))!r:.80}" if isinstance(entry, dict) else "an object"
        raise InvalidConfiguration(f"atoms[{i}] must have exactly the keys atom, r and p, {keys}")
    if not isinstance(entry["atom"], list):
        raise InvalidConfiguration(f"atoms[{i}].atom = {entry['atom']!r:.80} must be a list")
    elements = atom(entry["atom"])
    r = not_negative(f"r of atom {entry['atom']}", entry["r"])
    p = not_negative(f"p of atom {entry['atom']}", entry["p"])
    if p >= 1:
        raise InvalidParameter(f"p of atom {entry['atom']} = {p} must be less than 1")
    return elements, r, p
