"""Random small mechanisms, as configuration files, with the true delta by enumeration."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import small_views
from truth import Bracket

from accounting.model.configuration import Proposal


@dataclass(frozen=True)
class Small:
    """A configuration with max_value 1 or 2, and delta(eps) over all ordered pairs."""

    data: dict[str, Any]
    share: float
    truth: Bracket
    worst_pair: tuple[int, int]

    @property
    def eps(self) -> float:
        return float(self.data["eps"])

    def proposal(self, delta: float = 0.5) -> Proposal:
        return Proposal.of({**self.data, "delta": delta})


def _noise(rng: random.Random) -> tuple[float, float]:
    r = rng.uniform(0.2, 1) if rng.random() < 0.4 else rng.uniform(1, 4)
    return round(r, 3), round(rng.uniform(0.1, 0.5), 3)


def small(
    units: list[tuple[float, float]],
    double: tuple[float, float] | None,
    *,
    eps_central: float,
    eps: float,
    share: float = 1.0,
) -> Small:
    """A mechanism, given by the noises that remain if only ``share`` of the users adds noise."""
    truth, worst = small_views.delta(units, double, eps_central, eps, share=share, tail=1e-12)
    # an honest fraction thins every noise alike; the file has the noise before thinning
    atoms: list[dict[str, Any]] = [{"atom": [-1, 1], "r": r / share, "p": p} for r, p in units]
    if double is not None:
        atoms.append({"atom": [2, -1, -1], "r": double[0] / share, "p": double[1]})
    top = 1 if double is None else 2
    data = {"max_value": top, "eps": eps, "eps_central": eps_central, "atoms": atoms}
    return Small(data, share, truth, worst)


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
