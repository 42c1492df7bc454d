"""A configuration of the protocol: the atoms, their noise, and the central noise."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accounting.checks import not_negative, positive, probability, whole
from accounting.errors import AccountingError, InvalidConfiguration, InvalidParameter
from accounting.family import Atom, Family, atom
from accounting.negative_binomial import NegativeBinomial
from accounting.noise import NoiseSum

LARGEST_STEP = 34.0
"""Of eps_central / max_value: beyond it e^{-2 step} leaves the range of the evaluators."""
_LARGEST_FILE = 64 << 20
_KEYS = {"max_value", "eps", "delta", "n", "eps_central", "atoms"}


@dataclass(frozen=True)
class Configuration:
    """Noise for every atom of a family, and NB(1, e^{-eps_central / max_value}) on +1 and on -1.

    ``eps``, ``delta`` and ``n`` are what the configuration claims; the evaluators need only ``eps``
    and take any other on request.
    """

    family: Family
    noise: Mapping[Atom, NoiseSum]
    eps_central: float
    eps: float | None = None
    delta: float | None = None
    n: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps_central", positive("eps_central", self.eps_central))
        if self.eps_central / self.family.max_value > LARGEST_STEP:
            raise InvalidParameter(
                f"eps_central = {self.eps_central} leaves no central noise at "
                f"max_value = {self.family.max_value}; take at most {LARGEST_STEP:g} per unit"
            )
        if self.eps is not None:
            object.__setattr__(self, "eps", not_negative("eps", self.eps))
        if self.delta is not None:
            object.__setattr__(self, "delta", probability("delta", self.delta))
        if self.n is not None:
            object.__setattr__(self, "n", whole("n", self.n, least=1))
        if set(self.noise) != set(self.family.atoms):
            odd = sorted(set(self.noise) ^ set(self.family.atoms))[0]
            raise InvalidConfiguration(f"atom {list(odd)} has no noise or is not in the family")

    @staticmethod
    def of(
        max_value: int,
        atoms: Iterable[tuple[Iterable[int], NegativeBinomial]],
        *,
        eps_central: float,
        eps: float | None = None,
        delta: float | None = None,
        n: int | None = None,
    ) -> Configuration:
        """An atom listed more than once carries the sum of the listed noises."""
        parts: dict[Atom, list[NegativeBinomial]] = {}
        for elements, noise in atoms:
            parts.setdefault(atom(elements), []).append(noise)
        family = Family(max_value, tuple(parts))
        noise_of = {elements: NoiseSum.of(listed) for elements, listed in parts.items()}
        return Configuration(family, noise_of, eps_central, eps=eps, delta=delta, n=n)

    @property
    def max_value(self) -> int:
        return self.family.max_value

    @property
    def step(self) -> float:
        """eps_central / max_value, the loss of a change by one in the sum."""
        return self.eps_central / self.max_value

    @property
    def central_noise(self) -> NegativeBinomial:
        """The noise on +1 and on -1; p is the double nearest to e^{-step}, for information."""
        return NegativeBinomial(1.0, math.exp(-self.step))

    @property
    def noise_messages(self) -> float:
        """2 E[central] + sum of |s| E[D^s], over all users."""
        atoms = math.fsum(len(s) * noise.mean for s, noise in self.noise.items())
        return 2 / math.expm1(self.step) + atoms

    @property
    def mse(self) -> float:
        """The variance of DLap(step): 2q/(1-q)^2."""
        return 0.5 / math.sinh(self.step / 2) ** 2


def load(path: Path) -> Configuration:
    """Read a configuration file; every error is an AccountingError that names the cause."""
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise InvalidConfiguration(f"{path} is larger than {_LARGEST_FILE >> 20} MiB")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidConfiguration(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidConfiguration(f"{path} is not UTF-8: {error.reason}") from error
    return loads(text, source=str(path))


def loads(text: str, *, source: str = "the configuration") -> Configuration:
    """Parse the JSON text of a configuration."""
    try:
        data = json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constants)
    except AccountingError as error:
        raise InvalidConfiguration(f"{source}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidConfiguration(f"{source} is not JSON: {error}") from error
    try:
        return _parse(data)
    except AccountingError as error:
        raise type(error)(f"{source}: {error}") from error


def _no_duplicates(items: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(items)
    if len(out) != len(items):
        names = [name for name, _ in items]
        repeated = next(name for name in names if names.count(name) > 1)
        raise InvalidConfiguration(f"the key {repeated!r} is given twice")
    return out


def _no_constants(name: str) -> Any:
    raise InvalidConfiguration(f"{name} is not a number here")


def _parse(data: Any) -> Configuration:
    if not isinstance(data, dict):
        raise InvalidConfiguration("expected a JSON object with " + ", ".join(sorted(_KEYS)))
    unknown = sorted(set(data) - _KEYS)
    if unknown:
        raise InvalidConfiguration(
            f"unknown key {unknown[0]!r}; known: " + ", ".join(sorted(_KEYS))
        )
    for key in ("max_value", "eps_central", "atoms"):
        if key not in data:
            raise InvalidConfiguration(f"the key {key!r} is missing")
    if not isinstance(data["atoms"], list):
        raise InvalidConfiguration(f"'atoms' must be a list, not {data['atoms']!r}")
    atoms = []
    for i, entry in enumerate(data["atoms"]):
        if not isinstance(entry, dict) or set(entry) != {"atom", "r", "p"}:
            raise InvalidConfiguration(f"atoms[{i}] must have exactly the keys atom, r and p")
        if not isinstance(entry["atom"], list):
            raise InvalidConfiguration(f"atoms[{i}].atom = {entry['atom']!r} must be a list")
        noise = NegativeBinomial(
            positive(f"r of atom {entry['atom']}", entry["r"]),
            probability(f"p of atom {entry['atom']}", entry["p"]),
        )
        atoms.append((entry["atom"], noise))
    return Configuration.of(
        data["max_value"],
        atoms,
        eps_central=data["eps_central"],
        eps=data.get("eps"),
        delta=data.get("delta"),
        n=data.get("n"),
    )
