"""Typical mistakes, planted one by one: the checks against enumeration must detect each of them.

``complaints`` is the soundness check of test_notary.py on a fixed set of small mechanisms.  It
finds nothing for the notary as it is, and must find something with every mistake below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from flint import arb
from small_claims import Small, draw, small

from accounting.base.balls import ball
from accounting.model.mechanism import ExactCentral, ExactNoise
from accounting.notary import factors, grid
from accounting.notary.factors import Factor, Groups, measure
from accounting.notary.grid import CoordinateShift
from accounting.notary.notary import Notary
from accounting.notary.tables import NegativeBinomialPart, NoiseTable
from paramsearch.certification.audit import mechanism_of
from paramsearch.certification.certify import claimed_mechanism
from paramsearch.parameters.assembly import uncertified


@cache
def cases() -> tuple[Small, ...]:
    whole = draw(11, 60)
    thin = draw(12, 12, shares=(0.5, 0.75))
    bumpy = small([(0.05, 0.8), (6.0, 0.1)], None, eps_central=1.0, eps=0.2)
    return (*whole, *thin, bumpy)


def complaints() -> Iterator[str]:
    """Descriptions of bounds that are on the wrong side of the truth."""
    for case in cases():
        mechanism = mechanism_of(case.proposal()).thinned(Fraction(case.share))
        yield from _wrong(case, Notary(mechanism))
        if case.share == 1:  # the same with the rationals of a parameter file
            file = uncertified(replace(case.proposal(), n=1000))
            yield from _wrong(case, Notary(claimed_mechanism(file)))


def _wrong(case: Small, prover: Notary) -> Iterator[str]:
    found = prover.enclose(case.eps, gap=1e-2).enclosure
    margin = 1e-9  # the file's noise is rounded up by a relative 2^-52
    if found.lower > case.truth.upper * (1 + margin):
        yield f"the lower bound {found.lower} is above the truth {case.truth.upper}"
    if found.upper < case.truth.lower * (1 - margin):
        yield f"the upper bound {found.upper} is below the truth {case.truth.lower}"


def test_no_complaint_without_a_mistake() -> None:
    assert list(complaints()) == []


def test_no_complaint_with_a_poor_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factors, "plan_runs", long_runs)
    assert list(complaints()) == []


def split_the_wrong_way(groups: Groups, h: arb) -> Factor:
    """All of a cell's mass at its lower end."""
    out: dict[int, arb] = {}
    for g in groups.groups:
        out[g.low] = out.get(g.low, arb(0)) + g.p
    return measure(out, groups.certain + groups.rest)


_dominating, _labeled = factors.dominating, factors.labeled
_shift = CoordinateShift.of


def without_infinity(groups: Groups, h: arb) -> Factor:
    found = _dominating(groups, h)
    return replace(found, infinite=arb(0))


def without_the_tail(groups: Groups, h: arb) -> Factor:
    return _dominating(replace(groups, rest=arb(0)), h)


def truncated_early(self: NoiseTable, tail: float, beyond: int) -> Any:
    return _log_masses(self, 1e-2, beyond)


_log_masses = NoiseTable.log_masses


def tail_gained_below(groups: Groups, h: arb) -> tuple[Factor, Factor]:
    first, second = _labeled(groups, h)
    return replace(first, infinite=first.infinite + groups.rest), second


def infinity_twice(groups: Groups, h: arb) -> tuple[Factor, Factor]:
    first, second = _labeled(groups, h)
    return replace(first, infinite=2 * first.infinite), second


def labels_as_losses(groups: Groups, h: arb) -> tuple[Factor, Factor]:
    """The second law read off the labels, rounded up, instead of being summed."""
    first = {}
    for g in groups.groups:
        first[g.high] = first.get(g.high, arb(0)) + g.p
    second = {i: mass * (-h * i).exp() for i, mass in first.items()}
    return measure(first, groups.certain), measure(second, arb(0))


def forget_the_unit_shift(*arguments: Any) -> Any:
    return replace(_shift(*arguments), unit_shift=0)


def only_the_sum_moves(*arguments: Any) -> Any:
    return replace(_shift(*arguments), shifts=())


def wrong_sign(before: int, after: int, columns: Any) -> Any:
    return replace(_shift(after, before, columns), before=before, after=after)


def one_direction(self: Notary, changes: Any = None) -> Any:
    return [s for s in _shifted(self, changes) if s.change.before > s.change.after]


def other_direction(self: Notary, changes: Any = None) -> Any:
    return [s for s in _shifted(self, changes) if s.change.before < s.change.after]


def add_or_remove(self: Notary, changes: Any = None) -> Any:
    """Only changes between an input and none."""
    return [s for s in _shifted(self, changes) if 0 in s.change.listed]


_shifted, _tables, _offsets = Notary.shifted_changes, Notary.tables, grid.Grid.offsets


