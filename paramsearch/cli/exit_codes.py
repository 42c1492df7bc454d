"""The exit codes of the program."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paramsearch.certification.audit import Verdict


class ExitCode(IntEnum):
    """The exit codes of commands."""

    DONE = 0
    """Done; a claim that was asked about is certified."""
    VIOLATED = 1
    """A configuration violates its claim, a certificate states something false, a file is not for
    the problem that is required, or a table has such a file; no other failure has this code."""
    BAD_INPUT = 2
    """Bad usage or input, a parameter file that is rejected, or an answer that could not be
    delivered."""
    UNDECIDED = 3
    """Not decided within the budget or the requested gap."""
    INTERRUPTED = 130
    """Ended by Ctrl-C; what was written up to then is complete."""
    TERMINATED = 143
    """Ended by SIGTERM, in order; what was written up to then is complete."""


OF_VERDICT: dict[Verdict, ExitCode] = {
    "certified": ExitCode.DONE,
    "violated": ExitCode.VIOLATED,
    "undecided": ExitCode.UNDECIDED,
    "misstated": ExitCode.VIOLATED,
    "rejected": ExitCode.BAD_INPUT,
}
