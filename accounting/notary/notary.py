"""The notary: bounds on delta over all ordered pairs, proved in ball arithmetic (notary.md).

It shares no evaluation code with the fast evaluators: it reads exact parameters, rebuilds the columns,
tabulates the noises with its own recurrence and works with polynomials over balls.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from flint import arb

from accounting.arrays import FloatArray
from accounting.enclosure import Enclosure
from accounting.notary.balls import above, ball, below, precision
from accounting.notary.columns import UNIT, Columns, columns
from accounting.notary.grid import Change, Grid, change
from accounting.notary.mechanism import Atom, Mechanism
from accounting.notary.tables import NoiseTable

Report = Callable[[str], None]
_COARSE = 6.0
"""Grid cells per standard deviation of the loss to begin with."""
_FINEST = 1 << 21
_SMALLEST = 1e-300


@dataclass(frozen=True)
class Finding:
    """delta at one eps over all ordered pairs."""

    eps: float
    enclosure: Enclosure
    worst_pair: tuple[int, int]
    met: bool
    exact: bool
    pairs: int
    precision: int
    deviation: float


class Notary:
    """Proofs about one mechanism whose central noise is NB(1, q) up to a counted deviation."""

    def __init__(self, mechanism: Mechanism, *, releases: int = 1) -> None:
        self.mechanism, self.releases = mechanism, releases

    @cached_property
    def columns(self) -> Columns:
        return columns(self.mechanism.max_value, {UNIT: None, **self.mechanism.atoms})

    @cached_property
    def changes(self) -> list[Change]:
        cs = self.columns.of_input
        return [
            change(j, k, cs[j], cs[k]) for j in range(len(cs)) for k in range(len(cs)) if j != k
        ]

    def enclose(
        self,
        eps: float,
        *,
        gap: float = 1e-4,
        scale: float = 1e-6,
        report: Report | None = None,
    ) -> Finding:
        """Bounds whose relative distance is at most ``gap`` if ``met``; ``scale`` is a first guess."""
        say = report or (lambda _: None)
        while True:
            clip = max(scale, _SMALLEST) * gap / (20 * (2 + max(len(c.shifts) for c in self.changes)))
            clip /= self.releases
            bits = max(128, 96 + math.ceil(-1.25 * math.log2(clip)))
            with precision(bits):
                found = self._refined(ball(eps), gap, clip, say)
                upper, lower, worst, met = found
                if upper < scale / 8 and scale > _SMALLEST:
                    scale = max(upper, scale**2 if scale < 1e-3 else scale / 1e3, _SMALLEST)
                    continue
                deviation = (1 + ball(eps).exp()) * self.mechanism.central.deviation() * self.releases
                enclosure = Enclosure(
                    max(0.0, below(ball(lower) - deviation)) if self.columns.exact else 0.0,
                    min(1.0, above(ball(upper) + deviation)),
                )
                return Finding(
                    eps, enclosure, worst, met, self.columns.exact, len(self.changes), bits,
                    above(deviation),
                )

    def _tables(self) -> dict[Atom, NoiseTable]:
        q = (-2 * self.mechanism.central.loss()).exp()
        out = {}
        for atom in {UNIT: None, **self.mechanism.atoms}:
            parts = [(x.shape(), ball(x.p)) for x in self.mechanism.atoms.get(atom, ())]
            if atom == UNIT:
                parts.append((arb(1), q))
            out[atom] = NoiseTable(parts)
        return out

    def _refined(
        self, eps: arb, gap: float, clip: float, say: Report
    ) -> tuple[float, float, tuple[int, int], bool]:
        tables = self._tables()
        logs = {atom: table.log_masses(clip / 4) for atom, table in tables.items()}
        loss = self.mechanism.central.loss()
        spread = self._spread(logs)
        divisions = max(1, round(float(loss.mid()) * _COARSE / spread))
        upper = {c.pair: 1.0 for c in self.changes}
        lower, worst = 0.0, self.changes[0].pair
        pending = self.changes
        while True:
            grid = Grid(tables, logs, loss, divisions, clip, self.releases)
            t0 = time.time()
            grid.prepare(pending)
            t1 = time.time()
            for c in pending:
                upper[c.pair] = min(upper[c.pair], above(grid.upper(c, eps)))
            t2 = time.time()
            pending = sorted(pending, key=lambda c: -upper[c.pair])
            for c in pending[:2]:
                found = below(grid.lower(c, eps))
                if found > lower:
                    lower, worst = found, c.pair
            highest = max(upper.values())
            say(f"m={divisions} pending {len(pending)} {lower:.6g} {highest:.6g} prep {t1-t0:.2f} up {t2-t1:.2f}")
            if highest - lower <= gap * highest:
                return highest, lower, worst, True
            if divisions * float(eps.mid()) / float(loss.mid()) > _FINEST:
                return highest, lower, worst, False
            pending = [c for c in pending if upper[c.pair] * (1 - gap) > lower]
            error = (highest - lower) / highest
            divisions *= round(min(max(1.2 * math.sqrt(error / gap), 2), 4))

    def _spread(self, logs: dict[Atom, FloatArray]) -> float:
        """The standard deviation of the noises' part of the loss, largest over the changes."""
        seen: dict[tuple[Atom, int], float] = {}

        def variance(atom: Atom, shift: int) -> float:
            if (atom, shift) not in seen:
                log = logs[atom]
                first, last = max(0, -shift), len(log) - max(0, shift)
                loss = log[first:last] - log[first + shift : last + shift]
                mass = np.exp(log[first:last])
                mean = float(mass @ loss)
                seen[atom, shift] = float(mass @ (loss - mean) ** 2)
            return seen[atom, shift]

        widest = max(
            variance(UNIT, c.first_shift) + sum(variance(a, s) for a, s in c.shifts)
            for c in self.changes
        )
        return math.sqrt(max(widest, 1e-12))
