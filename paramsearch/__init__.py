"""Which configuration of the correlated-noise protocol should I deploy?

    from paramsearch import Request, audit, certify, generate, load, read, save, uncertified

``generate`` finds the cheapest certified file for a ``Request``.  ``read`` takes a configuration or
a parameter file, ``uncertified`` turns a configuration into exact rationals, ``certify`` proves
them, ``audit`` trusts nothing and decides, ``load`` and ``save`` are exact inverses, and ``Table``
looks up what is precomputed.  ``paramsearch.deploy`` has the randomizer and the analyzer.

=================  ===============================================================================
``problem``        what a person asks for
``search``         the cheapest noise: families, the dominance program, local search; knows no file
``parameters``     the parameter file: model, schema, assembling, signing, and what it says in words
``certification``  verdicts: certify a file, audit one
``generation``     from a problem to a certified file: search, rounding, proof
``tables``         grids of problems, workers, the index, lookups; ``data`` is the shipped table
``deploy``         what clients and servers run: randomizer, analyzer, samplers, message files
``comparison``     the protocol beside the mechanisms of ``accounting.baselines``
``report``         the page of an audit; ``explorer`` is that of a table
``cli``            the command line, the only place that prints
=================  ===============================================================================

A new command is a module in ``cli``.  Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import version

    from accounting.base.errors import Undecided, Violated
    from paramsearch.certification.audit import Audit, audit
    from paramsearch.certification.certify import certify
    from paramsearch.generation.generate import Generated, generate
    from paramsearch.parameters.assembly import rescaled, uncertified
    from paramsearch.parameters.documents import read
    from paramsearch.parameters.parameter_file import ParameterFile, load, save
    from paramsearch.problem import Request
    from paramsearch.tables.lookup import Found, Query, Table

    __version__ = version("paramsearch")

_HOME = {
    "accounting.base.errors": ("Undecided", "Violated"),
    "paramsearch.certification.audit": ("Audit", "audit"),
    "paramsearch.certification.certify": ("certify",),
    "paramsearch.generation.generate": ("Generated", "generate"),
    "paramsearch.parameters.assembly": ("rescaled", "uncertified"),
    "paramsearch.parameters.documents": ("read",),
    "paramsearch.parameters.parameter_file": ("ParameterFile", "load", "save"),
    "paramsearch.problem": ("Request",),
    "paramsearch.tables.lookup": ("Found", "Query", "Table"),
}
_ROOM_OF = {name: room for room, names in _HOME.items() for name in names}

__all__ = [
    "Audit",
    "Found",
    "Generated",
    "ParameterFile",
    "Query",
    "Request",
    "Table",
    "Undecided",
    "Violated",
    "__version__",
    "audit",
    "certify",
    "generate",
    "load",
    "read",
    "rescaled",
    "save",
    "uncertified",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("paramsearch")
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'paramsearch' has no attribute {name!r}")
    return getattr(import_module(_ROOM_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
