"""The noise of a file as events, how many messages one of them may have, and why that limit costs
no privacy.

A client refuses an event of more than 2^24 messages: it would not fit into memory.  No proof counts
that refusal, so a file may be used only if the refusal practically never happens.  An event on an
atom of a elements is refused if it has more than c = floor(2^24 / a) copies.

Lemma.  If c (1 - p) > m p, then 1 + NB(m, p) exceeds c with probability at most

    (p (c + m) / c)^c ((1 - p) (c + m) / m)^m.

A logarithmic(p) number exceeds c with at most the probability that the lemma gives for m = 1.

Proof.  For 1 <= x < 1 / p, P(NB >= c) <= x^(-c) E[x^NB] = x^(-c) ((1 - p) / (1 - p x))^m, and
x = c / (p (c + m)), which is at least 1 by assumption, gives the bound.  The logarithmic law is
that of 1 + NB(1, p) with weights 1 / k, which decrease in k, so its tails are smaller.

All users together have rate times dimension events of a term on average, so by Markov's inequality
the probability that any user meets an oversized one is at most the sum over the terms of
dimension times rate times tail.  ``check_event_sizes`` bounds it by 2^-128 delta / (releases
e^(eps + 1)), and refuses every term to which the lemma does not apply: its events are then so large
on average, whatever their rate.  Where the refusal has probability q in each release, delta grows
by at most releases (1 + e^eps) q, hence by less than 2^-128 times delta.  The bound is computed in
doubles, whose rounding changes it by less than a factor of 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from accounting.base.errors import TooLarge
from accounting.model.family import Atom
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.parameters.sections import BurstNoise

MOST_MESSAGES = 1 << 24
"""Largest number of messages of one user, or of one noise event, that is held in memory."""
_NEGLIGIBLE = -128 * math.log(2)
"""The logarithm of the part of delta that refusing an event may add to it."""


@dataclass(frozen=True)
class NoiseTerm:
    """The noise of all n users on one atom, in each coordinate, as compound Poisson events."""

    atom: Atom
    rate: Fraction
    """Expected number of events."""
    p: Fraction
    m: int
    """0 if an event has a logarithmic(p) number of copies; otherwise it has 1 + NB(m, p)."""
    amount: float
    """The parameter r of the negative binomial that the copies sum to; for bursts, the rate."""

    @property
    def one_minus_p(self) -> float:
        return float(1 - self.p)

    def mostly_above(self, copies: int) -> bool:
        """Whether the mean m p / (1 - p) of NB(m, p) is at least this many copies, so that the
        lemma does not bound the probability of more; m = 1 for a logarithmic number."""
        return copies * (1 - self.p) <= (self.m or 1) * self.p

    @property
    def variance(self) -> float:
        """The variance of the number of copies."""
        odd = self.one_minus_p
        of_geometric = (1 - odd) / odd**2
        if not self.m:
            return self.amount * of_geometric
        return self.amount * ((1 + self.m * (1 - odd) / odd) ** 2 + self.m * of_geometric)


def noise_terms(file: ParameterFile) -> list[NoiseTerm]:
    """The central noise, which is on +1 and on -1, then the atoms in the order of the file."""
    central = file.central
    found = [
        NoiseTerm((sign,), Fraction(central.rate), Fraction(central.p), 0, central.r)
        for sign in (1, -1)
    ]
    for entry in file.atoms:
        rate, p = Fraction(entry.rate), Fraction(entry.p)
        m, amount = (entry.m, float(rate)) if isinstance(entry, BurstNoise) else (0, entry.r)
        found.append(NoiseTerm(entry.atom, rate, p, m, amount))
    return found


def check_event_sizes(file: ParameterFile) -> None:
    """Refuse a file with noise whose events may be too large for a client.

    Raises:
        TooLarge: If such an event is no exception, c (1 - p) <= m p, or its probability is not
            negligible beside delta.
    """
    problem, terms = file.problem, noise_terms(file)
    allowed = _NEGLIGIBLE + math.log(problem.delta) - math.log(problem.releases) - problem.eps - 1
    for term in terms:
        copies = MOST_MESSAGES // len(term.atom)
        events = log_of(term.rate * file.dimension * len(terms))
        if term.mostly_above(copies) or events + log_tail(term, copies) > allowed:
            raise TooLarge(
                f"1 - p = {float(1 - term.p):.3g} of the noise on {list(term.atom)!s:.60} is too "
                "small: one event may have more than 2^24 messages, which clients "
                "refuse and no certificate counts; make a file with a smaller p, or shorter atoms"
            )


def log_tail(term: NoiseTerm, copies: int) -> float:
    """The logarithm of a bound on the probability that one event has more copies than this."""
    if term.mostly_above(copies):
        return 0.0
    p, m, c = term.p, term.m or 1, copies
    return c * (log_of(p) + math.log1p(m / c)) + m * (log_of(1 - p) + math.log1p(c / m))


def log_of(value: Fraction) -> float:
    """The logarithm of a positive rational, which may lie beyond doubles, or next to 1."""
    if Fraction(1, 2) < value < 2:
        return math.log1p(float(value - 1))
    return math.log(value.numerator) - math.log(value.denominator)
