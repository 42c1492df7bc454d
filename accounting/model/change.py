"""Changes that one user can make: the specification that every proof is about.

Under *substitution* one user's input becomes another one.  For vectors with at most one non-zero
coordinate the value may also move, that is, leave one coordinate and appear in another.  Under
*zero-out* one user's input becomes none, 0 or the empty vector, or appears in the place of none;
everybody's noise stays.  These are some of the changes of substitution, so what is proved for
substitution holds for zero-out; the reverse is false.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args, overload

from accounting.base.errors import InvalidParameter
from accounting.base.validation import one_of, shown, whole

LARGEST_DIMENSION = (1 << 31) - 1

Adjacency = Literal["substitution", "zero-out"]
"""How the data sets of a guarantee differ: one user has another input, or none in one of them."""
SUBSTITUTION: Final = "substitution"
ZERO_OUT: Final = "zero-out"


def check_adjacency(value: object) -> None:
    """Raise unless the value is a known adjacency.

    Raises:
        InvalidParameter: If it is none.
    """
    one_of("adjacency", value, get_args(Adjacency))


def covers(proved: Adjacency, asked: Adjacency) -> bool:
    """Tell whether a guarantee for the first adjacency is one for the second.

    >>> covers("substitution", "zero-out"), covers("zero-out", "substitution")
    (True, False)
    """
    return proved in (asked, SUBSTITUTION)


def touched_coordinates(dimension: int, adjacency: Adjacency) -> int:
    """Return the largest number of coordinates that the change of one input touches: two if the
    value may move."""
    return min(dimension, 2) if adjacency == SUBSTITUTION else 1


def dimension_of(value: int) -> int:
    """Return a checked dimension: 1 for numbers, more for vectors."""
    return whole("dimension", value, least=1, most=LARGEST_DIMENSION)


@dataclass(frozen=True, order=True)
class Change:
    """A change of one user's input from ``before`` to ``after``.

    Args:
        before: The input, or the value of the coordinate that becomes 0.
        after: The new input, or the value that appears in another coordinate.
        moved: Whether the value leaves one coordinate of a vector and appears in another; then
            ``before`` and ``after`` are both positive.

    >>> print(Change(3, 0))
    input 3 becomes 0
    >>> Change(2, 1, moved=True).listed
    (2, 0, 0, 1)
    """

    before: int
    after: int
    moved: bool = False

    @staticmethod
    def of(listed: Sequence[int]) -> Change:
        """Return the change that parameter files list as [j, k], or as [j, 0, 0, k] if the value
        moves.

        Args:
            listed: Two or four integers.

        Returns:
            The change; ``listed`` is the inverse.

        Raises:
            ValueError: If the numbers are not a change of one input.

        >>> Change.of([2, 0, 0, 1])
        Change(before=2, after=1, moved=True)
        """
        if len(listed) == 2:
            return Change(listed[0], listed[1])
        before, none, nothing, after = listed
        if none or nothing:
            raise ValueError(f"{list(listed)} is not a change of one input")
        return Change(before, after, moved=True)

    @property
    def coordinates(self) -> tuple[tuple[int, int], ...]:
        """The value before and after, for every coordinate that is touched."""
        if self.moved:
            return (self.before, 0), (0, self.after)
        return ((self.before, self.after),)

    @property
    def listed(self) -> tuple[int, ...]:
        """The form that parameter files use: (j, k), or (j, 0, 0, k) if the value moves."""
        return tuple(value for coordinate in self.coordinates for value in coordinate)

    def check_within_a_coordinate(self, max_value: int, adjacency: Adjacency) -> None:
        """Raise unless this is a change within one coordinate of inputs 0..max_value.

        Raises:
            InvalidParameter: If it is none.
        """
        for name in ("before", "after"):
            value = whole(name, getattr(self, name), least=0)
            if value > max_value:
                raise InvalidParameter(
                    f"{name} = {shown(value)} is larger than max_value = {max_value}"
                )
        if self.moved:
            raise InvalidParameter(f"{self}: this needs a change within one coordinate")
        if self.before == self.after:
            raise InvalidParameter(
                f"({self.before}, {self.after}) is not a change within one coordinate: give "
                "two different values"
            )
        if adjacency == ZERO_OUT and self.before and self.after:
            raise InvalidParameter(
                f"{self}: under zero-out an input becomes 0, or 0 becomes an input; ask about one "
                "of these, or for --adjacency substitution"
            )

    def possible(self, *, max_value: int, dimension: int, adjacency: Adjacency) -> bool:
        """Tell whether some user can make this change."""
        if not (0 <= self.before <= max_value and 0 <= self.after <= max_value):
            return False
        if adjacency == ZERO_OUT and (self.moved or (self.before and self.after)):
            return False
        if self.moved:
            return dimension > 1 and self.before > 0 and self.after > 0
        return self.before != self.after

    def __str__(self) -> str:
        if self.moved:
            return f"the value {self.before:,} of one coordinate becomes {self.after:,} of another"
        return f"input {self.before:,} becomes {self.after:,}"


@dataclass(frozen=True)
class Repeated:
    """A change and the number of releases in which it is made.

    Attributes:
        change: The change.
        times: Number of releases.
    """

    change: Change
    times: int

    def __str__(self) -> str:
        return f"{self.change} in {self.times:,} releases" if self.times > 1 else str(self.change)


@dataclass(frozen=True)
class EveryChange(Sequence[Change]):
    """The list of all changes of one input, which are made when they are asked for.

    Under substitution first those within a coordinate, row by row, then the moves; under zero-out
    first 1..max_value becoming 0, then 0 becoming 1..max_value.

    >>> list(EveryChange(max_value=1, dimension=1))
    [Change(before=0, after=1, moved=False), Change(before=1, after=0, moved=False)]
    >>> [change.listed for change in EveryChange(2, 1, "zero-out")]
    [(1, 0), (2, 0), (0, 1), (0, 2)]
    """

    max_value: int
    dimension: int
    adjacency: Adjacency = SUBSTITUTION

    def __len__(self) -> int:
        return change_count(
            max_value=self.max_value, dimension=self.dimension, adjacency=self.adjacency
        )

    @overload
    def __getitem__(self, index: int) -> Change: ...

    @overload
    def __getitem__(self, index: slice) -> list[Change]: ...

    def __getitem__(self, index: int | slice) -> Change | list[Change]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        top, place = self.max_value, range(len(self))[index]
        if self.adjacency == ZERO_OUT:
            return Change(place + 1, 0) if place < top else Change(0, place - top + 1)
        within = top * (top + 1)
        if place < within:
            before, after = divmod(place, top)
            return Change(before, after + (after >= before))
        before, after = divmod(place - within, top)
        return Change(before + 1, after + 1, moved=True)

    def index(self, value: Change, start: int = 0, stop: int | None = None) -> int:
        """Return the place of a change in the list, without going through all of them."""
        top = self.max_value
        if self.adjacency == ZERO_OUT:
            place = value.before - 1 if value.before else top + value.after - 1
        elif value.moved:
            place = top * (top + 1) + (value.before - 1) * top + value.after - 1
        else:
            place = value.before * top + value.after - (value.after > value.before)
        possible = value.possible(max_value=top, dimension=self.dimension, adjacency=self.adjacency)
        if not possible or place not in range(len(self))[start:stop]:
            raise ValueError(f"{value} is not one of these changes")
        return place


def every_change(
    *, max_value: int, dimension: int, adjacency: Adjacency = SUBSTITUTION
) -> EveryChange:
    """List all changes of one input, in the order of ``EveryChange``."""
    return EveryChange(max_value, dimension, adjacency)


def change_count(*, max_value: int, dimension: int, adjacency: Adjacency = SUBSTITUTION) -> int:
    """Return the number of changes that ``every_change`` lists."""
    if adjacency == ZERO_OUT:
        return 2 * max_value
    return max_value * (max_value + 1) + (max_value**2 if dimension > 1 else 0)


def directions(changes: Sequence[Change], adjacency: Adjacency) -> list[list[int]]:
    """Return the indices of the changes that may follow each other in several releases.

    Under zero-out one user's inputs are all there or all absent, so either all of them become 0 or
    all of them appear (composition/releases.md, section 1); under substitution any may follow any.

    >>> directions(EveryChange(2, 1, "zero-out"), "zero-out")
    [[0, 1], [2, 3]]
    """
    if adjacency == SUBSTITUTION:
        return [list(range(len(changes)))]
    vanish = [i for i, change in enumerate(changes) if change.after == 0]
    appear = [i for i, change in enumerate(changes) if change.before == 0]
    return [found for found in (vanish, appear) if found]


def in_words(worst: Change, sequence: Sequence[Repeated]) -> str:
    """Return the sequence of changes, release after release, or the one change if there is none, in
    words."""
    return ", then ".join(map(str, sequence)) or str(worst)
