"""Numbers of things in sentences."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return the number with its noun: `1 user`, `2 users`."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
