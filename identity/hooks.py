"""Where other apps listen to identity without identity naming them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.dispatch import Signal

# Sent by managers that write several rows in one statement, inside the transaction: `sender` the model, `keys` its rows.
rows_changed = Signal()
# Sent after the commit that made a job: `job_id`. Whoever hears it may send a worker; without one the sweep does.
job_waits = Signal()
# Sent at the end of a `changes_together` block, inside its transaction: `changes`, what was held back, in order.
changes_released = Signal()

_held: ContextVar[list[Hashable] | None] = ContextVar("held_changes", default=None)


@contextmanager
def changes_together() -> Iterator[None]:
    """Let the changes of saved and deleted rows inside the block be recorded at its end: one statement for many rows of a kind.

    Their order stays. For use inside a transaction, around rows that change once.
    """
    if _held.get() is not None:
        yield
        return
    changes: list[Hashable] = []
    token = _held.set(changes)
    try:
        yield
    finally:
        _held.reset(token)
    changes_released.send(sender=None, changes=changes)


def hold_back(change: Hashable) -> bool:
    """Keep a change for the end of the surrounding block; False when there is none, and it is to be recorded now."""
    changes = _held.get()
    if changes is None:
        return False
    changes.append(change)
    return True


class SnapshotCursor:
    """The slot where the event stream says where it stands; empty text until it is filled."""

    def __init__(self) -> None:
        self._read: Callable[[str], str] | None = None

    def fill(self, read: Callable[[str], str]) -> None:
        """Let `read(tenant_id)` answer from now on."""
        self._read = read

    def of(self, tenant_id: str) -> str:
        """Return the cursor at the tenant's present head."""
        return self._read(tenant_id) if self._read else ""


snapshot_cursor = SnapshotCursor()
