"""Counts of many names in constant memory: a keyed count-min sketch of one time window. Pure."""

from __future__ import annotations

import hashlib
import os
import time
from array import array
from collections.abc import Callable
from threading import Lock

WIDTH = 65_536
_ROWS = 2
_CELL_BYTES = 4
_MOST = 2 ** (8 * _CELL_BYTES) - 1


class Sketch:
    """Counts per name in the present window. An estimate is never too low. A name has two cells, and its estimate is too high if other
    names share both cells.

    A random key per process keeps an attacker from choosing names that share the cells of a victim. Thread-safe. Takes 512 KiB
    for any number of names.
    """

    def __init__(self, seconds: int, *, clock: Callable[[], float] = time.time) -> None:
        self.seconds = seconds
        self._clock = clock
        self._key = os.urandom(16)
        self._lock = Lock()
        self._window = 0
        self._is_empty = True
        self._cells = self._zeros()

    @property
    def window(self) -> int:
        """The number of the current window, counted from the Unix epoch."""
        return int(self._clock()) // self.seconds

    @property
    def is_empty(self) -> bool:
        """Whether the window has no counts."""
        return self._is_empty or self.window != self._window

    def read(self, name: str) -> int:
        """Return the estimate for a name."""
        with self._lock:
            self._turn()
            # In a window without counts, the digest of the name need not be computed.
            return 0 if self._is_empty else self._estimate(self._places(name))

    def add(self, name: str, amount: int = 1) -> int:
        """Add `amount` to the count of a name and return its new estimate."""
        with self._lock:
            self._turn()
            places = self._places(name)
            return self._raise(places, self._estimate(places) + amount)

    def raise_to(self, name: str, count: int) -> int:
        """Adopt a higher count that another process reported; return the estimate."""
        with self._lock:
            self._turn()
            return self._raise(self._places(name), count)

    def clear(self) -> None:
        """Forget every count."""
        with self._lock:
            self._cells, self._is_empty = self._zeros(), True

    def _turn(self) -> None:
        window = int(self._clock()) // self.seconds
        if window != self._window:
            self._window = window
            if not self._is_empty:
                self._cells, self._is_empty = self._zeros(), True

    def _raise(self, places: tuple[int, int], count: int) -> int:
        # Conservative update: raise only cells that are below the new count, so that cells shared with other names grow less.
        count, self._is_empty = min(count, _MOST), False
        for place in places:
            self._cells[place] = max(self._cells[place], count)
        return self._estimate(places)

    def _estimate(self, places: tuple[int, int]) -> int:
        return min(self._cells[places[0]], self._cells[places[1]])

    def _places(self, name: str) -> tuple[int, int]:
        digest = hashlib.blake2b(name.encode("utf-8", "replace"), key=self._key, digest_size=8).digest()
        return int.from_bytes(digest[:4], "big") % WIDTH, WIDTH + int.from_bytes(digest[4:], "big") % WIDTH

    @staticmethod
    def _zeros() -> array[int]:
        return array("I", bytes(_CELL_BYTES * WIDTH * _ROWS))
