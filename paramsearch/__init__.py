"""Which configuration of the correlated-noise protocol should I deploy?

    from paramsearch import Request, audit, certify, generate, load, parameters, read, save

``generate`` finds the cheapest certified file for a ``Request``.  ``read`` takes a configuration or
a parameter file, ``parameters`` turns a configuration into exact rationals, ``certify`` proves
them, ``audit`` trusts nothing and decides, ``load`` and ``save`` are exact inverses, and ``Table``
looks up what is precomputed.  The names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paramsearch.certification.audit import Audit, audit
    from paramsearch.certification.certify import certify
    from paramsearch.generation.generate import Request, generate
    from paramsearch.parameters.assembly import parameters
    from paramsearch.parameters.documents import read
    from paramsearch.parameters.parameter_file import ParameterFile, load, save
    from paramsearch.tables.lookup import Table

__all__ = [
    "Audit",
    "ParameterFile",
    "Request",
    "Table",
    "audit",
    "certify",
    "generate",
    "load",
    "parameters",
    "read",
    "save",
]
_HOME = {
    "Audit": "certification.audit",
    "audit": "certification.audit",
    "read": "parameters.documents",
    "certify": "certification.certify",
    "parameters": "parameters.assembly",
    "Request": "generation.generate",
    "generate": "generation.generate",
    "ParameterFile": "parameters.parameter_file",
    "Table": "tables.lookup",
    "load": "parameters.parameter_file",
    "save": "parameters.parameter_file",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'paramsearch' has no attribute {name!r}")
    return getattr(import_module(f"paramsearch.{_HOME[name]}"), name)
