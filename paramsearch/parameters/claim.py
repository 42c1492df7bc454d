"""Claims: what a document claims, or what is asked about it instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from accounting.base.enclosure import Enclosure, readings
from accounting.base.errors import InvalidParameter
from accounting.base.validation import not_negative, probability, share, whole
from accounting.model.change import SUBSTITUTION, Adjacency, check_adjacency
from accounting.model.configuration import Proposal
from accounting.model.question import Question
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.parameters.real_range import refuse_same_change

Decision = Literal["certified", "violated", "undecided"]
_MOST_RELEASES = (1 << 31) - 1


def decision(delta: float, bounds: Enclosure) -> Decision:
    """Return what bounds of delta say about a claimed one, read as a double or as a decimal.

    >>> decision(1e-6, Enclosure(0.0, 1e-6)), decision(1e-9, Enclosure(0.0, 1e-9))
    ('certified', 'undecided')
    """
    if bounds.upper <= readings(delta)[0]:
        return "certified"
    # a double above the claimed one is also above its decimal
    return "violated" if bounds.lower > delta else "undecided"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """(eps, delta)-privacy for ``releases`` together, with noise from the fraction ``honest``.

    For ``honest``, who is missing must not depend on the noise that was drawn.  ``lost`` is about
    users who are missing because they have noise.

    Args:
        eps: The claimed eps.
        delta: The claimed delta.
        releases: Number of releases that are seen together.
        same_change: Whether only a user who makes the same change in every release is covered.
        honest: Fraction of the users who add noise.
        adjacency: Which data sets are neighbors.
        lost: Number of users with noise whose uploads are lost in every release, whatever they drew
            (accounting/proof/lost_noise.md).

    Raises:
        InvalidParameter: If a number is outside its domain.

    >>> Claim(eps=1.0, delta=1e-6, releases=3).any_sequence
    True
    """

    eps: float
    delta: float
    releases: int = 1
    same_change: bool = False
    honest: float = 1.0
    adjacency: Adjacency = SUBSTITUTION
    lost: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", not_negative("eps", self.eps))
        object.__setattr__(self, "delta", probability("delta", self.delta))
        check_adjacency(self.adjacency)
        whole("releases", self.releases, least=1, most=_MOST_RELEASES)
        object.__setattr__(self, "lost", whole("lost", self.lost, least=0))
        # more noise than all users add would be proved, but never deployed
        object.__setattr__(self, "honest", share("honest", self.honest))
        if self.same_change and self.releases == 1:
            raise InvalidParameter(
                "--same-change says which changes several releases cover, and this is one release: "
                "give --releases, or leave it out"
            )

    @staticmethod
    def of(
        document: ParameterFile | Proposal,
        *,
        eps: float | None = None,
        delta: float | None = None,
        releases: int | None = None,
        same_change: bool = False,
        honest: float | None = None,
        adjacency: Adjacency | None = None,
    ) -> Claim:
        """The claim of a document, with other numbers where they are given.

        Args:
            document: A parameter file or a configuration.
            eps: Instead of the document's.
            delta: Instead of the document's.
            releases: Number of releases, for any changes of one user's inputs.
            same_change: Whether several releases are meant for the same change in each; a file that
                claims no more than that is taken at its word.
            honest: Fraction of the users who add noise.
            adjacency: Instead of the document's.

        Returns:
            The claim to decide.

        Raises:
            InvalidParameter: If a number is missing or outside its domain, or the same change in
                every release is asked for of a file for real values.
        """
        if same_change:
            refuse_same_change(document)
        stated = document.problem if isinstance(document, ParameterFile) else document
        own_releases = stated.releases if not isinstance(stated, Proposal) else 1
        own_honest = stated.honest if not isinstance(stated, Proposal) else 1.0
        if releases is None and not isinstance(stated, Proposal) and stated.same_change:
            same_change = True
        times = own_releases if releases is None else releases
        return Claim(
            eps=_given("eps", eps, stated.eps),
            delta=_given("delta", delta, stated.delta),
            releases=times,
            same_change=same_change,
            honest=own_honest if honest is None else honest,
            adjacency=stated.adjacency if adjacency is None else adjacency,
        )

    @property
    def any_sequence(self) -> bool:
        """Whether one user's inputs may change differently from release to release."""
        return self.releases > 1 and not self.same_change

    def question(self, claimed: float | None = None) -> Question:
        """Return the question for a proof, about the claimed delta or another one."""
        return Question(
            eps=self.eps,
            releases=self.releases,
            same_change=self.same_change,
            claim=self.delta if claimed is None else claimed,
            adjacency=self.adjacency,
        )


def _given(name: str, option: float | None, stated: float | None) -> float:
    value = option if option is not None else stated
    if value is None:
        raise InvalidParameter(f"{name} is not claimed: add it to the file or give --{name}")
    return value
