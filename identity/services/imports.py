"""Import users as a job: rows are cut into chunks, and a repeated run goes on after the last one that was imported.

Other writers of the tenant wait for at most one chunk's rows; new users are inserted and recorded together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from django.db import IntegrityError, models, transaction
from django.db.models.functions import Lower

from identity.ids import new_hex_id
from identity.import_rows import RowProblem, row_problems, shown_row
from identity.models import Connection, Job, JobChunk, JobError, PasswordCredential, User
from identity.services.failures import NotFound, NotSupported
from identity.services.jobs import step_of, unfinished
from identity.services.saving import validated_save
from identity.services.users import new_user, user_id_of
from identity.transactions import lock_rows, unit_of_work

CHUNK_ROWS = 500
RUNNING_LIMIT = 2
_COUNTS = ("total", "inserted", "updated", "failed")
_MATCHED_BY = ("user_id", "email", "username", "phone_number")


class TooManyImports(NotSupported):
    """Two imports of this tenant are running; wait for one to end."""


@unit_of_work
def start_import(*, tenant_id: str, connection_id: str, rows: Iterable[Any], upsert: bool = False, external_id: str = "") -> Job:
    """Store the rows of an import and return its pending job; raise `NotFound` or `TooManyImports`."""
    connection = Connection.objects.of(tenant_id).filter(pk=connection_id).first()
    if connection is None:
        raise NotFound("The connection does not exist.")
    if unfinished(tenant_id, Job.Type.USERS_IMPORT).count() >= RUNNING_LIMIT:
        raise TooManyImports
    job = Job(
        tenant_id=tenant_id,
        type=Job.Type.USERS_IMPORT,
        connection=connection,
        parameters={"upsert": upsert, "external_id": external_id},
        summary=dict.fromkeys(_COUNTS, 0),
    )
    validated_save(job)
    total = 0
    for number, chunk in enumerate(_chunks(rows)):
        JobChunk.objects.create(job=job, number=number, rows=chunk)
        total += len(chunk)
    job.summary["total"] = total
    job.save(update_fields=["summary", "updated_at"])
    return job


@step_of(Job.Type.USERS_IMPORT)
def import_next_chunk(job: Job) -> bool:
    """Import the next open chunk of a job whose row is locked, and count it; return False when none is left."""
    chunk = job.chunks.filter(is_done=False).first()
    if chunk is None:
        return False
    counts = _import_rows(job, _connection_of(job), chunk)
    job.summary = {name: job.summary.get(name, 0) + counts[name] for name in _COUNTS}
    chunk.is_done = True
    chunk.rows = []
    chunk.save()
    return True


def _connection_of(job: Job) -> Connection:
    if job.connection is None:
        raise NotFound("The connection does not exist.")
    return job.connection


def _chunks(rows: Iterable[Any]) -> Iterator[list[Any]]:
    iterator = iter(rows)
    while chunk := list(islice(iterator, CHUNK_ROWS)):
        yield chunk


def _import_rows(job: Job, connection: Connection, chunk: JobChunk) -> Counter[str]:
    first = chunk.number * CHUNK_ROWS
    counts: Counter[str] = Counter()
    good: list[tuple[int, dict[str, Any]]] = []
    seen: set[tuple[str, str]] = set()
    for number, row in enumerate(chunk.rows, start=first):
        problems = row_problems(row)
        keys = set() if problems else set(_keys(connection, row))
        if keys & seen:
            problems = [RowProblem("DUPLICATED_USER", "An earlier row of the file is the same user.")]
        if problems:
            _fail(job, number, row, problems, counts)
        else:
            seen |= keys
            good.append((number, row))
    try:
        with transaction.atomic():
            return counts + _write_rows(job, connection, good)
    except IntegrityError:
        # Somebody took a name meanwhile, or two rows of the file want the same: find out which, row by row.
        for number, row in good:
            try:
                with transaction.atomic():
                    counts += _write_rows(job, connection, [(number, row)])
            except IntegrityError:
                _fail(job, number, row, [RowProblem("DUPLICATED_USER", "Another user has this id, address, name or number.")], counts)
    return counts


def _write_rows(job: Job, connection: Connection, rows: list[tuple[int, dict[str, Any]]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    existing = _matches(connection, [row for _, row in rows])
    new: list[User] = []
    hashes: list[str | None] = []
    for number, row in rows:
        user = next((existing[key] for key in _keys(connection, row) if key in existing), None)
        if user is None:
            new.append(_user(connection, row))
            hashes.append(row.get("password_hash"))
        elif job.parameters.get("upsert"):
            _update(user, row)
            counts["updated"] += 1
        else:
            _fail(job, number, row, [RowProblem("CONFLICT", "The user exists, and the import does not update.")], counts)
    User.objects.of(job.tenant_id).bulk_create(new)
    stored = [PasswordCredential(user=user, password_hash=f"bcrypt${value}") for user, value in zip(new, hashes, strict=True) if value]
    PasswordCredential.objects.bulk_create(stored)
    counts["inserted"] += len(new)
    return counts


def _keys(connection: Connection, row: dict[str, Any]) -> list[tuple[str, str]]:
    """Return by what a row matches an existing user, the strongest first."""
    found = {**row, "user_id": user_id_of(connection, row["user_id"]) if row.get("user_id") else None}
    return [(name, found[name] if name == "user_id" else found[name].lower()) for name in _MATCHED_BY if found.get(name)]


def _matches(connection: Connection, rows: list[dict[str, Any]]) -> dict[tuple[str, str], User]:
    """Return the users of the connection that rows may mean, their rows locked, by what they match."""
    wanted: dict[str, list[str]] = {name: [] for name in _MATCHED_BY}
    for row in rows:
        for name, value in _keys(connection, row):
            wanted[name].append(value)
    users = User.objects.of(connection.tenant_id).annotate(email_key=Lower("email"), username_key=Lower("username"))
    by_address = models.Q(email_key__in=wanted["email"]) | models.Q(username_key__in=wanted["username"])
    of_connection = models.Q(connection=connection) & (by_address | models.Q(phone_number__in=wanted["phone_number"]))
    found = list(users.filter(models.Q(user_id__in=wanted["user_id"]) | of_connection).values_list("pk", flat=True))
    lock_rows(User, found)
    matches: dict[tuple[str, str], User] = {}
    for user in User.objects.of(connection.tenant_id).select_related("connection").filter(pk__in=found):
        for name in _MATCHED_BY:
            shown: str | None = getattr(user, name)
            if shown:
                matches[(name, shown if name == "user_id" else shown.lower())] = user
    return matches


def _user(connection: Connection, row: dict[str, Any]) -> User:
    profile = {name: value for name, value in row.items() if name not in ("user_id", "password_hash")}
    return new_user(connection, row.get("user_id") or new_hex_id(), profile)


def _update(user: User, row: dict[str, Any]) -> None:
    """Overwrite the profile, metadata as a whole; passwords of existing users stay."""
    changes = {name: value for name, value in row.items() if name not in ("user_id", "password_hash")}
    if "email" in changes and changes["email"] != user.email:
        changes.setdefault("email_verified", False)
    for name, value in changes.items():
        setattr(user, name, value)
    user.save(update_fields=[*changes, "updated_at"])


def _fail(job: Job, number: int, row: Any, problems: list[RowProblem], counts: Counter[str]) -> None:
    JobError.objects.create(job=job, row_number=number, user=shown_row(row), errors=[problem.as_json() for problem in problems])
    counts["failed"] += 1
