"""Errors that name the value, the cause and the remedy; all of them are ``AccountingError``."""

from __future__ import annotations

from typing import TypeVar

Value = TypeVar("Value")


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


class InexactArithmetic(AccountingError):
    """An elementary function of this machine is less accurate than the proofs assume."""


class Violated(AccountingError):
    """A claim was disproved."""


class InternalError(AssertionError):
    """A defect of this package: two proofs contradict each other, or a proof would be used where it
    does not hold.

    It is no ``AccountingError``: code that passes over a question that is too hard must not pass
    over an answer that is wrong.
    """


def required(value: Value | None, what: str) -> Value:
    """Return a value that only a defect of this package can have left out.

    Args:
        value: The value.
        what: Its name, for the error.

    Raises:
        InternalError: If the value is None.

    >>> required(3, "the number of releases")
    3
    """
    if value is None:
        raise InternalError(f"{what} is missing: please report the command and its files")
    return value
