"""All factors of a mechanism on one grid, built on demand."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from typing import Literal, NamedTuple

from flint import arb, arb_poly

from accounting.base.arrays import FloatArray
from accounting.base.balls import floor
from accounting.base.deadline import check_deadline, check_time
from accounting.base.errors import InternalError, TooLarge, required
from accounting.model.change import Change
from accounting.model.mechanism import Atom
from accounting.notary.columns import UNIT, Column
from accounting.notary.dropouts.coupling import OffsetLaws
from accounting.notary.dropouts.thinned import ThinnedCentral
from accounting.notary.factors import (
    Factor,
    Groups,
    SplitLoss,
    TooFine,
    dominating,
    grouped,
    labeled,
)
from accounting.notary.tables import NoiseTable

Side = Literal["above", "p", "q"]
"""A dominating law for upper bounds, or the law of the labels in the first or second world."""
_EVERYTHING = -(1 << 40)
"""A grid index below every finite loss: nothing is cut."""
_NO_LOSS = Factor(0, arb_poly([1]), arb(0))
"""The law of a loss that is always 0."""
_SPARE = 8
"""Cells below those asked for that the labels of a thinned central term cover, so that both laws
have the same labels."""
_HARDEST = 1 << 25
"""Largest releases x grid cells: beyond it, powers take too long because their coefficients differ
so much in size."""


@dataclass(frozen=True)
class CoordinateShift:
    """The shifts of the noises of the atoms when one coordinate changes from ``before`` to
    ``after``.

    ``unit_shift`` is the shift of {-1, +1}; ``shifts`` are the other non-zero ones.
    """

    before: int
    after: int
    shifts: tuple[tuple[Atom, int], ...]
    unit_shift: int

    @staticmethod
    def of(before: int, after: int, columns: Sequence[Column]) -> CoordinateShift:
        """Shifts are differences of two columns."""
        old, new = columns[before], columns[after]
        difference = {a: old.get(a, 0) - new.get(a, 0) for a in old.keys() | new.keys()}
        unit = difference.pop(UNIT, 0)
        shifts = tuple(sorted((a, shift) for a, shift in difference.items() if shift))
        return CoordinateShift(before, after, shifts, unit)

    def by_law(self, laws: Mapping[Atom, Atom]) -> CoordinateShift:
        """With every noise under the name of the atom that stands for its law, so that equal laws
        share tables and factors; a product has a factor as often as it is listed here."""
        return replace(self, shifts=tuple(sorted((laws[a], shift) for a, shift in self.shifts)))

    @property
    def distance(self) -> int:
        """By how much the sum changes."""
        return abs(self.before - self.after)

    @property
    def first_shift(self) -> int:
        """The smallest shift b of W (evaluator/exact_view.md, Theorem 2)."""
        return self.unit_shift + min(0, self.before - self.after)

    @property
    def central(self) -> tuple[int, int]:
        """The numbers that the central term depends on."""
        return self.distance, self.first_shift


Shifts = tuple[CoordinateShift, ...]
"""What a change does in every coordinate it touches; their noises are independent."""


@dataclass(frozen=True)
class ShiftedChange:
    """A change of one user's input, and how it shifts the noises."""

    change: Change
    shifts: Shifts


@dataclass(frozen=True)
class Noises:
    """The tables of all noises, the loss of one unit of the sum, and the thinned central noise."""

    tables: Mapping[Atom, NoiseTable]
    loss: arb
    thinned: ThinnedCentral | None


class Offset(NamedTuple):
    """A central offset at the grid index ``position``; W is shifted by first_shift + ``case``."""

    case: int
    position: int
    weight: arb


class _KnownCentral(NamedTuple):
    """A central term without finite losses below ``lowest``."""

    of: tuple[int, int]
    lowest: int
    factor: Factor


