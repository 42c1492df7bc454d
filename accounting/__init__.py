"""What does a configuration of the correlated-noise protocol guarantee?

    >>> from accounting import Configuration, NegativeBinomial, Protocol
    >>> noise = NegativeBinomial.from_mean(mean=310.0, r=12.0)
    >>> config = Configuration.of(1, [((-1, 1), noise)], eps_central=0.9)
    >>> found = Protocol(config).delta(1.0)
    >>> found.enclosure.lower <= found.enclosure.upper < 1e-6
    True

Numbers come as enclosures that contain the truth: discretisation, truncation and floating-point
error are inside.  The proofs are beside the modules: exact_view.md, discretisation.md and
floating_point.md.  Importing this package does not import numba; the first evaluation does.
"""

from accounting.base.enclosure import Enclosure
from accounting.base.errors import (
    AccountingError,
    InvalidConfiguration,
    InvalidFamily,
    InvalidParameter,
    TooLarge,
    Undecided,
    Violated,
)
from accounting.evaluator.hockey_stick import LinearQueries, product_divergence
from accounting.evaluator.paper_bound import CompositionBound, composition_bound
from accounting.model.configuration import Configuration, load, loads
from accounting.model.family import Family, greedy, halves, hubs, ones, radix
from accounting.model.negative_binomial import NegativeBinomial
from accounting.model.noise import NoiseSum
from accounting.protocol import Delta, Protocol

__all__ = [
    "AccountingError",
    "CompositionBound",
    "Configuration",
    "Delta",
    "Enclosure",
    "Family",
    "InvalidConfiguration",
    "InvalidFamily",
    "InvalidParameter",
    "LinearQueries",
    "NegativeBinomial",
    "NoiseSum",
    "Protocol",
    "TooLarge",
    "Undecided",
    "Violated",
    "composition_bound",
    "greedy",
    "halves",
    "hubs",
    "load",
    "loads",
    "ones",
    "product_divergence",
    "radix",
]
