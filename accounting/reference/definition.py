"""The definition: all message counts, their probabilities before and after a change, and the sum.

Of one coordinate, the shuffler reveals how often every message occurs,

    omega = [x] + z+ [+1] + z- [-1] + sum over the atoms s of z_s s,

where [x] is the message of the user whose input changes (none if x = 0) and all z are independent.
The messages of the other users' inputs are fixed and translate omega, the same before and after.
With P the law of omega before the change and Q the law after it,

    delta(eps) = sum over all omega of max(P(omega) - e^eps Q(omega), 0).

This sum is taken here, outcome by outcome.  README.md says what truncation and rounding add.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from accounting.base.arrays import IntArray
from accounting.base.deadline import check_time
from accounting.base.enclosure import counted
from accounting.base.errors import TooLarge
from accounting.model.change import Change
from accounting.model.mechanism import Atom

Number = Any
"""A double, or a floating-point number of mpmath."""
Numbers = np.ndarray[Any, np.dtype[Any]]
"""Doubles, or mpmath's numbers as objects: the same lines serve both."""
Coordinate = tuple[int, int]
"""The value of one coordinate before and after a change."""
_CHUNK = 1 << 20
"""Outcomes that are made at once, where not all are kept."""
_MOST_MERGED = 8
"""Most outcomes that are made, for every one that may be kept."""


@dataclass(frozen=True)
class Pair:
    """The laws P and Q of one coordinate's counts.

    Outcomes are (n, v), with P = f(n) p(v) and Q = g(n) q(v): see ``View``.
    """

    f: Numbers
    g: Numbers
    p: Numbers
    q: Numbers

    def divergence(self, x: Number) -> Number:
        """Sum over all outcomes of max(P - x Q, 0)."""
        sums = []
        for f, g in zip(self.f, self.g, strict=True):
            check_time()
            sums.append(np.maximum(f * self.p - x * g * self.q, 0).sum())
        return sum(sums) if self.p.dtype == np.object_ else math.fsum(sums)


