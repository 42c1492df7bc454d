"""Sources of random bits: the operating system, a seed, or a given tape for tests."""

from __future__ import annotations

import hashlib
import os
import threading
from abc import ABC, abstractmethod
from typing import Protocol
from weakref import WeakSet

from accounting.base.enclosure import counted
from accounting.base.errors import InvalidParameter

_CHUNK = 64
"""Number of bytes fetched at a time; SHA-512 returns this many."""


class BitSource(Protocol):
    """A sequence of independent fair bits.

    >>> source: BitSource = Tape("0110")
    >>> source.bits(3)
    3
    """

    def bits(self, count: int) -> int:
        """Read the next bits.

        Args:
            count: Number of bits to read, at least 0.

        Returns:
            The bits as an integer below 2^count; the first bit read is the most significant.
        """


class _Buffered(ABC):
    """A source that splits chunks of bytes into bits; it may be shared between threads."""

    def __init__(self) -> None:
        self._held, self._size = 0, 0
        self._lock = threading.Lock()

    def bits(self, count: int) -> int:
        """Read the next ``count`` bits, see ``BitSource.bits``."""
        with self._lock:
            while self._size < count:
                chunk = int.from_bytes(self._chunk(), "big")
                self._held = self._held << (8 * _CHUNK) | chunk
                self._size += 8 * _CHUNK
            self._size -= count
            found = self._held >> self._size
            self._held &= (1 << self._size) - 1
            return found

    @abstractmethod
    def _chunk(self) -> bytes:
        """The next ``_CHUNK`` bytes."""


class SystemBits(_Buffered):
    """The operating system's cryptographic generator, which every deployment must use.

    >>> 0 <= SystemBits().bits(8) < 256
    True
    """

    def __init__(self) -> None:
        super().__init__()
        _SYSTEM.add(self)

    def _chunk(self) -> bytes:
        return os.urandom(_CHUNK)

    def __reduce__(self) -> tuple[type[SystemBits], tuple[()]]:
        return SystemBits, ()  # a copy shares no bits with the original


_SYSTEM: WeakSet[SystemBits] = WeakSet()


def _forked() -> None:
    """Drop the buffered bits in a forked child, which must not repeat those of its parent."""
    for source in _SYSTEM:
        _Buffered.__init__(source)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class SeededBits(_Buffered):
    """Reproducible bits for tests and simulations; anyone who knows the seed knows the noise.

    Block i of 512 bits is the SHA-512 hash of the text ``SEED:i``, i in decimal.

    Args:
        seed: The seed; an integer is the same as its decimal text.

    >>> SeededBits(1).bits(16), SeededBits("1").bits(16)
    (9506, 9506)
    """

    def __init__(self, seed: int | str) -> None:
        super().__init__()
        self._seed, self._block = str(seed), 0

    def _chunk(self) -> bytes:
        found = hashlib.sha512(f"{self._seed}:{self._block}".encode()).digest()
        self._block += 1
        return found

    def __reduce__(self) -> tuple[type[SeededBits], tuple[str]]:
        return SeededBits, (self._seed,)  # a copy starts at the first bit again


class Tape:
    """A given, finite sequence of bits.

    Args:
        text: The bits as characters 0 and 1.

    Attributes:
        read: Number of bits read so far.

    Raises:
        InvalidParameter: If the text contains any other character.

    >>> tape = Tape("10110")
    >>> tape.bits(2), tape.bits(3), tape.read
    (2, 6, 5)
    """

    def __init__(self, text: str) -> None:
        if set(text) - {"0", "1"}:
            raise InvalidParameter(f"a tape is made of 0 and 1, not {text!r:.40}")
        self._text, self.read = text, 0

    def bits(self, count: int) -> int:
        """Read the next ``count`` bits, see ``BitSource.bits``.

        Raises:
            EndOfTape: If fewer bits are left.
        """
        if self.read + count > len(self._text):
            raise EndOfTape(
                f"the tape has only {counted(len(self._text), 'bit')}; more were needed"
            )
        found = self._text[self.read : self.read + count]
        self.read += count
        return int(found, 2) if found else 0


class EndOfTape(InvalidParameter):
    """More bits were requested than the tape has left."""
