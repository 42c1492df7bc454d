"""How many messages one noise event may have, and why that limit costs no privacy.

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
e^(eps + 1)).  Where the refusal has probability q in each release, delta grows by at most
releases (1 + e^eps) q, hence by less than 2^-128 times delta.  The bound is computed in doubles,
whose rounding changes it by less than a factor of 2.
"""

from __future__ import annotations

import math
from fractions import Fraction

from accounting.base.errors import TooLarge
from paramsearch.parameters.noise_terms import NoiseTerm, noise_terms
from paramsearch.parameters.parameter_file import ParameterFile

MOST_MESSAGES = 1 << 24
"""Largest number of messages of one user, or of one noise event, that is held in memory."""
_NEGLIGIBLE = -128 * math.log(2)
"""The logarithm of the part of delta that refusing an event may add to it."""


def check_event_sizes(file: ParameterFile) -> None:
    """Refuse a file with noise whose events may be too large for a client.

    Raises:
        TooLarge: If the probability of such an event is not negligible beside delta.
    """
    problem, terms = file.problem, noise_terms(file)
    allowed = _NEGLIGIBLE + math.log(problem.delta) - math.log(problem.releases) - problem.eps - 1
    for term in terms:
        events = log_of(term.rate * file.dimension * len(terms))
        if events + log_tail(term, MOST_MESSAGES // len(term.atom)) > allowed:
            raise TooLarge(
                f"1 - p = {float(1 - term.p):.3g} of the noise on {list(term.atom)!s:.60} is too "
                "small: one event may have more than 2^24 messages, which clients "
                "refuse and no certificate counts; make a file with a smaller p, or shorter atoms"
            )


def log_tail(term: NoiseTerm, copies: int) -> float:
    """The logarithm of a bound on the probability that one event has more copies than this."""
    p, m, c = term.p, term.m or 1, copies
    if c * (1 - p) <= m * p:
        return 0.0
    return c * (log_of(p) + math.log1p(m / c)) + m * (log_of(1 - p) + math.log1p(c / m))


def log_of(value: Fraction) -> float:
    """The logarithm of a positive rational, which may lie beyond doubles, or next to 1."""
    if Fraction(1, 2) < value < 2:
        return math.log1p(float(value - 1))
    return math.log(value.numerator) - math.log(value.denominator)
