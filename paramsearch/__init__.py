"""Which configuration of the correlated-noise protocol should I deploy?

    from paramsearch import Request, Simulation, audit, certify, generate, load, read, save
    from paramsearch import simulate, uncertified

``generate`` finds the cheapest certified file for a ``Request``.  ``read`` takes a configuration or
a parameter file, ``uncertified`` turns a configuration into exact rationals, ``certify`` proves
them, ``audit`` trusts nothing and decides (``read_source`` reads even what it rejects), ``load``
and ``save`` are exact inverses, and ``Table`` looks up what is precomputed.  ``generate_real`` is
for real values, ``compare`` shows a problem's answer beside other mechanisms, ``simulate`` runs the
protocol of a file, and ``paramsearch.deploy``
has the randomizer and the analyzer.

=================  ===============================================================================
``request``        what a person asks for: a problem, an error to allow, and how hard to search
``search``         the cheapest noise: families, the dominance program, local search; knows no file
``parameters``     the parameter file: model, schema, assembling, signing, and what it says in words
``certification``  verdicts: certify a file, audit one
``generation``     from a problem to a certified file: search, rounding, proof
``tables``         tables of precomputed files: the index, lookups; ``data`` is the shipped one
``filling``        making tables: grids of problems, workers, the folder
``deploy``         what clients and servers run: randomizer, analyzer, samplers, message files
``comparison``     the protocol beside the mechanisms of ``accounting.baselines``
``report``         the page of an audit; ``explorer`` is that of a table
``cli``            the command line, the only place that prints
=================  ===============================================================================

A new command is a module in ``cli``.  Names are imported when they are first used.
"""

from accounting.base.lazy import exports

__getattr__, __dir__ = exports(__name__, __file__)
