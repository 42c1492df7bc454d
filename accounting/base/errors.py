"""Errors that name the value, the cause and the remedy.  All of them are ``AccountingError``."""

from __future__ import annotations


class AccountingError(ValueError):
    """Base of every error this package raises on purpose."""


class InvalidParameter(AccountingError):
    """A number outside its domain."""


class InvalidFamily(AccountingError):
    """A set of atoms that does not protect every input value, or is not triangular."""


class InvalidConfiguration(AccountingError):
    """A configuration file that cannot be read as one."""


class TooLarge(AccountingError):
    """The computation would not fit into the memory it may use; raised before allocating."""


class Undecided(AccountingError):
    """The bounds cannot be brought as close together as was asked."""


class Violated(AccountingError):
    """A claim that was disproved."""
