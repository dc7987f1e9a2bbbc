"""Where other apps listen to identity without identity naming them."""

from __future__ import annotations

from collections.abc import Callable

from django.dispatch import Signal

# Sent by managers that write several rows in one statement, inside the transaction: `sender` the model, `keys` its rows.
rows_changed = Signal()


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
