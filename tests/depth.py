"""The depth of a run: `make test` tests a sample of the cases, and `make test-deep` tests all.

A test with a sample has the mark `sized`. A test that only `make test-deep` runs has the mark `deep`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

IS_DEEP = os.environ.get("TEST_DEPTH") == "deep"


def sized(usual: int, deep: int) -> int:
    """Return the number of cases that this run tests: `usual`, or `deep` in a deep run."""
    return deep if IS_DEEP else usual


def sample(things: Sequence[T], key: str, usual: int) -> Sequence[T]:
    """Return all cases in a deep run, otherwise `usual` cases.

    Different keys select different cases. One key selects the same cases in every run.
    """
    start = sum(map(ord, key)) % len(things)
    return things if IS_DEEP else [*things[start:], *things[:start]][:usual]
