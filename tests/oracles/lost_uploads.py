"""Small protocols in which uploads with noise are lost, played out draw by draw.

max_value 1 with noise on +1, on -1 and on {-1, +1}.  All that is seen is the number of messages +1
and of messages -1.  Everything is a sum over all draws below a length; what is missing is at most
``missing`` in every law.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, product

import numpy as np
from scipy import stats

from accounting import ExactCentral, ExactNoise, Mechanism

Lost = Callable[[tuple[int, ...]], Iterator[tuple[float, tuple[int, ...]]]]
"""For the users with noise: who of them is lost, with the probability of that."""


@dataclass(frozen=True)
class Small:
    """Parameters of all users together.

    Attributes:
        r, p: Of the noise on {-1, +1}.
        share, q: Of the noise on +1 and on -1.
    """

    users: int
    r: Fraction
    p: Fraction
    share: Fraction
    q: Fraction
    size: int = 48

    def mechanism(self) -> Mechanism:
        central = ExactCentral(p=self.q, fraction=self.share)
        return Mechanism(1, {(-1, 1): (ExactNoise(p=self.p, r=self.r),)}, central)

    def of_one(self) -> np.ndarray:
        """The law of (messages +1, messages -1) in the noise of one user."""
        n, both = self.users, np.zeros((self.size, self.size))
        center = stats.nbinom.pmf(np.arange(self.size), float(self.share) / n, 1 - float(self.q))
        pairs = stats.nbinom.pmf(np.arange(self.size), float(self.r) / n, 1 - float(self.p))
        for k in range(self.size):
            rest = self.size - k
            both[k:, k:] += pairs[k] * np.outer(center[:rest], center[:rest])
        return both

    def seen(self, inputs: Sequence[int], lost: Lost) -> np.ndarray:
        """The law of what arrives, over all sets of users with noise."""
        noise, silent = noise_of(self), float(self.of_one()[0, 0])
        out = np.zeros((self.size + self.users, self.size))
        for count in range(self.users + 1):
            chance = (1 - silent) ** count * silent ** (self.users - count)
            for loud in combinations(range(self.users), count):
                for share, gone in lost(loud):
                    value = sum(x for i, x in enumerate(inputs) if i not in gone)
                    out[value : value + self.size] += chance * share * noise[count - len(gone)]
        return out

    def missing(self) -> float:
        """How much of any law is beyond the length."""
        return 1 - float(noise_of(self)[self.users].sum()) + 1e-12

    def left(self, fraction: Fraction) -> np.ndarray:
        """The law of what arrives where a fraction of the users adds noise, all inputs being 0."""
        less = Small(1, self.r * fraction, self.p, self.share * fraction, self.q, self.size)
        return less.of_one()


@cache
def noise_of(small: Small) -> list[np.ndarray]:
    """[k]: the law of the noise of k users who have some."""
    one = small.of_one()
    some = one.copy()
    some[0, 0] = 0.0
    some /= 1 - one[0, 0]
    found = [np.zeros_like(one)]
    found[0][0, 0] = 1.0
    for _ in range(small.users):
        found.append(convolved(found[-1], some))
    return found


def convolved(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The law of the sum of two pairs of numbers, up to the length."""
    size = len(one)
    spectrum = np.fft.rfft2(one, (2 * size, 2 * size)) * np.fft.rfft2(other, (2 * size, 2 * size))
    return np.clip(np.fft.irfft2(spectrum, (2 * size, 2 * size))[:size, :size], 0, None)


def at_random(count: int) -> Lost:
    """``count`` of the users with noise, all choices equally likely."""

    def lost(loud: tuple[int, ...]) -> Iterator[tuple[float, tuple[int, ...]]]:
        choices = list(combinations(loud, min(count, len(loud))))
        for gone in choices:
            yield 1 / len(choices), gone

    return lost


def in_order(count: int, order: Sequence[int]) -> Lost:
    """The first ``count`` users with noise in an order."""

    def lost(loud: tuple[int, ...]) -> Iterator[tuple[float, tuple[int, ...]]]:
        yield 1.0, tuple(i for i in order if i in loud)[:count]

    return lost


def hockey_stick(first: np.ndarray, second: np.ndarray, eps: float) -> float:
    return float(np.clip(first - np.exp(eps) * second, 0, None).sum())


def worst_delta(small: Small, eps: float, lost: Lost, releases: int = 1) -> float:
    """delta(eps) of the change of user 0, the worst over both directions and the other inputs:
    all 0, all 1, and mixed.

    It is too small by at most ``missing`` for every release.
    """
    found = 0.0
    n = small.users - 1
    for others in {(0,) * n, (1,) * n, (*[1] * (n // 2), *[0] * (n - n // 2))}:
        none, one = (small.seen((x, *others), lost).ravel() for x in (0, 1))
        for _ in range(releases - 1):
            none, one = (np.outer(law, law).ravel() for law in (none, one))
        found = max(found, hockey_stick(none, one, eps), hockey_stick(one, none, eps))
    return found


def delta_of_fraction(small: Small, fraction: Fraction, eps: float, releases: int = 1) -> float:
    """The same where a fraction of the users adds noise and nothing is lost."""
    if not fraction:
        return 1.0
    none = np.pad(small.left(fraction), ((0, 1), (0, 0)))
    one = np.roll(none, 1, axis=0)
    laws = [law.ravel() for law in (none, one)]
    for _ in range(releases - 1):
        laws = [np.outer(law, law).ravel() for law in laws]
    return max(hockey_stick(*laws, eps), hockey_stick(*laws[::-1], eps))


def worst_way_delta(small: Small, eps: float) -> float:
    """delta(eps) of user 0 if somebody sees all draws and loses one upload so that the number of
    messages +1 that arrive tells the input: the others have input 0.
    """
    one = small.of_one().sum(axis=1)
    laws = np.zeros((2, small.users * small.size + 2))
    for counts in product(range(small.size), repeat=small.users):
        chance = float(np.prod(one[list(counts)]))
        odd = [i for i, count in enumerate(counts) if count % 2]
        gone = odd[-1] if len(odd) % 2 else None  # user 0 only if nobody else is odd
        arrived = sum(count for i, count in enumerate(counts) if i != gone)
        for x in (0, 1):
            laws[x, arrived + x * (gone != 0)] += chance
    return hockey_stick(laws[1], laws[0], eps)
