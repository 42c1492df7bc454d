"""The divergence of the raw message counts of the protocol, by enumeration, for small cases.

No change of basis and no theorem: the law of the counts (u_{-1}, u_1, u_2) is tabulated for both
inputs and the positive parts are added up.  Only max_value 1 and 2 (the atom {2, -1, -1}).
"""

from __future__ import annotations

from collections import defaultdict

import mpmath as mp
from truth import Bracket, masses


def divergence(
    unit: list[tuple[float, float]],
    double: tuple[float, float] | None,
    *,
    eps_central: float,
    x: int,
    x_prime: int,
    eps: float,
    tail: float = 1e-9,
) -> Bracket:
    """d_eps(view under x || view under x_prime).

    ``unit`` lists the noises of {-1, +1}; ``double`` is that of {2, -1, -1}, if max_value is 2.
    """
    max_value = 1 if double is None else 2
    with mp.workdps(40):
        q = float(mp.exp(-mp.mpf(eps_central) / max_value))
        cut = mp.mpf(tail)
        lost = mp.mpf(0)
        law: dict[tuple[int, int, int], mp.mpf] = {(0, 0, 0): mp.mpf(1)}
        pieces = [((0, 1, 0), (1.0, q)), ((1, 0, 0), (1.0, q))]
        pieces += [((1, 1, 0), noise) for noise in unit]
        if double is not None:
            pieces.append(((2, 0, 1), double))
        for (a, b, c), (r, p) in pieces:
            f, left = masses(r, p, cut)
            lost += left
            new: dict[tuple[int, int, int], mp.mpf] = defaultdict(lambda: mp.mpf(0))
            for (i, j, k), weight in law.items():
                for n, mass in enumerate(f):
                    new[(i + n * a, j + n * b, k + n * c)] += weight * mass
            law = new

        def view(value: int) -> dict[tuple[int, int, int], mp.mpf]:
            at = {0: (0, 0, 0), 1: (0, 1, 0), 2: (0, 0, 1)}[value]
            return {(i + at[0], j + at[1], k + at[2]): m for (i, j, k), m in law.items()}

        before, after = view(x), view(x_prime)
        scale = mp.exp(mp.mpf(eps))
        total = mp.fsum(
            max(mass - scale * after.get(key, mp.mpf(0)), mp.mpf(0)) for key, mass in before.items()
        )
        # q is a double here, off by a relative 2^-53: counted in the margins
        slack = lost * (1 + scale) + mp.mpf(10) ** -13
        return Bracket(total - slack, total + slack)
