"""How many messages one user may have to send.

A user's upload is the value, at most one message, and the noise: Poisson(L / n) events, where L is
the expected number of events of all n users in one release, all coordinates included.  An event
belongs to term s with probability L_s / L, and has a_s messages for every copy, of which there are
K_s: logarithmic(p_s) many, or for bursts 1 + NB(m, p_s).  The terms are the noise on +1, the noise
on -1, and every noise of every atom.

Lemma 1.  Let l = L / n, let k be a whole number, and let t > 0 with p_s e^(t a_s) < 1 for every s.
With M = sum of L_s / L times E[e^(t a_s K_s)], a user draws more than k noise messages with
probability at most B / n, where

    B = e^-l (sum of L_s P(a_s K_s > k))  +  n e^(-l - t (k + 1)) (e^(l M) - 1 - l M).

Proof.  A user has exactly one event with probability l e^-l, and it has more than k messages with
probability sum of L_s / L times P(a_s K_s > k); this is the first term, divided by n.  A user has j
events with probability l^j e^-l / j!, and they have more than k messages with probability at most
e^(-t (k + 1)) M^j (Markov's inequality for e^(t X)); the sum over all j >= 2 is the second one.

The first term is the law of a single event, and the second, for several events of one user, is far
smaller as long as few users have any.  Where most users have several, the sum over all j >= 1,
n e^(-l - t (k + 1)) (e^(l M) - 1), is smaller than both.  Since users draw independently, some user
draws more than k noise messages with probability at most 1 - (1 - B / n)^n.

Lemma 2.  For 0 < p < 1 and N >= 1, the sum of p^j / j over all j >= N is at most
E_1((N - 1/2) log(1 / p)), and at most p^N / (N (1 - p)), with the exponential integral E_1.

Proof.  f(x) = p^x / x is convex, so f(j) is at most its mean from j - 1/2 to j + 1/2, and the sum
at most the integral from N - 1/2 on.  And p^j / j <= p^j / N.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accounting.base.balls import above, ball, below, precision
from accounting.base.deadline import check_time
from accounting.base.errors import TooLarge
from accounting.base.validation import probability as checked_probability
from accounting.base.validation import whole
from accounting.model.mechanism import ExactBurst, Mechanism

if TYPE_CHECKING:
    from flint import arb

_BITS = 128
"""Working precision."""
_MOST_TERMS = 20_000
"""Most terms whose events are added up, which bounds the time."""
_MOST_MESSAGES = 1 << 53
"""Largest number of messages that is tried."""
_SLACKS = tuple(0.95 * 0.5**i for i in range(10))
"""Values of 1 - t / (largest t) that Lemma 1 is used with; the bound holds for any."""
_EXACT_MASSES = 12
"""Masses of a logarithmic number that are added up before Lemma 2 bounds the others, where p is
small and these are nearly all."""
_SLOW = 0.05
"""Largest log(1 / p) for which Lemma 2 is close, by less than one in a thousand, without that."""
_SMALLEST = 1e-300
"""Smaller probabilities are taken for this one, which has a logarithm."""


@dataclass(frozen=True)
class _Term:
    """Events with ``size`` messages for each copy; ``m`` is 0 for a logarithmic number of copies.

    ``rest`` is 1 - p, which balls around p next to 1 would not tell from 0.
    """

    size: int
    rate: arb
    p: arb
    rest: arb
    m: int

    def exceeds(self, messages: int) -> arb:
        """An upper bound of the probability that an event has more messages."""
        copies = messages // self.size
        if copies == 0:
            return ball(1.0)
        return self._burst_exceeds(copies) if self.m else self._logarithmic_exceeds(copies)

    def _logarithmic_exceeds(self, copies: int) -> arb:
        """The first masses, and what is left by Lemma 2."""
        decay = -(-self.rest).log1p()
        begin = copies + 1
        end = begin + (_EXACT_MASSES if decay > _SLOW else 0)
        power = self.p**begin
        total = ball(0.0)
        for j in range(begin, end):
            total += power / j
            power *= self.p
        integral = (decay * (end - 0.5)).expint(1)
        left = power / (end * self.rest)
        found = (total + left.min(integral)) / -self.rest.log()
        return found.min(ball(1.0))

    def _burst_exceeds(self, copies: int) -> arb:
        """P(NB(m, p) >= c): fewer than m of c + m - 1 Bernoulli(1 - p) trials succeed."""
        trials = copies + self.m - 1
        term = self.p**trials
        total = term
        for i in range(1, self.m):
            term = term * self.rest * (trials - i + 1) / (self.p * i)
            total = total + term
        return total.min(ball(1.0))

    def moment(self, t: arb) -> arb | None:
        """E[e^(t size K)]; None if it is infinite."""
        grown = (t * self.size).exp()
        left = 1 - self.p * grown
        if not left > 0:
            return None
        if self.m:
            return grown * (self.rest / left) ** self.m
        return left.log() / self.rest.log()


def _terms(mechanism: Mechanism) -> Iterator[_Term]:
    """The noise on +1 and on -1, then all parts of the noise of every atom, in all coordinates."""
    central, d = mechanism.central, mechanism.dimension
    loss = central.loss()
    rest = ball(1 - central.p) if central.p is not None else -(-loss).expm1()
    yield _Term(1, 2 * d * central.event_rate(), (-loss).exp(), rest, 0)
    for atom, parts in mechanism.atoms.items():
        for part in parts:
            m = part.m if isinstance(part, ExactBurst) else 0
            rest = ball(1 - part.p)
            yield _Term(len(atom), d * part.event_rate(), ball(part.p), rest, m)


class _Uploads:
    """The bound of Lemma 1, for one mechanism and one number of users."""

    def __init__(self, mechanism: Mechanism, users: int) -> None:
        self.terms, self.users = list(_terms(mechanism)), users
        if len(self.terms) > _MOST_TERMS:
            raise TooLarge(
                f"the sizes of uploads are computed for at most {_MOST_TERMS:,} noises, and these "
                f"are {len(self.terms):,}; list every atom once"
            )
        self.events = sum((term.rate for term in self.terms), ball(0.0)) / users
        steepest = min(below(-term.p.log() / term.size) for term in self.terms)
        self.moments = list(self._moments(steepest))

    def _moments(self, steepest: float) -> Iterator[tuple[arb, arb]]:
        """Pairs of t and l M."""
        for slack in _SLACKS:
            t, total = ball(steepest * (1 - slack)), ball(0.0)
            for term in self.terms:
                check_time()
                moment = term.moment(t)
                if moment is None:
                    break
                total += term.rate * moment / self.users
            else:
                yield t, total

    def some_exceed(self, messages: int) -> float:
        """An upper bound of the probability that some user draws more noise messages than this."""
        single = ball(0.0)
        for term in self.terms:
            check_time()
            single += term.rate * term.exceeds(messages)
        single *= (-self.events).exp()
        bound = ball(float(self.users))
        for t, mean in self.moments:
            scale = self.users * (-self.events - t * (messages + 1)).exp()
            every = scale * mean.expm1()
            bound = bound.min(every).min(single + every - scale * mean)
        of_one = (bound / self.users).min(ball(1.0))
        return above(1 - (1 - of_one) ** self.users)

    def enough(self, allowed: float) -> int:
        """The smallest number for which the bound is at most ``allowed``."""
        low, high, logs = -1, 1, {-1: 0.0}  # more than ``low`` are needed
        while (found := self.some_exceed(high)) > allowed:
            low, high, logs = high, 2 * high, {high: math.log(found)}
            if high > _MOST_MESSAGES:
                raise TooLarge(
                    f"an upload may have more than 2^53 messages with probability {allowed:g}: "
                    "make a file with a smaller p, or with shorter atoms"
                )
        logs[high] = _log(found)
        halve = False
        while high - low > 1:
            # the logarithm is nearly linear; halves now and then, in case it is not
            share = (logs[low] - math.log(allowed)) / (logs[low] - logs[high])
            trial = (low + high) // 2 if halve else math.ceil(low + share * (high - low))
            trial = min(max(trial, low + 1), high - 1)
            logs[trial] = _log(self.some_exceed(trial))
            halve = not halve
            if logs[trial] > math.log(allowed):
                low = trial
            else:
                high = trial
        return high


def largest_upload(mechanism: Mechanism, users: int, probability: float) -> int:
    """Return a number of messages that no upload of one release exceeds, but with this probability.

    It is the smallest for which the lemmas above show that; the user's own value is one of them.

    Args:
        mechanism: What is deployed, with the noise of all users.
        users: Number of users.
        probability: Most probability with which some user may have to send more.

    Returns:
        The number of messages.

    Raises:
        InvalidParameter: If a number is outside its domain.
        TooLarge: If no number below 2^53 is enough, or there are too many noises.

    >>> from fractions import Fraction
    >>> from accounting import ExactCentral, ExactNoise, Mechanism
    >>> noise = ExactNoise(p=Fraction(96, 100), r=Fraction(12))
    >>> mechanism = Mechanism(1, {(-1, 1): (noise,)}, ExactCentral(step=Fraction(9, 10)))
    >>> [largest_upload(mechanism, 1_000_000, 10.0**-k) for k in (2, 4, 12)]
    [259, 459, 1315]
    """
    users = whole("users", users, least=1)
    allowed = checked_probability("probability", probability)
    with precision(_BITS):
        return _Uploads(mechanism, users).enough(allowed) + 1


def _log(value: float) -> float:
    return math.log(max(value, _SMALLEST))
