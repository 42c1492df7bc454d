"""The vocabulary of proofs: tiers, methods and gaps, without any code that proves.

Parameter files name the methods, and clients read parameter files, so these names must not bring
an evaluator with them.
"""

from __future__ import annotations

from typing import Literal

Tier = Literal["auto", "ball", "mixed", "fast", "light"]
"""How much of a proof is done in ball arithmetic; ``accounting.proof.prove`` says what each is."""

BALL = "ball"
BALL_2D = "ball, central noise as a two-dimensional table of doubles with error bounds"
DISJOINT = "disjoint supports"
FAST = "fast"
"""Methods by which the bound of a change was proved, as certificates name them."""

GAP = 1e-4
"""Relative gap between the two bounds to which a proof is refined by default."""
LOOSE = 1e-2
"""Relative gap that is enough once a claim is decided, unless a smaller one is cheap."""
MOST_RELEASES = 10_000
"""Releases in which the changes of one user may differ arbitrarily."""
LARGEST_VALUE = 4096
"""The largest max_value whose changes are evaluated all together: they must fit into memory."""