class View:
    """The law of one coordinate's noise: ``mass[i]`` is the probability of the counts ``keys[i]``.

    A key is an integer whose digits are the counts of the messages.  Where some message is sent by
    one noise only, once per copy, its count tells the number n of copies; so that noise need not be
    multiplied out, and an outcome is (n, v) with v the key of all the other noises.
    """

    def __init__(
        self, max_value: int, noises: Sequence[tuple[Atom, Numbers]], *, most: int
    ) -> None:
        self._worth = place_values(max_value, [(atom, len(masses)) for atom, masses in noises])
        messages = sorted(self._worth.keys() - {0})
        self.only_sent, self.sender, self.copies = _sent_by_one(messages, noises)
        self.summands = 0
        self.keys, self.mass = np.zeros(1, np.int64), np.ones_like(self.copies[:1])
        for atom, masses in noises:
            if atom != self.sender:
                self._add(self._key(atom), masses, most)

    @property
    def outcomes(self) -> int:
        """Number of outcomes (n, v)."""
        return len(self.keys) * len(self.copies)

    def _key(self, messages: Atom) -> int:
        return sum(self._worth[message] for message in messages)

    def _add(self, key: int, masses: Numbers, most: int) -> None:
        """One more independent noise; equal counts become one outcome."""
        total, held = len(self.keys) * len(masses), 0
        check_size(total, _MOST_MERGED * most)
        found = []
        for copies in np.array_split(np.arange(len(masses)), min(len(masses), 1 + total // _CHUNK)):
            check_time()
            keys = np.add.outer(key * copies, self.keys).ravel()
            found.append(_merged(keys, np.multiply.outer(masses[copies], self.mass).ravel()))
            check_size(held := held + len(found[-1][0]), most)
        keys, mass = (np.concatenate(parts) for parts in list(zip(*found, strict=True))[:2])
        self.keys, self.mass, summands = _merged(keys, mass)
        self.summands += summands + max(few for _, _, few in found)

    def pair(self, before: int, after: int) -> Pair:
        """The laws of the counts if the user's input is ``before``, and if it is ``after``.

        The counts v + n s + [before] are v' + n' s + [after] for n' = n + more, and this v'.
        """
        more = (before == self.only_sent) - (after == self.only_sent)
        other = (
            self.keys + self._key((before,)) - self._key((after,)) - more * self._key(self.sender)
        )
        place = np.minimum(np.searchsorted(self.keys, other), len(self.keys) - 1)
        q = np.where(self.keys[place] == other, self.mass[place], 0 * self.mass)
        none = 0 * self.copies[:1]
        g = np.concatenate([none, self.copies, none])[1 + more : 1 + more + len(self.copies)]
        return Pair(self.copies, g, self.mass, q)


def place_values(max_value: int, noises: Sequence[tuple[Atom, int]]) -> dict[int, int]:
    """Return the value of each message in a key, 0 for an input of 0, which sends none.

    Args:
        max_value: Inputs are 0..max_value.
        noises: Every atom, with the number of masses of its noise.

    Raises:
        TooLarge: If keys would not fit into 62 bits.
    """
    inputs = range(1, max_value + 1)
    worth, unit = {0: 0}, 1
    for message in sorted({*inputs, *(message for atom, _ in noises for message in atom)}):
        worth[message] = unit
        repeated = [atom.count(message) for atom, _ in noises]
        highest = sum(n * length for n, (_, length) in zip(repeated, noises, strict=True))
        # the digits of v + (n - n') s + [x] - [x'] lie between -reach and highest + reach
        reach = 1 + max(repeated)
        unit *= highest + 2 * reach + 1
    if unit >= 1 << 62:
        raise TooLarge(
            f"the counts of {counted(len(worth) - 1, 'message')} take {_shown(unit)} values, too "
            "many for --tier reference: ask for --tier ball"
        )
    return worth


def _merged(keys: IntArray, mass: Numbers) -> tuple[IntArray, Numbers, int]:
    """Every key once, with the sum of its masses, and the most summands of one."""
    order = np.argsort(keys, kind="stable")
    keys, mass = keys[order], mass[order]
    first = np.flatnonzero(np.diff(keys, prepend=keys[0] - 1))
    summands = int(np.diff(first, append=len(keys)).max())
    return keys[first], np.add.reduceat(mass, first), summands


def _sent_by_one(
    messages: Sequence[int], noises: Sequence[tuple[Atom, Numbers]]
) -> tuple[int | None, Atom, Numbers]:
    """A message that only one noise sends, once per copy, and that noise; the longest if several
    are possible, and no message if there is none."""
    found: list[tuple[int | None, Atom, Numbers]] = [(None, (), np.ones_like(noises[0][1][:1]))]
    for message in messages:
        senders = [noise for noise in noises if message in noise[0]]
        if len(senders) == 1 and senders[0][0].count(message) == 1:
            found.append((message, *senders[0]))
    return max(found, key=lambda one: len(one[2]))


class Outcomes:
    """All outcomes of a pair with P > 0, sorted by Q / P."""

    def __init__(self, pair: Pair) -> None:
        p = np.multiply.outer(pair.f, pair.p).ravel()
        q = np.multiply.outer(pair.g, pair.q).ravel()
        p, q = p[p > 0], q[p > 0]
        with np.errstate(over="ignore"):
            ratio = q / p
        order = np.argsort(ratio, kind="stable")
        self.ratio, self.p = ratio[order], p[order]
        self._sum_p, self._sum_q = _sums(self.p), _sums(q[order])

    def divergence(self, x: Numbers) -> Numbers:
        """Sum of max(P - x Q, 0), for every x: the positive terms come first."""
        count = np.searchsorted(self.ratio, 1 / x)
        found: Numbers = self._sum_p[count] - x * self._sum_q[count]
        return found


def _sums(values: Numbers) -> Numbers:
    """The sums of the first 0, 1, 2, ... values, in blocks: few roundings for each."""
    width = math.isqrt(len(values)) + 1
    blocks = np.concatenate([values, 0 * values[:1].repeat(width * width - len(values))])
    inside = blocks.reshape(width, width).cumsum(axis=1)
    inside[1:] += inside[:-1, -1].cumsum()[:, None]
    return np.concatenate([0 * values[:1], inside.ravel()[: len(values)]])


class Releases:
    """Several releases, or several coordinates: laws of independent counts, one after the other.

    Args:
        view: One coordinate of one release.
        changes: What the user may change in each release.
        huge: Ratios of probabilities beyond this are cut off (README.md, Lemma 4).
    """

    def __init__(self, view: View, changes: Sequence[Change], huge: Number) -> None:
        self.changes, self._limits = changes, (1 / huge, huge)
        self._count = view.outcomes
        self._outcomes = cache(lambda before, after: Outcomes(view.pair(before, after)))

    def divergence(self, x: Numbers, now: Sequence[Coordinate], later: int) -> Numbers:
        """delta at every x = e^eps of all that is still to come.

        It is the sum of P H(x Q / P) over the counts of the first coordinate, where H is for what
        follows: the other coordinates that change ``now``, then ``later`` more releases, with the
        worst change in each.
        """
        if not now:
            found = [self.divergence(x, change.coordinates, later - 1) for change in self.changes]
            return np.max(found, axis=0)  # type: ignore[no-any-return]
        first: Outcomes = self._outcomes(*now[0])
        if len(now) == 1 and not later:
            return first.divergence(x)
        rows = []
        for some in np.array_split(x, 1 + len(x) * len(first.p) // _CHUNK):
            check_time()
            with np.errstate(over="ignore"):
                onward = np.clip(np.multiply.outer(some, first.ratio), *self._limits)
            after = self.divergence(onward.ravel(), now[1:], later)
            rows.append(after.reshape(onward.shape) @ first.p)
        return np.concatenate(rows)

    def terms(self, now: Sequence[Coordinate], later: int) -> int:
        """Return the number of sums that ``divergence`` takes at the end of its recursion, for one
        x."""
        of_release = sum(self._count ** len(change.coordinates) for change in self.changes)
        return int(self._count ** (len(now) - 1) * of_release**later)


def check_size(outcomes: int, most: int) -> None:
    """Refuse what would take too much memory or time."""
    if outcomes > most:
        raise TooLarge(
            f"the definition has {_shown(outcomes)} outcomes here, and --tier reference enumerates "
            f"at most {most:,}: ask for --tier ball"
        )


def _shown(count: int) -> str:
    """The number itself, or its order of magnitude."""
    digits = int(count.bit_length() * math.log10(2))
    return f"{count:,}" if digits < 15 else f"about 10^{digits}"
