"""Where other apps listen to identity without identity naming them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from operator import itemgetter
from typing import Any

from django.db import models
from django.dispatch import Signal

# Sent by managers that write several rows in one statement, inside the transaction: `sender` the model, `keys` its rows.
rows_changed = Signal()
# Sent after the commit that made a job: `job_id`. Whoever hears it may send a worker; without one the sweep does.
job_waits = Signal()
# Sent after a commit that left work behind: `task`, the name of a Celery task, and `arguments`, texts. It may be lost.
work_waits = Signal()
# Sent inside the transaction that sets a password: `user`, and `is_first` where there was none before.
password_changed = Signal()
# Sent inside the transaction that changes a user: `user`, and `changed`, a set of "blocked" and "email". An address that is
# set for the first time, or written in other letters, identifies no other person and is not told.
account_changed = Signal()
# Sent inside the transaction that notes an entry in the audit log: `entry`, and `row`, the row it is about or None.
audit_noted = Signal()
# Sent at the end of the outermost unit of work, inside its transaction: `result`, what it returns.
work_ends = Signal()
# Sent at the end of a `changes_together` block, inside its transaction: `changes`, what was held back, in order.
changes_released = Signal()


class _Held:
    """Changes that wait for the end of a block, each with its place."""

    def __init__(self, place: Callable[[models.Model], Any] | None) -> None:
        self.changes: list[tuple[Any, Any]] = []
        self._place = place

    def add(self, change: Any, row: models.Model) -> None:
        self.changes.append((self._place(row) if self._place else 0, change))

    def in_order(self) -> list[Any]:
        return [change for _, change in sorted(self.changes, key=itemgetter(0))]


_held: ContextVar[_Held | None] = ContextVar("held_changes", default=None)


@contextmanager
def changes_together(place: Callable[[models.Model], Any] | None = None) -> Iterator[None]:
    """Let the changes of saved and deleted rows inside the block be recorded at its end: few statements for many rows.

    They keep their order, or take the one of `place(row)`. For use inside a transaction, around rows that change once
    and that refer to nothing unrecorded that goes with them. A block within a block belongs to the outer one.
    """
    if _held.get() is not None:
        yield
        return
    held = _Held(place)
    token = _held.set(held)
    try:
        yield
    finally:
        _held.reset(token)
    changes_released.send(sender=None, changes=held.in_order())


def hold_back(change: Any, row: models.Model) -> bool:
    """Keep the change of a row for the end of the surrounding block; False when there is none, and it is to be recorded now."""
    held = _held.get()
    if held is None:
        return False
    held.add(change, row)
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


class BulkWrites:
    """The slot where the audit log looks at statements over many rows; until it is filled nobody looks."""

    def __init__(self) -> None:
        self._around: Callable[[type[models.Model], Any], AbstractContextManager[None]] | None = None

    def fill(self, around: Callable[[type[models.Model], Any], AbstractContextManager[None]]) -> None:
        """Let `around(model, rows)` surround every such statement from now on."""
        self._around = around

    def around(self, model: type[models.Model], rows: Any) -> AbstractContextManager[None]:
        """Return what surrounds a statement that writes these rows."""
        return nullcontext() if self._around is None else self._around(model, rows)


bulk_writes = BulkWrites()


_drain_checks: list[Callable[[str], bool]] = []


def before_tenant_ends(is_drained: Callable[[str], bool]) -> None:
    """Let a tenant's deletion wait until `is_drained(tenant_id)`, too, says that nothing is under way any more."""
    if is_drained not in _drain_checks:
        _drain_checks.append(is_drained)


def tenant_is_drained(tenant_id: str) -> bool:
    """Tell whether nothing of a tenant is under way to anybody."""
    return all(is_drained(tenant_id) for is_drained in _drain_checks)


class TenantLooks:
    """The slot where the looks of the pages say how a tenant shows itself in mails; without them a tenant is its id."""

    def __init__(self) -> None:
        self._read: Callable[[str, str], dict[str, str]] | None = None

    def fill(self, read: Callable[[str, str], dict[str, str]]) -> None:
        """Let `read(tenant_id, organization_id)` answer from now on."""
        self._read = read

    def of(self, tenant_id: str, organization_id: str = "") -> dict[str, str]:
        """Return `friendly_name`, `logo_url`, `primary_color`, `on_primary_color`, `support_email` and `support_url`.

        What is not set is empty. The logo and the colors are those of the organization where it has some.
        """
        return self._read(tenant_id, organization_id) if self._read else {}


tenant_looks = TenantLooks()
