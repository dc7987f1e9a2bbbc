"""Hooks through which other apps react to changes in `identity`. `identity` does not import these apps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from operator import itemgetter
from typing import Any

from django.db import models
from django.dispatch import Signal

# Managers that write several rows in one statement send this signal, inside the transaction. `sender` is the model, `keys` are the keys of
# the rows.
rows_changed = Signal()
# Sent when a query set is deleted, inside the transaction and before its rows are deleted. `sender` is the model, `rows` are the rows.
# A receiver can prepare the deletion of many rows with few statements; Django's `pre_delete` is sent for each row afterwards.
rows_leave = Signal()
# Sent with `job_id` after the commit that created the job. A receiver can notify a worker; otherwise the sweep finds the job.
job_waits = Signal()
# Sent after a commit that leaves work, with `task` (the name of a Celery task) and `arguments` (texts). Receivers may lose the task.
work_waits = Signal()
# Sent inside the transaction that sets a password, with `user` and `is_first` (whether the user had no password before).
password_changed = Signal()
# Sent inside the transaction that changes a user, with `user` and `changed` (a set that can contain "blocked" and "email"). A first
# address, and an address that differs from the former address only in case, are not in `changed`: the person is still the same.
# `former_email` is the address that receives a mail about the change. It is empty if the address did not change, and in an import.
account_changed = Signal()
# Sent inside the transaction that adds an entry to the audit log, with `entry` and `row` (the changed row or None).
audit_noted = Signal()
# Sent at the end of the outermost unit of work, inside its transaction, with `result` (the return value of the unit of work).
work_ends = Signal()
# Sent at the end of a `changes_together` block, inside its transaction, with `changes` (the collected changes in order).
changes_released = Signal()


class _Held:
    """Changes that wait for the end of a block, each with its sort key."""

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
    """Collect the changes of rows that the block saves and deletes, and record them at the end of the block in few statements.

    With `place`, the changes are sorted by `place(row)`; otherwise they keep their order. Use the block inside a transaction. Each row may
    change only once in the block. If the block deletes a row without recording the deletion, no other row may refer to that row. A nested
    block is part of the outer block.
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
    """Keep the change of a row until the end of the surrounding `changes_together` block.

    Return False if there is no such block: then the caller must record the change now.
    """
    held = _held.get()
    if held is None:
        return False
    held.add(change, row)
    return True


class SnapshotCursor:
    """Holds the function that returns the cursor at the head of a tenant's log. Without a function the cursor is an empty string."""

    def __init__(self) -> None:
        self._read: Callable[[str], str] | None = None

    def fill(self, read: Callable[[str], str]) -> None:
        """Register `read(tenant_id)`, which returns the cursor."""
        self._read = read

    def of(self, tenant_id: str) -> str:
        """Return the cursor at the tenant's present head."""
        return self._read(tenant_id) if self._read else ""


snapshot_cursor = SnapshotCursor()


class BulkWrites:
    """Holds the function with which the audit log observes statements that write many rows. Without a function nothing is observed."""

    def __init__(self) -> None:
        self._around: Callable[[type[models.Model], Any], AbstractContextManager[None]] | None = None

    def fill(self, around: Callable[[type[models.Model], Any], AbstractContextManager[None]]) -> None:
        """Register `around(model, rows)`, which returns a context manager. Every later statement that writes many rows runs inside it."""
        self._around = around

    def around(self, model: type[models.Model], rows: Any) -> AbstractContextManager[None]:
        """Return the context manager inside which the caller runs a statement that writes these rows."""
        return nullcontext() if self._around is None else self._around(model, rows)


bulk_writes = BulkWrites()


_drain_checks: list[Callable[[str], bool]] = []


def before_tenant_ends(is_drained: Callable[[str], bool]) -> None:
    """Delay a tenant's deletion until `is_drained(tenant_id)` also returns True."""
    if is_drained not in _drain_checks:
        _drain_checks.append(is_drained)


def tenant_is_drained(tenant_id: str) -> bool:
    """Tell whether no registered app has unfinished work of the tenant."""
    return all(is_drained(tenant_id) for is_drained in _drain_checks)


class TenantLooks:
    """Holds the function that returns the branding of a tenant for mails. Without a function a tenant has no branding."""

    def __init__(self) -> None:
        self._read: Callable[[str, str], dict[str, str]] | None = None

    def fill(self, read: Callable[[str, str], dict[str, str]]) -> None:
        """Register `read(tenant_id, organization_id)`, which returns the branding."""
        self._read = read

    def of(self, tenant_id: str, organization_id: str = "") -> dict[str, str]:
        """Return `friendly_name`, `logo_url`, `primary_color`, `on_primary_color`, `support_email` and `support_url`.

        Unset values are empty. The logo and the colors are those of the organization if it has them.
        """
        return self._read(tenant_id, organization_id) if self._read else {}


tenant_looks = TenantLooks()

# Sent inside the transaction that changes the second factors or passkeys of a user, with `user`, `removed` (a set of kinds) and
# `is_by_user` (whether the user made the change).
factors_changed = Signal()
