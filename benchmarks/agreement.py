"""Three answers to one question: the definition, the notary and the fast evaluators.

Random small mechanisms of many kinds are enumerated by ``accounting.reference``; the two other
proofs, which share no code with it or with each other, must give bounds that overlap with it and
with each other.  Then the three answers for some named examples, side by side.

    python benchmarks/agreement.py [--each 100] [--seed 0] [--kinds vectors ...] [--no-examples]

``--smoke`` asks about one mechanism of every fourteenth kind, and about no examples.
Exit code 1 if any two answers contradict each other.
"""

from __future__ import annotations

import math
import random
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

import scripts

from accounting import (
    Enclosure,
    ExactBurst,
    ExactCentral,
    ExactNoise,
    Mechanism,
    Proposal,
    Question,
    TooLarge,
    Undecided,
    prove,
)
from accounting.model.mechanism import ExactLaw
from accounting.model.proof_types import AuditTier
from paramsearch import load
from paramsearch.certification.audit import mechanism_of
from paramsearch.certification.certify import claimed_mechanism
from paramsearch.tables.lookup import shipped_folder

PROOFS: dict[AuditTier, tuple[float, ...]] = {
    "reference": (1e-6, 1e-2),
    "ball": (1e-4,),
    "fast": (1e-3,),
}
"""The tiers, and the gap that each is asked for; a second one if the first takes too much."""
ONES = {1: [(-1, 1)], 2: [(-1, 1), (-1, -1, 2)], 3: [(-1, 1), (-1, -1, 2), (-1, -1, -1, 3)]}
HUB = [(-1, 1), (-2, 1, 1), (-2, 2)]


@dataclass(frozen=True)
class Case:
    """A mechanism and a question about it."""

    mechanism: Mechanism
    question: Question


@dataclass(frozen=True)
class Answers:
    """The bounds of every proof that has an answer."""

    bounds: dict[AuditTier, Enclosure]

    @property
    def agree(self) -> bool:
        """Whether one number lies within all bounds."""
        found = self.bounds.values()
        return max(e.lower for e in found) <= min(e.upper for e in found)


def answers(case: Case) -> Answers:
    """What every proof says; one that refuses the case is left out."""
    found: dict[AuditTier, Enclosure] = {}
    for tier, gaps in PROOFS.items():
        for gap in gaps:
            with suppress(TooLarge, Undecided):
                found[tier] = prove(case.mechanism, case.question, tier=tier, gap=gap).enclosure
                break
    return Answers(found)


def exact(value: float) -> Fraction:
    """A fraction with few digits, as people write them."""
    return Fraction(f"{value:.3g}")


def noise(
    rng: random.Random, r: tuple[float, float] = (0.3, 4), p: tuple[float, float] = (0.1, 0.5)
) -> ExactNoise:
    return ExactNoise(p=exact(rng.uniform(*p)), r=exact(rng.uniform(*r)))


def mechanism(
    rng: random.Random, top: int, parts: Callable[[], tuple[ExactLaw, ...]], dimension: int = 1
) -> Mechanism:
    atoms = {atom: parts() for atom in ONES[top]}
    central = ExactCentral(step=exact(rng.uniform(0.8, 3)))
    return Mechanism(top, atoms, central, dimension)


def question(rng: random.Random, releases: int = 1, *, same_change: bool = False) -> Question:
    return Question(eps=round(rng.uniform(0, 2.5), 3), releases=releases, same_change=same_change)


def plain(rng: random.Random, top: int) -> Case:
    return Case(mechanism(rng, top, lambda: (noise(rng),)), question(rng))


def hub(rng: random.Random) -> Case:
    quiet = {atom: (noise(rng, p=(0.05, 0.25)),) for atom in HUB}
    central = ExactCentral(step=exact(rng.uniform(1.5, 4)))
    return Case(Mechanism(2, quiet, central), question(rng))


def two_noises(rng: random.Random) -> Case:
    return Case(mechanism(rng, rng.choice([1, 2]), lambda: (noise(rng), noise(rng))), question(rng))


