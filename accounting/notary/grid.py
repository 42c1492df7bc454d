"""All factors of a mechanism on one grid, built when they are asked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from flint import arb

from accounting.arrays import FloatArray
from accounting.notary.balls import floor
from accounting.notary.columns import UNIT, Column
from accounting.notary.factors import Factor, Groups, dominating, grouped, labelled, total
from accounting.notary.mechanism import Atom
from accounting.notary.tables import NoiseTable

Side = Literal["above", "p", "q"]


@dataclass(frozen=True)
class Change:
    """One input changes from j to k: shifts of the atoms' noises, and of the sum."""

    pair: tuple[int, int]
    shifts: tuple[tuple[Atom, int], ...]
    unit_shift: int

    @property
    def distance(self) -> int:
        return abs(self.pair[0] - self.pair[1])

    @property
    def first_shift(self) -> int:
        """Of W where the sum moves against the change (exact_view.md, Theorem 2): b."""
        return self.unit_shift + min(0, self.pair[0] - self.pair[1])


def change(j: int, k: int, before: Column, after: Column) -> Change:
    difference = {a: before.get(a, 0) - after.get(a, 0) for a in before.keys() | after.keys()}
    unit = difference.pop(UNIT, 0)
    shifts = tuple(sorted((a, shift) for a, shift in difference.items() if shift))
    return Change((j, k), shifts, unit)


class Grid:
    """The factors with step h = loss / divisions, where loss = eps_central / max_value.

    So the offsets of the central noise are multiples of h.  ``clip`` bounds, roughly, the mass that
    each factor moves to +infinity.
    """

    def __init__(
        self,
        tables: dict[Atom, NoiseTable],
        log_masses: dict[Atom, FloatArray],
        loss: arb,
        divisions: int,
        clip: float,
        releases: int,
    ) -> None:
        self.tables, self.log_masses = tables, log_masses
        self.loss, self.divisions, self.clip, self.releases = loss, divisions, clip, releases
        self.h = loss / divisions
        self.q = (-loss).exp()
        self._groups: dict[tuple[Atom, int], Groups] = {}
        self._factors: dict[tuple[Atom, int, Side], Factor] = {}

    def prepare(self, changes: Iterable[Change]) -> None:
        """Group every noise under every shift that these changes need, in one pass per noise."""
        wanted: dict[Atom, set[int]] = defaultdict(set)
        for c in changes:
            for atom, shift in c.shifts:
                wanted[atom].add(shift)
            first = c.first_shift
            wanted[UNIT].update(range(first, first + c.distance + 1))
        for atom, shifts in wanted.items():
            missing = sorted(a for a in shifts if (atom, a) not in self._groups)
            if missing:
                found = grouped(
                    self.tables[atom], missing, self.h, self.clip, self.log_masses[atom]
                )
                self._groups.update({(atom, a): found[a] for a in missing})

    def factor(self, atom: Atom, shift: int, side: Side) -> Factor:
        key = (atom, shift, side)
        if key not in self._factors:
            groups = self._groups[atom, shift]
            if side == "above":
                self._factors[key] = dominating(groups, self.h)
            else:
                p, q = labelled(groups, self.h)
                self._factors[atom, shift, "p"], self._factors[atom, shift, "q"] = p, q
        return self._factors[key]

    @cached_property
    def _ends(self) -> tuple[arb, arb]:
        return 1 / (1 + self.q), (1 - self.q) / (1 + self.q)

    def central(self, c: Change, side: Side, lowest: int) -> Factor:
        """The mixture over the central noise; components that stay below ``lowest`` are left out,
        but for their mass at +infinity."""
        n, first, m = c.distance, c.first_shift, self.divisions
        end, inner = self._ends
        parts = []
        for i in range(n + 1):
            steps = (n - 2 * i) * m
            factor = self.factor(UNIT, first + i, side)
            weight = self.q**i * (inner if 0 < i < n else end)
            if side == "q":
                weight *= (-self.loss * (n - 2 * i)).exp()
            if factor.top + steps < lowest:
                factor = Factor(lowest - steps, factor.poly * 0, factor.infinite)
            parts.append(factor.moved(steps, weight))
        return total(parts)

    def product(self, c: Change, side: Side, threshold: int) -> Factor:
        """The law of the whole loss, without finite losses below ``threshold``."""
        times = self.releases
        plain = [self.factor(atom, shift, side) for atom, shift in c.shifts]
        plain.sort(key=lambda f: f.poly.length())
        n, m = c.distance, self.divisions
        central_top = max(
            self.factor(UNIT, c.first_shift + i, side).top + (n - 2 * i) * m for i in range(n + 1)
        )
        spare = times * (central_top + sum(f.top for f in plain)) - threshold
        if spare < 0:
            return self._certain(plain, c, side, threshold)
        # a loss more than ``spare`` below a factor's top cannot reach the threshold
        out = self.central(c, side, central_top - spare).above(central_top - spare).power(times)
        reach = times * central_top
        product: Factor | None = None
        for factor in plain:
            part = factor.above(factor.top - spare).power(times)
            product = part if product is None else product.times(part)
            product = product.above(product.top - spare)
        if product is not None:
            out = out.above(reach - spare).times(product)
        return out.above(threshold)

    def _certain(self, plain: list[Factor], c: Change, side: Side, threshold: int) -> Factor:
        """Only +infinity can pass the threshold."""
        rest = self.central(c, side, threshold + 1)
        safe = 1 - rest.infinite
        for factor in plain:
            safe *= 1 - factor.infinite
        return Factor(threshold, rest.poly * 0, 1 - safe**self.releases)

    def upper(self, c: Change, eps: arb) -> arb:
        """delta(eps) of this change is at most this."""
        best = arb(0)
        position = eps / self.h
        for threshold in {floor(position) + 1, floor(position.upper()) + 1}:
            law = self.product(c, "above", threshold)
            scale = (eps - self.h * law.base).exp()
            decay = (-self.h).exp()
            best = best.max(law.infinite + law.poly(arb(1)) - scale * law.poly(decay))
        return best

    def lower(self, c: Change, eps: arb) -> arb:
        """delta(eps) of this change is at least this: the advantage of a threshold test."""
        best = arb(0)
        middle = floor(eps / self.h) + 1
        p, q = (self.product(c, side, middle - 1) for side in ("p", "q"))
        for threshold in (middle - 1, middle, middle + 1):
            gain = p.above(threshold).poly(arb(1)) - eps.exp() * q.above(threshold).poly(arb(1))
            best = best.max(p.infinite + gain)
        return best
