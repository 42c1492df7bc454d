"""The notary: its times, and why it works in arb rather than in mpmath's intervals.

First one product of two polynomials of length N at 128 bits, in python-flint's arb_poly and, from
single multiplications, in mpmath's iv (N^2 of them).  Then the time of a proof over all ordered
pairs, ball arithmetic throughout, beside the fast rigorous evaluators on the same configuration.
Families are hubs, and ones below 9; the noise has r = 12 and means that make delta(1) about 1e-6.

    python benchmarks/notary.py [--sizes 5 20 50] [--large]

``--smoke`` takes short polynomials, and proves max_value 5 alone.
"""

from __future__ import annotations

import time
from fractions import Fraction

import mpmath
import scripts
from flint import arb, arb_poly
from growth import EPS, EPS_CENTRAL, SCALES, configuration

from accounting import Protocol
from accounting.base.balls import precision
from accounting.model.change import SUBSTITUTION
from accounting.model.mechanism import ExactCentral, ExactNoise, Mechanism
from accounting.notary.notary import Notary

LENGTH, SAMPLE, BITS = 8192, 20_000, 128


def products(length: int, sample: int) -> None:
    with precision(BITS):
        one = arb_poly([1 / arb(i + 3) for i in range(length)])
        two = arb_poly([1 / arb(i + 7) for i in range(length)])
        start = time.perf_counter()
        _ = one * two
        balls = time.perf_counter() - start
    mpmath.iv.prec = BITS
    a, b, total = mpmath.iv.mpf(1) / 3, mpmath.iv.mpf(1) / 7, mpmath.iv.mpf(0)
    start = time.perf_counter()
    for _ in range(sample):
        total += a * b
    each = (time.perf_counter() - start) / sample
    intervals = each * length**2
    print(f"product of two polynomials of length {length}, {BITS} bits")
    print(f"  arb_poly   {balls:10.4f} s")
    print(f"  mpmath iv  {intervals:10.1f} s  ({each * 1e6:.1f} us each, times N^2)")
    print(f"  ratio      {intervals / balls:10.0f}")


def exact(max_value: int) -> Mechanism:
    config = configuration(max_value, SCALES[max_value])
    atoms = {
        atom: tuple(ExactNoise(p=Fraction(part.p), r=Fraction(part.r)) for part in noise.parts)
        for atom, noise in config.noise.items()
    }
    return Mechanism(max_value, atoms, ExactCentral(step=Fraction(EPS_CENTRAL) / max_value))


def proof(max_value: int) -> None:
    mechanism = exact(max_value)
    start = time.perf_counter()
    found = Notary(mechanism).enclose(EPS)
    seconds = time.perf_counter() - start
    protocol = Protocol(configuration(max_value, SCALES[max_value]))
    start = time.perf_counter()
    fast = protocol.delta(EPS)
    quick = time.perf_counter() - start
    print(
        f"{max_value:5d} {len(mechanism.changes(SUBSTITUTION)):8,d} changes  "
        f"notary {seconds:8.2f} s {found.enclosure}  "
        f"fast {quick:8.3f} s {fast.enclosure}"
    )


def main() -> None:
    parser = scripts.parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[5, 20, 50])
    parser.add_argument("--large", action="store_true", help="also max_value 200")
    options = parser.parse_args()
    length, sample = (64, 100) if options.smoke else (LENGTH, SAMPLE)
    scripts.say("products of polynomials")
    products(length, sample)
    Protocol(configuration(5, SCALES[5])).delta(EPS)  # compiles
    sizes = [*options.sizes, *([200] if options.large else [])]
    for size in [5] if options.smoke else sizes:
        scripts.say(f"proof for max_value {size}")
        proof(size)


if __name__ == "__main__":
    main()