def small_r(rng: random.Random) -> Case:
    return Case(
        mechanism(rng, rng.choice([1, 2]), lambda: (noise(rng, (0.001, 0.9)),)), question(rng)
    )


def small_p(rng: random.Random) -> Case:
    def tiny() -> tuple[ExactNoise, ...]:
        return (ExactNoise(p=Fraction(1, 10 ** rng.randint(2, 12)), r=exact(rng.uniform(0.1, 9))),)

    return Case(mechanism(rng, rng.choice([1, 2]), tiny), question(rng))


def much_noise(rng: random.Random) -> Case:
    return Case(
        mechanism(rng, 1, lambda: (noise(rng, (4, 14), (0.8, 0.97)),)),
        Question(eps=round(rng.uniform(0.3, 1), 3)),
    )


def small_eps(rng: random.Random) -> Case:
    case = plain(rng, rng.choice([1, 2]))
    return replace(case, question=Question(eps=rng.choice([0.0, 10 ** rng.uniform(-9, -1)])))


def large_eps(rng: random.Random) -> Case:
    case = plain(rng, rng.choice([1, 2]))
    return replace(case, question=Question(eps=round(rng.uniform(4, 40), 3)))


def rates(rng: random.Random) -> Case:
    """Event rates, as in parameter files: the central noise is NB(1, q) up to 15 digits."""
    top = rng.choice([1, 2])
    atoms = {
        atom: (ExactNoise(p=exact(rng.uniform(0.1, 0.5)), rate=exact(rng.uniform(0.2, 3))),)
        for atom in ONES[top]
    }
    p = exact(rng.uniform(0.1, 0.5))
    rate = Fraction(f"{-math.log1p(-float(p)):.15g}")
    return Case(Mechanism(top, atoms, ExactCentral(p=p, rate=rate)), question(rng))


def honest(rng: random.Random, dimension: int = 1) -> Case:
    top = 1 if dimension > 1 else rng.choice([1, 2])
    whole = mechanism(rng, top, lambda: (noise(rng),), dimension)
    return Case(whole.thinned(exact(rng.uniform(0.2, 0.95))), question(rng))


def vectors(rng: random.Random, top: int) -> Case:
    quiet = (0.1, 0.5) if top == 1 else (0.1, 0.3)
    parts = mechanism(rng, top, lambda: (noise(rng, p=quiet),), rng.choice([2, 7]))
    return Case(parts, question(rng))


def releases(
    rng: random.Random, top: int, times: int, dimension: int = 1, *, same_change: bool = False
) -> Case:
    quiet = (0.1, 0.5) if top == 1 and times == 2 else (0.05, 0.25)
    if dimension > 1:
        quiet = (0.01, 0.08)
    made = mechanism(rng, top, lambda: (noise(rng, (0.3, 3), quiet),), dimension)
    if dimension > 1 or times > 2:  # many laws in one product
        made = replace(made, central=ExactCentral(step=exact(rng.uniform(3, 5))))
    return Case(made, question(rng, times, same_change=same_change))


def zero_out(case: Case) -> Case:
    return replace(case, question=replace(case.question, adjacency="zero-out"))


def burst(rng: random.Random, m: tuple[int, int] = (1, 6)) -> ExactBurst:
    return ExactBurst(
        p=exact(rng.uniform(0.05, 0.5)), rate=exact(rng.uniform(0.2, 4)), m=rng.randint(*m)
    )


def bursts(rng: random.Random, case: Case, *, both: bool = False) -> Case:
    """The same with bursts in place of the negative binomials; with ``both`` laws, an atom has
    either or both."""
    mean = float(next(iter(case.mechanism.atoms.values()))[0].mean().mid())

    def law(old: tuple[ExactLaw, ...]) -> tuple[ExactLaw, ...]:
        new = burst(rng, (1, 6) if mean > 0.3 else (1, 2))
        if mean < 0.3:  # many laws in one product: little noise
            new = replace(new, p=new.p / 5, rate=new.rate / 5)
        if both:
            return rng.choice([old, (new,), (*old, new), (new, burst(rng))])
        return (new,)

    atoms = {atom: law(old) for atom, old in case.mechanism.atoms.items()}
    return replace(case, mechanism=replace(case.mechanism, atoms=atoms))


