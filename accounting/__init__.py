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
``reference``   the definition, enumerated (reference/README.md): slow, short; begin here
``protocol``    delta, eps and privacy profiles of a configuration, for people who ask
``evaluator``   the first proof: floating point with a proven error budget (exact_view.md,
                discretisation.md, floating_point.md, covered_pairs.md)
``notary``      the second proof: ball arithmetic (notary.md); shares no code with the first
``proof``       which proof covers which change, and what is said when both are done
``composition`` several releases: profiles, dominating pairs, any sequence of changes (releases.md)
                ``loss_distribution``, beside the rooms: of several mechanisms together
``estimator``   fast numbers without a side, and gradients: for a search, never for a certificate
``baselines``   the mechanisms that the protocol is compared with
``base``        arrays, validation, errors, enclosures, balls, threads, deadlines
==============  ==================================================================================

A new noise law is a module in ``model/laws``, an exact twin in ``model/mechanism``, its masses in
``evaluator/compiled/table_kernels``, ``notary/tables`` and ``reference/noise_masses``, and a kernel
in ``estimator``; a new baseline is a module in ``baselines``.

Names are imported when they are first used, so importing this package costs next to nothing.
"""

from accounting.base.lazy import exports

__getattr__, __dir__ = exports(__name__, __file__)
