"""What does a configuration of the correlated-noise protocol guarantee?

    >>> from accounting import Configuration, NegativeBinomial, Protocol
    >>> noise = NegativeBinomial.from_mean(mean=310.0, r=12.0)
    >>> config = Configuration.of(1, [((-1, 1), noise)], eps_central=0.9)
    >>> found = Protocol(config).delta(1.0)
    >>> found.enclosure.lower <= found.enclosure.upper < 1e-6
    True

Numbers come as enclosures that contain the truth: discretisation, truncation and floating-point
error are inside.  The proofs are beside the code.

==============  ==================================================================================
``model``       what the protocol is: families, noise laws, configurations, changes of an input
``protocol``    delta, eps and privacy profiles of a configuration, for people who ask
``evaluator``   the first proof: floating point with a proven error budget (exact_view.md,
                discretisation.md, floating_point.md)
``notary``      the second proof: ball arithmetic (notary.md); shares no code with the first
``proof``       which proof covers which change, and what is said when both are done
``composition`` several releases: profiles, dominating pairs, any sequence of changes (releases.md)
``estimator``   fast numbers without a side, and gradients: for a search, never for a certificate
``baselines``   the mechanisms that the protocol is compared with
``base``        arrays, validation, errors, enclosures, balls, threads, deadlines
==============  ==================================================================================

A new noise law goes to ``model`` and needs a table in ``evaluator/noise_tables`` and in
``notary/tables``; a new baseline is a module in ``baselines``.

Names are imported when they are first used, so importing this package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import version

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
    from accounting.estimator.estimate import Estimator
    from accounting.evaluator.hockey_stick import (
        CompositionBound,
        LinearQueries,
        composition_bound,
        product_divergence,
    )
    from accounting.model.change import Change
    from accounting.model.configuration import Configuration, Proposal, load, loads
    from accounting.model.family import Family, greedy, halves, hubs, ones, radix
    from accounting.model.mechanism import ExactCentral, ExactNoise, Mechanism
    from accounting.model.negative_binomial import NegativeBinomial
    from accounting.model.noise import NoiseSum
    from accounting.model.problem import Problem
    from accounting.proof.prove import Proof, prove, satisfied_eps
    from accounting.protocol import Delta, Protocol

    __version__ = version("paramsearch")

_HOME = {
    "base.enclosure": ("Enclosure",),
    "base.errors": (
        "AccountingError",
        "InvalidConfiguration",
        "InvalidFamily",
        "InvalidParameter",
        "TooLarge",
        "Undecided",
        "Violated",
    ),
    "estimator.estimate": ("Estimator",),
    "evaluator.hockey_stick": (
        "CompositionBound",
        "LinearQueries",
        "composition_bound",
        "product_divergence",
    ),
    "model.change": ("Change",),
    "model.configuration": ("Configuration", "Proposal", "load", "loads"),
    "model.family": ("Family", "greedy", "halves", "hubs", "ones", "radix"),
    "model.mechanism": ("ExactCentral", "ExactNoise", "Mechanism"),
    "model.negative_binomial": ("NegativeBinomial",),
    "model.noise": ("NoiseSum",),
    "model.problem": ("Problem",),
    "proof.prove": ("Proof", "prove", "satisfied_eps"),
    "protocol": ("Delta", "Protocol"),
}
_ROOM_OF = {name: room for room, names in _HOME.items() for name in names}

__all__ = [
    "AccountingError",
    "Change",
    "CompositionBound",
    "Configuration",
    "Delta",
    "Enclosure",
    "Estimator",
    "ExactCentral",
    "ExactNoise",
    "Family",
    "InvalidConfiguration",
    "InvalidFamily",
    "InvalidParameter",
    "LinearQueries",
    "Mechanism",
    "NegativeBinomial",
    "NoiseSum",
    "Problem",
    "Proof",
    "Proposal",
    "Protocol",
    "TooLarge",
    "Undecided",
    "Violated",
    "__version__",
    "composition_bound",
    "greedy",
    "halves",
    "hubs",
    "load",
    "loads",
    "ones",
    "product_divergence",
    "prove",
    "radix",
    "satisfied_eps",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("paramsearch")
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'accounting' has no attribute {name!r}")
    return getattr(import_module(f"accounting.{_ROOM_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
