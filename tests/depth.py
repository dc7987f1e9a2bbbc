"""The depth of a run: `make test` takes a sample where `make test-deep` takes everything.

A test that takes a sample has the mark `sized`, and one that only `make test-deep` runs has the mark `deep`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

IS_DEEP = os.environ.get("TEST_DEPTH") == "deep"


def sized(usual: int, deep: int) -> int:
    """Return the number of cases that this run takes."""
    return deep if IS_DEEP else usual


def sample(things: Sequence[T], key: str, usual: int) -> Sequence[T]:
    """Return all cases, or `usual` of them: different ones for each `key`, and the same in every run."""
    start = sum(map(ord, key)) % len(things)
    return things if IS_DEEP else [*things[start:], *things[:start]][:usual]
