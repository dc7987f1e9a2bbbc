"""Where other apps say what they still need of a log, without events naming them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, order=True)
class Hold:
    """Somebody who still needs every event after `position`; one that yields would be served with copies by `make_way`."""

    position: int
    holder: str
    does_yield: bool = False


class LogFollower(Protocol):
    """An app that reads logs by a position of its own."""

    def make_way(self, tenant_id: str, *, through: int) -> None:
        """Copy what rests and needs events at or below `through`; called before they are pruned, outside any transaction."""

    def holds(self, tenant_id: str, *, through: int) -> Sequence[Hold]:
        """Return who still needs events at or below `through`.

        The answer must stay true while these are pruned: whoever comes later needs nothing below the lowest hold.
        """

    def beyond(self, tenant_id: str, *, head: int) -> Sequence[str]:
        """Say, one sentence each, what `step_back` would change."""

    def step_back(self, tenant_id: str, *, head: int) -> None:
        """Forget everything beyond the head, in the caller's transaction: the database went back in time."""


_followers: list[LogFollower] = []


def follow_logs(follower: LogFollower) -> None:
    """Ask this follower from now on."""
    if follower not in _followers:
        _followers.append(follower)


def followers() -> Sequence[LogFollower]:
    """Return who follows logs."""
    return tuple(_followers)
