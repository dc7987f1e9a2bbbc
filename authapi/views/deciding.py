"""Marks failures of a fast path that has already changed something: the failure is the answer, because the plain path must not run the
request again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Decided(Exception):
    """A fast path fails after it has changed something, so the plain path must not run the request again. `error` is the original error."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@contextmanager
def deciding() -> Iterator[None]:
    """Raise errors inside the `with` block as `Decided`, because something was already changed."""
    try:
        yield
    except Exception as error:
        raise Decided(error) from error