def odd_bursts(rng: random.Random) -> Case:
    """Few and large, or many and small, with rationals that are no doubles."""

    def odd() -> tuple[ExactLaw, ...]:
        large = rng.random() < 0.5
        p = Fraction(rng.randint(1, 6), 7) if large else Fraction(1, 3 ** rng.randint(2, 20))
        rate = Fraction(rng.randint(1, 20), 7 if large else 3)
        return (ExactBurst(p=p, rate=rate, m=rng.choice([1, 2, 3, 8, 20])),)

    return Case(mechanism(rng, 1, odd), question(rng))


KINDS: dict[str, Callable[[random.Random], Case]] = {
    "numbers to 1": lambda rng: plain(rng, 1),
    "numbers to 2": lambda rng: plain(rng, 2),
    "numbers to 3": lambda rng: plain(rng, 3),
    "numbers to 2, hub -2": hub,
    "sums of two noises": two_noises,
    "r below 1": small_r,
    "p near 0": small_p,
    "much noise": much_noise,
    "small eps": small_eps,
    "large eps": large_eps,
    "event rates": rates,
    "honest fraction": honest,
    "vectors of numbers to 1": lambda rng: vectors(rng, 1),
    "vectors of numbers to 2": lambda rng: vectors(rng, 2),
    "vectors, honest fraction": lambda rng: honest(rng, 2),
    "2 releases to 1": lambda rng: releases(rng, 1, 2),
    "2 releases to 2": lambda rng: releases(rng, 2, 2),
    "2 releases, same change": lambda rng: releases(rng, 2, 2, same_change=True),
    "2 releases of vectors": lambda rng: releases(rng, 1, 2, 2),
    "zero-out": lambda rng: zero_out(plain(rng, 2)),
    "zero-out, vectors": lambda rng: zero_out(vectors(rng, 1)),
    "zero-out, 2 releases": lambda rng: zero_out(releases(rng, 2, 2)),
    "3 releases to 1": lambda rng: releases(rng, 1, 3),
    "bursts to 1": lambda rng: bursts(rng, plain(rng, 1)),
    "bursts to 2": lambda rng: bursts(rng, plain(rng, 2)),
    "bursts to 3": lambda rng: bursts(rng, plain(rng, 3)),
    "bursts, odd": odd_bursts,
    "bursts, small eps": lambda rng: bursts(rng, small_eps(rng)),
    "bursts, large eps": lambda rng: bursts(rng, large_eps(rng)),
    "bursts, honest fraction": lambda rng: bursts(rng, honest(rng)),
    "bursts, vectors": lambda rng: bursts(rng, vectors(rng, 1)),
    "bursts, 2 releases": lambda rng: bursts(rng, releases(rng, 1, 2)),
    "bursts, same change": lambda rng: bursts(rng, releases(rng, 2, 2, same_change=True)),
    "bursts, zero-out": lambda rng: zero_out(bursts(rng, plain(rng, 2))),
    "both laws to 1": lambda rng: bursts(rng, plain(rng, 1), both=True),
    "both laws to 2": lambda rng: bursts(rng, plain(rng, 2), both=True),
    "both laws, hub -2": lambda rng: bursts(rng, hub(rng), both=True),
    "both laws, event rates": lambda rng: bursts(rng, rates(rng), both=True),
    "both laws, honest fraction": lambda rng: bursts(rng, honest(rng), both=True),
    "both laws, vectors": lambda rng: bursts(rng, vectors(rng, 1), both=True),
    "both laws, 2 releases": lambda rng: bursts(rng, releases(rng, 1, 2), both=True),
}


def drawn(kind: str, seed: int) -> Case:
    """The same case for the same seed."""
    return KINDS[kind](random.Random(f"{kind} {seed}"))