def without_the_minimum(self: Notary, thinned: Any = None) -> Any:
    """W without M = min(z+, z-)."""
    out = _tables(self, thinned)
    out[-1, 1] = NoiseTable(out[-1, 1].parts[:-1])
    return out


def wrong_minimum(self: Notary, thinned: Any = None) -> Any:
    """M with q in place of q^2."""
    out = _tables(self, thinned)
    q = (-self.mechanism.central.loss()).exp()
    out[-1, 1] = NoiseTable([*out[-1, 1].parts[:-1], NegativeBinomialPart(arb(1), q)])
    return out


def offsets_backwards(self: Any, n: int, side: Any) -> Any:
    return tuple(offset._replace(position=-offset.position) for offset in _offsets(self, n, side))


def ends_weighted_as_the_middle(self: Any, n: int, side: Any) -> Any:
    return tuple(o._replace(weight=o.weight * (1 - self.q)) for o in _offsets(self, n, side))


def always_monotone(self: NoiseTable, size: int) -> int:
    return 0


_plan_runs = factors.plan_runs


def long_runs(log_mass: Any, shift: int, h: float, clip: float, *, monotone_from: int) -> Any:
    """A poor plan, not a mistake: a dozen outcomes to a run wherever runs are allowed."""
    plan = _plan_runs(log_mass, shift, h, clip, monotone_from=len(log_mass))
    safe = np.searchsorted(plan.start, max(monotone_from, monotone_from - shift), side="right")
    start = np.concatenate([plan.start[:safe], plan.start[safe + 11 :: 12]])
    return replace(plan, start=start, end=np.append(start[1:] - 1, plan.last))


def rate_by_the_wrong_logarithm(self: ExactNoise) -> arb:
    if self.rate is None:
        assert self.r is not None
        return ball(self.r)
    return -ball(self.rate) / ball(self.p).log()


def nobody_drops_out(self: Any, fraction: Fraction) -> Any:
    return self


def no_deviation(self: ExactCentral) -> arb:
    return arb(0)


def divergence_without_e_to_eps(self: Any, c: Any, eps: arb) -> arb:
    return self.whole_loss(c, "above", 0).infinite


Mistake = list[tuple[object, str, Any]]
MISTAKES: dict[str, Mistake] = {
    "split rounded the wrong way": [(grid, "dominating", split_the_wrong_way)],
    "infinite losses dropped": [(grid, "dominating", without_infinity)],
    "tail truncated and not counted": [
        (grid, "dominating", without_the_tail),
        (NoiseTable, "log_masses", truncated_early),
    ],
    "truncated mass gained below": [
        (grid, "labeled", tail_gained_below),
        (NoiseTable, "log_masses", truncated_early),
    ],
    "infinite losses counted twice below": [(grid, "labeled", infinity_twice)],
    "labels taken for losses below": [(grid, "labeled", labels_as_losses)],
    "c_0 forgotten": [(CoordinateShift, "of", staticmethod(forget_the_unit_shift))],
    "shifts of the atoms forgotten": [(CoordinateShift, "of", staticmethod(only_the_sum_moves))],
    "columns with the wrong sign": [(CoordinateShift, "of", staticmethod(wrong_sign))],
    "only one direction of a pair": [(Notary, "shifted_changes", one_direction)],
    "only the other direction": [(Notary, "shifted_changes", other_direction)],
    "add/remove for substitution": [(Notary, "shifted_changes", add_or_remove)],
    "the minimum of the central noises forgotten": [(Notary, "tables", without_the_minimum)],
    "q for q squared": [(Notary, "tables", wrong_minimum)],
    "central offsets backwards": [(grid.Grid, "offsets", offsets_backwards)],
    "end weights of the central mixture": [(grid.Grid, "offsets", ends_weighted_as_the_middle)],
    "monotone losses assumed for any noise": [
        (NoiseTable, "monotone_from", always_monotone),
        (factors, "plan_runs", long_runs),
    ],
    "rate divided by log p": [(ExactNoise, "shape", rate_by_the_wrong_logarithm)],
    "atoms not thinned": [(ExactNoise, "thinned", nobody_drops_out)],
    "central noise not thinned": [(ExactCentral, "thinned", nobody_drops_out)],
    "deviation from the geometric law ignored": [(ExactCentral, "deviation", no_deviation)],
    "only infinite losses counted": [(grid.Grid, "upper", divergence_without_e_to_eps)],
}


@pytest.mark.parametrize("name", MISTAKES)
def test_every_mistake_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cases()  # the truth first, untouched
    for owner, attribute, wrong in MISTAKES[name]:
        monkeypatch.setattr(owner, attribute, wrong)
    check: Callable[[], Iterator[str]] = complaints
    try:
        noticed = next(check(), None)
    except AssertionError as error:  # lower > upper: an enclosure that cannot be
        noticed = str(error)
    assert noticed is not None
