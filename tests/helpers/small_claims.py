"""Random small mechanisms, as configuration files, with the true delta from the definition."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from accounting import Enclosure, ExactCentral, ExactNoise, Mechanism, Reference
from accounting.model.configuration import Proposal

Noise = tuple[float, float]
"""r and p of a negative binomial."""


def small_mechanism(
    units: Sequence[Noise],
    double: Noise | None = None,
    *,
    eps_central: float,
    share: float = 1.0,
    dimension: int = 1,
) -> Mechanism:
    """max_value 1 with noises on {-1, 1}, or 2 with one on {2, -1, -1} as well.

    ``share`` is the parameter r of the central noises; the other noises are as they are given.
    """
    top = 1 if double is None else 2
    atoms = {(-1, 1): tuple(_exact(noise) for noise in units)}
    if double is not None:
        atoms[2, -1, -1] = (_exact(double),)
    step = Fraction(eps_central) / top
    return Mechanism(top, atoms, ExactCentral(step=step, fraction=Fraction(share)), dimension)


def _exact(noise: Noise) -> ExactNoise:
    return ExactNoise(r=Fraction(noise[0]), p=Fraction(noise[1]))


def random_mechanism(rng: random.Random, *, double: bool, quiet: bool) -> Mechanism:
    """With ``quiet`` the noise is small enough to enumerate three releases."""

    def noise() -> Noise:
        r = rng.uniform(0.3, 1) if rng.random() < 0.3 else rng.uniform(1, 5)
        return round(r, 3), round(rng.uniform(0.1, 0.45) if quiet else rng.uniform(0.5, 0.8), 3)

    units, two = [noise()], noise() if double else None
    return small_mechanism(units, two, eps_central=round(rng.uniform(0.8, 2.5), 3))


@dataclass(frozen=True)
class Small:
    """A configuration with max_value 1 or 2, and delta(eps) over all ordered pairs."""

    data: dict[str, Any]
    share: float
    truth: Enclosure

    @property
    def eps(self) -> float:
        return float(self.data["eps"])

    def proposal(self, delta: float = 0.5) -> Proposal:
        return Proposal.of({**self.data, "delta": delta})


def _noise(rng: random.Random) -> Noise:
    r = rng.uniform(0.2, 1) if rng.random() < 0.4 else rng.uniform(1, 4)
    return round(r, 3), round(rng.uniform(0.1, 0.5), 3)


def small(
    units: list[Noise],
    double: Noise | None,
    *,
    eps_central: float,
    eps: float,
    share: float = 1.0,
) -> Small:
    """A mechanism, given by the noises that remain if only ``share`` of the users adds noise."""
    remaining = small_mechanism(units, double, eps_central=eps_central, share=share)
    truth = Reference(remaining).enclose(eps, gap=1e-6).enclosure
    # an honest fraction thins every noise alike; the file has the noise before thinning
    atoms: list[dict[str, Any]] = [{"atom": [-1, 1], "r": r / share, "p": p} for r, p in units]
    if double is not None:
        atoms.append({"atom": [2, -1, -1], "r": double[0] / share, "p": double[1]})
    top = remaining.max_value
    data = {"max_value": top, "eps": eps, "eps_central": eps_central, "atoms": atoms}
    return Small(data, share, truth)


def draw(seed: int, count: int, *, shares: tuple[float, ...] = (1.0,)) -> Iterator[Small]:
    """Random mechanisms; the same seed gives the same ones."""
    rng = random.Random(seed)
    for _ in range(count):
        top = rng.choice((1, 2))
        units = [_noise(rng)] if rng.random() < 0.9 else [_noise(rng), _noise(rng)]
        yield small(
            units,
            _noise(rng) if top == 2 else None,
            eps_central=round(rng.uniform(0.8, 4) * top, 3),
            eps=round(rng.uniform(0, 2.5), 3),
            share=rng.choice(shares),
        )
