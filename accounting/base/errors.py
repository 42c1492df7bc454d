"""Errors that name the value, the cause and the remedy; all of them are ``AccountingError``."""

from __future__ import annotations


class AccountingError(ValueError):
    """Base class of every error that this package raises on purpose.

    >>> from accounting import NegativeBinomial
    >>> NegativeBinomial(r=1.0, p=2.0)
    Traceback (most recent call last):
    accounting.base.errors.InvalidParameter: p = 2.0 must lie strictly between 0 and 1
    """


class InvalidParameter(AccountingError):
    """A number is outside its domain."""


class InvalidFamily(AccountingError):
    """A set of atoms does not protect every input value, or is not triangular."""


class InvalidConfiguration(AccountingError):
    """A configuration file cannot be read, or contradicts itself."""


class TooLarge(AccountingError):
    """A computation would need too much memory or time; raised before it begins."""


class Undecided(AccountingError):
    """The bounds cannot be brought close enough together to answer the question."""


class Violated(AccountingError):
    """A claim was disproved."""
