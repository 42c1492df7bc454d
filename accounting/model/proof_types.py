"""The vocabulary of proofs: tiers, methods, gaps and limits, without any code that proves.

Parameter files name the methods, and clients read parameter files, so importing these names must
not import an evaluator.
"""

from __future__ import annotations

from typing import Literal

Tier = Literal["auto", "ball", "mixed", "fast", "light"]
"""How much of a proof is done in ball arithmetic; ``accounting.proof.prove`` explains each."""

AuditTier = Literal[Tier, "reference"]
"""``reference`` enumerates the definition; certificates have no name for that, audits do."""

BALL = "ball"
BALL_2D = "ball, central noise as a two-dimensional table of doubles with error bounds"
BALL_COUPLED = "ball, central noises coupled"
DISJOINT = "disjoint supports"
FAST = "fast"
COMPARISON = "comparison"
"""Methods by which the bound of a change was proved, as certificates name them."""
REFERENCE = "enumeration"
"""The same, in audits alone."""

GAP = 1e-4
"""Default relative gap between the two bounds of a proof."""
TYPICAL_DELTA = 1e-6
"""Size of delta that a proof without a claim resolves at first."""
LOOSE = 1e-2
"""Relative gap that is enough once a claim is decided, unless a smaller one is cheap."""
MOST_RELEASES = 10_000
"""Most releases in which the changes of one user may differ arbitrarily."""
MOST_PARTS = 64
"""Most negative binomials whose sum is the noise of one atom."""
LARGEST_VALUE = 8192
"""Largest max_value whose changes are all evaluated at once: they must fit into memory."""
