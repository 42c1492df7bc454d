"""Messages as integers and as packed bits.

A message is a value of the file's alphabet; for vectors, a coordinate and such a value.  Its symbol
is ``coordinate * len(alphabet) + index in the alphabet``, sent in ``bits`` bits, highest first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from accounting.base.enclosure import counted
from accounting.base.errors import InvalidParameter
from accounting.base.validation import shown
from accounting.model.costs import bits_per_message
from paramsearch.parameters.parameter_file import ParameterFile

Message = tuple[int, int]
"""A coordinate, 0 for integers, and a value."""


@dataclass(frozen=True)
class Codec:
    """The encoding of messages.

    Args:
        alphabet: All values that a message can have.
        dimension: Number of coordinates; 1 for integers.

    >>> codec = Codec(alphabet=(-1, 1, 2), dimension=2)
    >>> codec.symbols, codec.bits
    (6, 3)
    """

    alphabet: tuple[int, ...]
    dimension: int = 1

    @staticmethod
    def of(file: ParameterFile) -> Codec:
        """The encoding that a parameter file prescribes.

        >>> from importlib import resources
        >>> from paramsearch import load
        >>> files = resources.files("paramsearch") / "data" / "files"
        >>> Codec.of(load(files / "1-1-1e-06-0.9.json"))
        Codec(alphabet=(1, -1), dimension=1)
        """
        return Codec(file.alphabet, file.dimension)

    @property
    def symbols(self) -> int:
        """Number of symbols; symbols are 0..symbols-1."""
        return self.dimension * len(self.alphabet)

    @property
    def bits(self) -> int:
        """Number of bits of one packed message."""
        return bits_per_message(self.symbols)

    @cached_property
    def _index(self) -> dict[int, int]:
        return {value: i for i, value in enumerate(self.alphabet)}

    def symbol(self, message: Message) -> int:
        """Encode one message.

        Args:
            message: A coordinate, 0 for integers, and a value.

        Returns:
            The symbol of the message.

        Raises:
            InvalidParameter: If the coordinate or the value does not exist.

        >>> Codec((-1, 1, 2), dimension=2).symbol((1, 2))
        5
        """
        coordinate, value = message
        if not 0 <= coordinate < self.dimension:
            raise InvalidParameter(
                f"coordinate {shown(coordinate)} is not one of 0..{self.dimension - 1}"
            )
        if value not in self._index:
            raise InvalidParameter(f"the value {shown(value)} is not in the alphabet of the file")
        return coordinate * len(self.alphabet) + self._index[value]

    def message(self, symbol: int) -> Message:
        """Decode one symbol.

        Args:
            symbol: One of 0..symbols-1.

        Returns:
            The coordinate, 0 for integers, and the value.

        Raises:
            InvalidParameter: If there is no such symbol.

        >>> Codec((-1, 1, 2), dimension=2).message(5)
        (1, 2)
        """
        if not 0 <= symbol < self.symbols:
            raise InvalidParameter(
                f"the symbol {shown(symbol)} is not one of 0..{self.symbols - 1}"
            )
        coordinate, index = divmod(symbol, len(self.alphabet))
        return coordinate, self.alphabet[index]

    def pack(self, symbols: Iterable[int]) -> bytes:
        """Pack symbols into bytes, ``bits`` bits each, padded with zeros at the end.

        The bytes do not say how many symbols they hold: keep the number beside them, for ``unpack``
        and for ``paramsearch analyze --packed``.

        Args:
            symbols: The symbols, in the order in which they are packed.

        Returns:
            The packed bytes.

        Raises:
            InvalidParameter: If one of them is not a symbol.

        >>> Codec((-1, 1, 2), dimension=2).pack([5, 0, 3]).hex()
        'a180'
        """
        out = bytearray()
        stream = iter(symbols)
        while group := [int(symbol) for symbol in islice(stream, 8)]:  # eight fill whole bytes
            number = 0
            for symbol in group:
                self.message(symbol)
                number = number << self.bits | symbol
            count = len(group) * self.bits
            size = -(-count // 8)
            out += (number << (8 * size - count)).to_bytes(size, "big")
        return bytes(out)

    def unpack(self, data: bytes, count: int) -> Iterator[int]:
        """Read symbols back from what ``pack`` returned.

        Args:
            data: The packed bytes.
            count: Number of symbols to read; the bytes do not say how many they hold.

        Returns:
            An iterator over the first ``count`` symbols.

        Raises:
            InvalidParameter: If the bytes are too few.

        >>> list(Codec((-1, 1, 2), dimension=2).unpack(bytes.fromhex("a180"), 3))
        [5, 0, 3]
        """
        if not 0 <= count * self.bits <= 8 * len(data):
            raise InvalidParameter(
                f"{counted(count, 'symbol')} of {counted(self.bits, 'bit')} cannot be in "
                f"{counted(len(data), 'byte')}"
            )
        for begin in range(0, count, 8):
            group = data[begin // 8 * self.bits : (begin // 8 + 1) * self.bits]
            number, size = int.from_bytes(group, "big"), 8 * len(group)
            for i in range(1, min(8, count - begin) + 1):
                yield number >> (size - i * self.bits) & ((1 << self.bits) - 1)