def examples() -> dict[str, Case]:
    """Examples of the tests and the documents that are small enough, and files that are shipped."""
    shipped = shipped_folder() / "files"
    noise = ExactNoise(p=Fraction(24, 25), r=Fraction(12))
    one = Mechanism(1, {(-1, 1): (noise,)}, ExactCentral(step=Fraction(9, 10)))
    atoms = [{"atom": [-1, 1], "r": 12.0, "p": 0.985}, {"atom": [-1, -1, 2], "r": 12.0, "p": 0.98}]
    asked = {"max_value": 2, "eps": 1.0, "delta": 1e-6, "eps_central": 0.9}
    two = mechanism_of(Proposal.of({**asked, "atoms": atoms}))
    found = {
        "NB(12, 0.96) on {-1, 1}": Case(one, Question(eps=1.0)),
        "  0.9 of the users": Case(one.thinned(Fraction(9, 10)), Question(eps=1.0)),
        "  2 releases, eps 2": Case(one, Question(eps=2.0, releases=2)),
        "  vectors": Case(replace(one, dimension=2), Question(eps=1.0)),
        "tests/examples/sum_to_2.json": Case(two, Question(eps=1.0)),
    }
    for name in ("1-1-1e-06-0.9", "1-0.5-1e-08-0.5", "1-4-1e-06-0.9", "1-4-1e-10-0.9"):
        file = load(shipped / f"{name}.json")
        problem = file.problem
        asked = Question(eps=problem.eps, claim=problem.delta)
        found[f"shipped {name}.json"] = Case(claimed_mechanism(file), asked)
    return found


def show_examples() -> bool:
    """The three answers side by side; whether they agree."""
    print(f"{'example':32s} {'reference':>25s} {'notary':>25s} {'evaluator':>25s}   seconds")
    right = True
    for name, case in examples().items():
        scripts.say(f"example {name.strip()}")
        begun = time.perf_counter()
        found = answers(case)
        seconds = time.perf_counter() - begun
        cells = " ".join(f"{found.bounds.get(tier, '-')!s:>25s}" for tier in PROOFS)
        mark = "" if found.agree else "  DISAGREE"
        print(f"{name:32s} {cells} {seconds:9.1f}{mark}", flush=True)
        right &= found.agree
    return right


def show_kind(kind: str, seeds: range) -> int:
    """One line of the table; the number of disagreements."""
    widest = dict.fromkeys(PROOFS, 0.0)
    answered = dict.fromkeys(PROOFS, 0)
    wrong = []
    for seed in seeds:
        found = answers(drawn(kind, seed))
        for tier, bounds in found.bounds.items():
            answered[tier] += 1
            widest[tier] = max(widest[tier], bounds.relative_gap)
        if not found.agree:
            wrong.append(seed)
    cells = "  ".join(f"{answered[tier]:5d} {widest[tier]:9.1e}" for tier in PROOFS)
    print(f"{kind:26s} {len(seeds):5d}  {cells}  {len(wrong):5d}", flush=True)
    if wrong:
        print(f"  seeds that disagree: {wrong}", flush=True)
    return len(wrong)


def main() -> int:
    parser = scripts.parser(__doc__)
    parser.add_argument("--each", type=int, default=100, help="mechanisms of every kind")
    parser.add_argument("--seed", type=int, default=0, help="of the first mechanism")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--no-examples", action="store_true")
    options = parser.parse_args()
    kinds, each = (options.kinds[::14], 1) if options.smoke else (options.kinds, options.each)
    seeds = range(options.seed, options.seed + each)
    heads = "  ".join(f"{name:>15s}" for name in ("reference", "notary", "evaluator"))
    print("for each proof: how many mechanisms it answers, and the largest relative gap")
    print(f"{'kind':26s} {'count':>5s}  {heads}  wrong", flush=True)
    wrong = 0
    for i, kind in enumerate(kinds, 1):
        scripts.say(f"kind {i} of {len(kinds)}: {kind}")
        wrong += show_kind(kind, seeds)
    print(f"{each * len(kinds):,} mechanisms, {wrong} disagreements", flush=True)
    right = options.no_examples or options.smoke or show_examples()
    return 0 if right and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
