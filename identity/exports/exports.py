"""Exports of users. The file of a job grows by one page per transaction; a command reads row by row. No user is locked.

The cursor of the stream is read before the first page, so a stream from this cursor continues the export without a gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db import DEFAULT_DB_ALIAS, DatabaseError, transaction
from django.db.models import Prefetch, QuerySet

from foundation.database.replica import alias_that_contains, current_position, give_up, has_replica
from foundation.export_lines import Field, heading_of, line_of, record_of
from foundation.gzip_stream import HEADER, Checksum, end, piece
from foundation.hooks import snapshot_cursor
from identity.documents import user_document
from identity.exports.export_fields import DEFAULT_CSV_FIELDS
from identity.models import Connection, Job, JobChunk, LinkedIdentity, User
from identity.services.failures import NotFound
from identity.services.jobs import send_after_commit, step_of
from identity.services.saving import validated_save

PAGE_ROWS = 500
CSV = "csv"
JSON = "json"


def export_cursor(tenant_id: str) -> str:
    """Return the cursor from which the stream continues a snapshot that starts now; empty if no app provides cursors."""
    return snapshot_cursor.of(tenant_id)


def exported_users(*, tenant_id: str, connection_id: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield the documents of all users, oldest first, in pages of constant cost.

    A user that changes meanwhile may appear in its old or new state. A stream from a cursor that was read before the export delivers the
    change.
    """
    users = _users(tenant_id, connection_id)
    last, position = 0, current_position()[0] if has_replica() else ""
    while page := page_of(users.filter(pk__gt=last)[:PAGE_ROWS], position=position):
        yield from map(_document, page)
        last = page[-1].pk


def user_count(*, tenant_id: str, connection_id: str | None = None) -> int:
    """Return the number of users that an export would contain now."""
    return _users(tenant_id, connection_id).count()


@transaction.atomic
def start_export(
    *,
    tenant_id: str,
    connection_id: str | None = None,
    form: str = JSON,
    limit: int | None = None,
    fields: Sequence[Mapping[str, str]] = (),
) -> Job:
    """Return a pending job that exports all users, or those of one connection. Raises `NotFound`. Expects checked fields."""
    connection = Connection.objects.of(tenant_id).filter(pk=connection_id).first() if connection_id else None
    if connection_id and connection is None:
        raise NotFound("The connection does not exist.")
    parameters = {"format": form, "limit": limit, "fields": list(fields) or None, "of_connection": connection_id}
    job = Job(
        tenant_id=tenant_id,
        type=Job.Type.USERS_EXPORT,
        connection=connection,
        parameters={name: value for name, value in parameters.items() if value is not None},
        events_cursor=export_cursor(tenant_id),
    )
    validated_save(job)
    send_after_commit(job)
    return job


@step_of(Job.Type.USERS_EXPORT)
def export_next_page(job: Job) -> bool:
    """Add the next page of users to the file of a job whose row is locked. Returns False after the last page, with the file complete.

    1. In the first call, count the users for the progress and begin the file.
    2. Read the page after the last key, at most up to the limit.
    3. Store the page as a piece of the file, with progress and checksum, in one transaction.
    """
    if job.connection_id is None and job.parameters.get("of_connection"):
        raise NotFound("The connection does not exist.")
    users = _users(job.tenant_id, job.connection_id)
    limit = job.parameters.get("limit")
    if not job.summary:
        total = users.count()
        job.summary = {"total": total if limit is None else min(total, limit)}
        job.summary |= dict.fromkeys(("exported", "last_key", "crc", "size", "pieces"), 0)
        # The cursor was read before this position of the write-ahead log. If a replica has replayed the log up to this position, a page
        # that is read there contains every change before the cursor.
        job.summary["position"] = current_position()[0] if has_replica() else ""
        _append(job, heading_of(_fields(job)) if job.parameters["format"] == CSV else "", first=HEADER)
    done = job.summary["exported"]
    wanted = PAGE_ROWS if limit is None else min(PAGE_ROWS, limit - done)
    page = page_of(users.filter(pk__gt=job.summary["last_key"])[:wanted], position=job.summary.get("position", ""))
    write = _writer(job)
    _append(job, "".join(write(_document(user)) for user in page))
    job.summary |= {"exported": done + len(page), "last_key": page[-1].pk if page else job.summary["last_key"]}
    if len(page) == PAGE_ROWS and done + len(page) != limit:
        return True
    _store(job, end(Checksum(job.summary["crc"], job.summary["size"])))
    # The initial count is only an estimate, because users may be created or deleted meanwhile.
    job.summary["total"] = job.summary["exported"]
    return False


def page_of(users: QuerySet[User], *, position: str) -> list[User]:
    """Read a page on the replica if it contains everything up to this position; otherwise on the primary."""
    alias = alias_that_contains(position)
    try:
        return list(users.using(alias))
    except DatabaseError as error:
        if alias == DEFAULT_DB_ALIAS:
            raise
        give_up(error)
        return list(users.using(DEFAULT_DB_ALIAS))


def _users(tenant_id: str, connection_id: str | None) -> QuerySet[User]:
    linked = Prefetch("linked_identities", LinkedIdentity.objects.of(tenant_id).select_related("connection").order_by("pk"))
    users = User.objects.of(tenant_id).select_related("connection").prefetch_related(linked).order_by("pk")
    return users if connection_id is None else users.filter(connection_id=connection_id)


def _document(user: User) -> dict[str, Any]:
    return user_document(user, list(user.linked_identities.all()))


def _fields(job: Job) -> list[Field]:
    asked = job.parameters.get("fields")
    if asked:
        return [Field(item["name"], item.get("export_as") or item["name"]) for item in asked]
    return [Field(name, name) for name in DEFAULT_CSV_FIELDS] if job.parameters["format"] == CSV else []


def _writer(job: Job) -> Any:
    return (record_of if job.parameters["format"] == CSV else line_of)(_fields(job))


def _append(job: Job, text: str, *, first: bytes = b"") -> None:
    content = text.encode()
    checksum = Checksum(job.summary["crc"], job.summary["size"]).after(content)
    job.summary |= {"crc": checksum.crc, "size": checksum.size}
    _store(job, first + piece(content) if content else first)


def _store(job: Job, content: bytes) -> None:
    if content:
        JobChunk.objects.create(job=job, number=job.summary["pieces"], content=content, is_done=True)
        job.summary["pieces"] += 1
