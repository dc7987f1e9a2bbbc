"""A registry of other apps that still need entries of a log. The apps register themselves, because `events` does not import them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, order=True)
class Hold:
    """A consumer that still needs every event after `position`.

    With `does_yield`, `make_way` ends the hold: it copies the events that the consumer needs. A dry run does not call `make_way`, and
    ignores such a hold.
    """

    position: int
    holder: str
    does_yield: bool = False


class LogFollower(Protocol):
    """An app that reads logs from its own positions."""

    def make_way(self, tenant_id: str, *, through: int) -> None:
        """Copy the events that waiting work needs, up to and including the position `through`.

        The log calls this function before it prunes these events, outside any transaction.
        """

    def holds(self, tenant_id: str, *, through: int) -> Sequence[Hold]:
        """Return the holds on events at or below `through`.

        The holds must stay valid while events are pruned. A consumer that starts during the pruning must start after the pruned events.
        """

    def beyond(self, tenant_id: str, *, head: int) -> Sequence[str]:
        """Return one sentence for each effect that `step_back` would have. An operator reads the sentences before confirming."""

    def step_back(self, tenant_id: str, *, head: int) -> None:
        """Discard all state beyond the head, in the caller's transaction, after the database was restored to an earlier state."""


_followers: list[LogFollower] = []


def follow_logs(follower: LogFollower) -> None:
    """Register this follower."""
    if follower not in _followers:
        _followers.append(follower)


def followers() -> Sequence[LogFollower]:
    """Return the registered followers."""
    return tuple(_followers)
