"""Where random bits come from: the operating system, a seed, or a tape for tests."""

from __future__ import annotations

import hashlib
import os
import threading
from abc import ABC, abstractmethod
from typing import Protocol
from weakref import WeakSet

from accounting.base.errors import InvalidParameter

_CHUNK = 64
"""Bytes that are fetched at once."""


class BitSource(Protocol):
    """Independent fair bits, in order."""

    def bits(self, count: int) -> int:
        """The next ``count`` bits as a number, the first one highest."""


class _Buffered(ABC):
    """Bits from chunks of bytes; threads may share it."""

    def __init__(self) -> None:
        self._held, self._size = 0, 0
        self._lock = threading.Lock()

    def bits(self, count: int) -> int:
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
        """The next bytes."""


class SystemBits(_Buffered):
    """The operating system's cryptographic generator; what a deployment uses."""

    def __init__(self) -> None:
        super().__init__()
        _SYSTEM.add(self)

    def _chunk(self) -> bytes:
        return os.urandom(_CHUNK)

    def __reduce__(self) -> tuple[type[SystemBits], tuple[()]]:
        return SystemBits, ()  # a copy has no bits in common with this one


_SYSTEM: WeakSet[SystemBits] = WeakSet()


def _forked() -> None:
    """A child must not repeat the bits that its parent holds."""
    for source in _SYSTEM:
        _Buffered.__init__(source)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class SeededBits(_Buffered):
    """For tests and simulations: block i is SHA-512 of the seed, a colon and i, in decimal."""

    def __init__(self, seed: int | str) -> None:
        super().__init__()
        self._seed, self._block = str(seed), 0

    def _chunk(self) -> bytes:
        found = hashlib.sha512(f"{self._seed}:{self._block}".encode()).digest()
        self._block += 1
        return found

    def __reduce__(self) -> tuple[type[SeededBits], tuple[str]]:
        return SeededBits, (self._seed,)  # a copy begins anew


class Tape:
    """Given bits, and no more: reading past the end is an error."""

    def __init__(self, text: str) -> None:
        if set(text) - {"0", "1"}:
            raise InvalidParameter(f"a tape is made of 0 and 1, not {text!r:.40}")
        self._text, self.read = text, 0

    def bits(self, count: int) -> int:
        if self.read + count > len(self._text):
            raise EndOfTape(f"the tape has {len(self._text)} bits, more were needed")
        found = self._text[self.read : self.read + count]
        self.read += count
        return int(found, 2) if found else 0


class EndOfTape(InvalidParameter):
    """More bits were asked for than there are."""
