"""Messages as numbers and as bits.

A message is a value of the file's alphabet; for vectors, a coordinate and such a value.  Its symbol
is ``coordinate * len(alphabet) + index in the alphabet``, sent in ``bits`` bits, highest first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from accounting.base.errors import InvalidParameter
from accounting.model.costs import bits_per_message
from paramsearch.parameters.parameter_file import ParameterFile

Message = tuple[int, int]
"""A coordinate, 0 for integers, and a value."""


@dataclass(frozen=True)
class Codec:
    """The encoding of one parameter file."""

    alphabet: tuple[int, ...]
    dimension: int = 1

    @staticmethod
    def of(file: ParameterFile) -> Codec:
        return Codec(file.alphabet, file.dimension)

    @property
    def symbols(self) -> int:
        """How many there are; they are the numbers below."""
        return self.dimension * len(self.alphabet)

    @property
    def bits(self) -> int:
        return bits_per_message(self.symbols)

    @cached_property
    def _index(self) -> dict[int, int]:
        return {value: i for i, value in enumerate(self.alphabet)}

    def symbol(self, message: Message) -> int:
        coordinate, value = message
        if not 0 <= coordinate < self.dimension:
            raise InvalidParameter(f"coordinate {coordinate} is not one of 0..{self.dimension - 1}")
        if value not in self._index:
            raise InvalidParameter(f"the value {value} is not in the alphabet of the file")
        return coordinate * len(self.alphabet) + self._index[value]

    def message(self, symbol: int) -> Message:
        if not 0 <= symbol < self.symbols:
            raise InvalidParameter(f"the symbol {symbol} is not one of 0..{self.symbols - 1}")
        coordinate, index = divmod(symbol, len(self.alphabet))
        return coordinate, self.alphabet[index]

    def pack(self, symbols: Iterable[int]) -> bytes:
        """Symbols one after the other, filled up with zeros to whole bytes."""
        out = bytearray()
        stream = iter(symbols)
        while group := [int(symbol) for symbol in islice(stream, 8)]:  # eight are whole bytes
            number = 0
            for symbol in group:
                self.message(symbol)
                number = number << self.bits | symbol
            count = len(group) * self.bits
            size = -(-count // 8)
            out += (number << (8 * size - count)).to_bytes(size, "big")
        return bytes(out)

    def unpack(self, data: bytes, count: int) -> Iterator[int]:
        """The first ``count`` symbols of what ``pack`` made."""
        if not 0 <= count * self.bits <= 8 * len(data):
            raise InvalidParameter(
                f"{count} symbols of {self.bits} bits do not fit into {len(data)} bytes"
            )
        for begin in range(0, count, 8):
            group = data[begin // 8 * self.bits : (begin // 8 + 1) * self.bits]
            number, size = int.from_bytes(group, "big"), 8 * len(group)
            for i in range(1, min(8, count - begin) + 1):
                yield number >> (size - i * self.bits) & ((1 << self.bits) - 1)