class Grid:
    """The factors on a grid with step h = ``ratio`` * loss, where loss = eps_central / max_value.

    The offsets of the central noise are multiples of the loss.  If the ratio is 1/m they lie on the
    grid; otherwise they are split like any other loss.  ``clip`` is roughly the mass that each
    factor may move to +infinity.
    """

    def __init__(
        self,
        noises: Noises,
        log_masses: Mapping[Atom, FloatArray],
        *,
        ratio: Fraction,
        clip: float,
        releases: int,
    ) -> None:
        self.tables, self.loss, self.thinned = noises.tables, noises.loss, noises.thinned
        self.log_masses = log_masses
        self.ratio, self.clip, self.releases = ratio, clip, releases
        self.h = self.loss * ratio.numerator / ratio.denominator
        self.q = (-self.loss).exp()
        self._groups: dict[tuple[Atom, int], Groups] = {}
        self._factors: dict[tuple[Atom, int, Side], Factor] = {}
        self._offsets: dict[tuple[int, Side], tuple[Offset, ...]] = {}
        self._laws: dict[tuple[int, int, Side], Factor] = {}
        self._coupled_offsets: dict[int, OffsetLaws] = {}
        self._labels: dict[tuple[int, int], tuple[int, tuple[Factor, Factor]]] = {}
        self._last_central: dict[Side, _KnownCentral] = {}

    def prepare(self, changes: Iterable[ShiftedChange], deadline: float) -> None:
        """Group every noise under every shift that these changes need, in one pass per noise."""
        wanted: dict[Atom, set[int]] = defaultdict(set)
        for c in chain.from_iterable(shifted.shifts for shifted in changes):
            for atom, shift in c.shifts:
                wanted[atom].add(shift)
            wanted[UNIT].update(self._unit_shifts(c))
        for atom, shifts in wanted.items():
            missing = sorted(a for a in shifts if (atom, a) not in self._groups)
            if missing:
                check_deadline(deadline)
                found = grouped(
                    self.tables[atom], missing, self.h, self.clip, self.log_masses[atom]
                )
                self._groups.update({(atom, a): found[a] for a in missing})

    def _unit_shifts(self, c: CoordinateShift) -> Iterable[int]:
        """The shifts of the noise of {-1, +1} that the central term of a change mixes."""
        if self.thinned is None or self.thinned.exceeds:
            return range(c.first_shift, c.first_shift + c.distance + 1)
        return (c.first_shift + shift for shift in self.thinned.shifts(c.distance))

    def factor(self, atom: Atom, shift: int, side: Side) -> Factor:
        key = (atom, shift, side)
        if key not in self._factors:
            groups = self._groups[atom, shift]
            if side == "above":
                self._factors[key] = dominating(groups, self.h)
            else:
                p, q = labeled(groups, self.h)
                self._factors[atom, shift, "p"], self._factors[atom, shift, "q"] = p, q
        return self._factors[key]

    def offsets(self, n: int, side: Side) -> tuple[Offset, ...]:
        """The law of the central offset (n - 2i) * loss on the grid."""
        if (n, side) not in self._offsets:
            self._offsets[n, side] = self._split_offsets(n, side)
        return self._offsets[n, side]

    def _split_offsets(self, n: int, side: Side) -> tuple[Offset, ...]:
        end, inner = 1 / (1 + self.q), (1 - self.q) / (1 + self.q)
        cell = (-self.h).exp()
        out: list[Offset] = []
        for i in range(n + 1):
            check_time()
            weight = self.q**i * (inner if 0 < i < n else end)
            exact = (n - 2 * i) / self.ratio
            low = math.floor(exact)
            if side == "q":
                weight *= (-self.loss * (n - 2 * i)).exp()
            if side != "above" or exact == low:
                out.append(Offset(i, round(exact), weight))
                continue
            part = exact - low
            left = ((-self.h * part.numerator / part.denominator).exp() - cell) / (1 - cell)
            out += [Offset(i, low, weight * left), Offset(i, low + 1, weight * (1 - left))]
        return tuple(out)

    def _thinned(self, c: CoordinateShift, side: Side, lowest: int) -> Factor:
        """The central term of a fraction of the users, without finite losses below ``lowest``."""
        if side == "above":
            return dominating(self._thinned_groups(c, lowest), self.h)
        key = c.before, c.after
        if key not in self._labels or self._labels[key][0] > lowest:
            both = labeled(self._thinned_groups(c, lowest - _SPARE), self.h)
            self._labels[key] = lowest - _SPARE, both
        return self._labels[key][1][0 if side == "p" else 1].above(lowest)

    def _thinned_groups(self, c: CoordinateShift, lowest: int) -> Groups:
        return required(self.thinned, "the thinned central noise").groups(
            c.before - c.after,
            c.unit_shift,
            self.h,
            clip=self.clip,
            lowest=lowest,
            log_mass=self.log_masses[UNIT],
        )

    def _offset_laws(self, distance: int) -> OffsetLaws:
        if distance not in self._coupled_offsets:
            thinned = required(self.thinned, "the thinned central noise")
            coupled = required(thinned.coupled, "the coupling of the central noise")
            self._coupled_offsets[distance] = coupled.offset_laws(distance, self.h)
        return self._coupled_offsets[distance]

    def _coupled(self, c: CoordinateShift, side: Side, lowest: int) -> Factor:
        """The mixture of shifts of z_0 that dominates the central term."""
        if side != "above":
            raise InternalError(f"a coupling bounds from above, and the side is {side!r}")
        offsets = self._offset_laws(c.distance)
        parts, infinite = [], offsets.infinite
        for shift, law in offsets.laws.items():
            factor = self.factor(UNIT, c.first_shift + shift, "above")
            infinite += factor.infinite * law.poly(arb(1))
            if factor.top + law.top >= lowest:
                parts.append((law, factor.above(lowest - law.top)))
        base = min((law.base + factor.base for law, factor in parts), default=lowest)
        TooFine.check(
            max((law.top + factor.top for law, factor in parts), default=lowest) - base + 1
        )
        poly = arb_poly([])
        for law, factor in parts:
            check_time()
            poly += (law.poly * factor.poly).left_shift(law.base + factor.base - base)
        return Factor(base, poly, infinite)

    def central(self, c: CoordinateShift, side: Side, lowest: int) -> Factor:
        """The central term without finite losses below ``lowest``.

        It depends on the distance and the first shift only, and changes come sorted by these: the
        last one is kept, with twice as many losses once another change needs more of them.
        """
        thinned = self.thinned
        if thinned is not None and not (side == "above" and (thinned.coupled or thinned.exceeds)):
            return self._thinned(c, side, lowest)
        known = self._last_central.get(side)
        if known is None or known.of != c.central or known.lowest > lowest:
            again = known is not None and known.of == c.central
            cut = lowest - known.factor.poly.length() if known is not None and again else lowest
            mixture = self._plain_central if thinned is None or thinned.exceeds else self._coupled
            known = _KnownCentral(c.central, cut, mixture(c, side, cut))
            self._last_central[side] = known
        return known.factor.above(lowest)

    def _plain_central(self, c: CoordinateShift, side: Side, lowest: int) -> Factor:
        """The mixture of shifts of W that is the central term."""
        parts, infinite = [], arb(0)
        for case, index, weight in self.offsets(c.distance, side):
            factor = self.factor(UNIT, c.first_shift + case, side)
            infinite += factor.infinite * weight
            if factor.top + index >= lowest:
                parts.append((factor.above(lowest - index), index, weight))
        base = min((f.base + index for f, index, _ in parts), default=lowest)
        TooFine.check(max((f.top + index for f, index, _ in parts), default=lowest) - base + 1)
        poly = arb_poly([])
        for factor, index, weight in parts:
            check_time()
            poly += (factor.poly * weight).left_shift(factor.base + index - base)
        return Factor(base, poly, infinite)

    def whole_loss(self, shifts: Shifts, side: Side, threshold: int) -> SplitLoss:
        """The whole loss, without finite losses below ``threshold`` that are easy to leave out."""
        if len(shifts) == 1:
            return self._single(shifts[0], side, threshold)
        times = self.releases
        laws = [self._law(c, side) for c in shifts]
        spare = times * sum(law.top for law in laws) - threshold
        self._affordable(times * sum(law.poly.length() for law in laws))
        # see _single: a loss further than ``spare`` below the top cannot matter
        *others, last = [law.above(law.top - spare).power(times) for law in laws]
        product = others[0]
        for law in others[1:]:
            product = product.times(law)
        return SplitLoss(product, last)

    def law(self, shifts: Shifts, side: Side) -> Factor:
        """The law of the loss of one change in one release."""
        first, *others = shifts
        out = self._law(first, side)
        for c in others:
            out = out.times(self._law(c, side))
        return out

    def _law(self, c: CoordinateShift, side: Side) -> Factor:
        """The law of the loss of one coordinate in one release, which many changes share."""
        key = (c.before, c.after, side)
        if key not in self._laws:
            law = self.central(c, side, _EVERYTHING)
            for atom, shift in c.shifts:
                check_time()
                law = law.times(self.factor(atom, shift, side))
                TooFine.check(law.poly.length())
            self._laws[key] = law
        return self._laws[key]

    def _single(self, c: CoordinateShift, side: Side, threshold: int) -> SplitLoss:
        """``whole_loss`` for a change in one coordinate."""
        times = self.releases
        plain = [self.factor(atom, shift, side) for atom, shift in c.shifts]
        tops = sum(f.top for f in plain)
        # a loss does not matter if the largest losses of all others do not lift it to the threshold
        if times == 1:
            central = self.central(c, side, threshold - tops)
        else:
            central = self.central(c, side, _EVERYTHING)
            central = central.above(threshold - times * tops - (times - 1) * central.top)
        spare = times * (central.top + tops) - threshold
        if spare < 0 or central.poly.length() == 0:
            safe = 1 - central.infinite
            for factor in plain:
                safe *= 1 - factor.infinite
            return SplitLoss(Factor(threshold, arb_poly([]), 1 - safe**times), _NO_LOSS)
        self._affordable(times * (central.poly.length() + sum(f.poly.length() for f in plain)))
        left = [f.above(f.top - spare).power(times) for f in plain]
        left.append(central.power(times).above(times * central.top - spare))
        while len(left) > 2:  # the two shortest first
            check_time()
            left.sort(key=lambda f: f.poly.length(), reverse=True)
            product = left.pop().times(left.pop())
            left.append(product.above(product.top - spare))
        return SplitLoss(left[0], left[1] if len(left) > 1 else _NO_LOSS)

    def _affordable(self, cells: int) -> None:
        """Refuse a product that would take too much memory or time."""
        times = self.releases
        TooFine.check(cells)
        if times > 1 and times * cells > _HARDEST:
            raise TooLarge(
                f"{times:,} releases with {cells:,} grid cells take too long: ask for --tier fast"
            )

    def upper(self, shifts: Shifts, eps: arb) -> arb:
        """An upper bound on delta(eps) of these shifts."""
        best = arb(0)
        position = eps / self.h
        for threshold in {floor(position) + 1, floor(position.upper()) + 1}:
            loss = self.whole_loss(shifts, "above", threshold)
            best = best.max(loss.infinite + loss.excess(threshold, eps, self.h))
        return best

    def lower(self, shifts: Shifts, eps: arb) -> arb:
        """A lower bound on delta(eps) of these shifts: the advantage of a threshold test."""
        best = arb(0)
        middle = floor(eps / self.h) + 1
        p, q = (self.whole_loss(shifts, side, middle - 1) for side in ("p", "q"))
        for threshold in (middle - 1, middle, middle + 1):
            first, second = (x.infinite + x.mass_from(threshold) for x in (p, q))
            best = best.max(first - eps.exp() * second)
        return best
