"""Where a fast path has changed something, what fails is the answer: the endpoint must not begin anew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Decided(Exception):
    """A fast path fails after it has changed something: the endpoint must not begin anew. `error` is what that would have raised."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@contextmanager
def deciding() -> Iterator[None]:
    """Have a failure from here on be the answer: something was changed."""
    try:
        yield
    except Exception as error:
        raise Decided(error) from error
