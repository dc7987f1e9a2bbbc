"""Import users as a job: rows are cut into chunks, and a repeated run continues after the last imported chunk.

Other writers of the tenant wait for the rows of at most one chunk. New users are inserted and recorded together.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from foundation.database.transactions import lock_name, lock_names
from foundation.ids import new_hex_id
from identity.imports.import_matches import keys_of, linked_rows, matches_of
from identity.imports.import_rows import RowProblem, profile_of, row_problems, shown_row, stored_password
from identity.mail.sending import send_mail
from identity.messages.once import send_once
from identity.models import Connection, EnrolledFactor, Job, JobChunk, JobError, JobUser, PasswordCredential, Staff, User
from identity.options.connection_options import takes_username
from identity.services import chunks
from identity.services.deletions import refuse_if_being_deleted
from identity.services.failures import NotFound, NotSupported
from identity.services.jobs import Pause, effect_of, send_after_commit, step_of, unfinished
from identity.services.saving import validated_save
from identity.services.users import new_user, standing_of, tell_account_change

logger = logging.getLogger(__name__)

CHUNK_ROWS = 500
# A chunk of long rows has fewer rows.
_CHUNK_CHARACTERS = 1024 * 1024
_COUNTS = ("total", "inserted", "updated", "failed")
_CONFLICTS = {"identity_user_email_unique": "CONFLICT_EMAIL", "identity_user_username_unique": "CONFLICT_USERNAME"}
# Errors of rows whose user cannot be inserted or updated.
_TAKEN = RowProblem("DUPLICATED_USER", "Another user has this id, email address, username or phone number.")
_TWICE = RowProblem("DUPLICATED_USER", "An earlier row of the file is the same user.")
_LINKED = RowProblem("CONFLICT", "The id belongs to an identity that is linked to another user.", "user_id")
_ELSEWHERE = RowProblem("CONFLICT", "The id belongs to a user of another connection.", "user_id")
_EXISTS = RowProblem("CONFLICT", "The user exists, and the import does not update.")
_TOO_LARGE = RowProblem("MAX_LENGTH", "The profile is too large for an event.")

NumberedRow = tuple[int, dict[str, Any]]


class TooManyImports(NotSupported):
    """The tenant has the maximum number of running imports. Wait for one to end."""


class NoDatabaseConnection(NotSupported):
    """Only database connections support imports of users."""


@transaction.atomic
def start_import(
    *,
    tenant_id: str,
    connection_id: str,
    rows: Iterable[Any],
    upsert: bool = False,
    external_id: str = "",
    send_completion_email: bool = False,
) -> Job:
    """Store the rows of an import and return its pending job. An error that `rows` raises rolls everything back.

    Raises `NotFound`, `NoDatabaseConnection` or `TooManyImports` before it reads a row. Unlike other services, this service is not repeated
    after a deadlock, because the rows can be read only once.
    """
    connection = Connection.objects.of(tenant_id).filter(pk=connection_id).first()
    if connection is None:
        raise NotFound("The connection does not exist.")
    refuse_if_being_deleted(connection)
    if not connection.is_database:
        raise NoDatabaseConnection
    # Without the lock, neither of two imports that start at the same time would count the other.
    lock_name(f"imports:{tenant_id}")
    if unfinished(tenant_id, Job.Type.USERS_IMPORT).count() >= settings.IMPORTS_PER_TENANT:
        raise TooManyImports
    job = Job(
        tenant_id=tenant_id,
        type=Job.Type.USERS_IMPORT,
        connection=connection,
        parameters={"upsert": upsert, "external_id": external_id, "send_completion_email": send_completion_email},
        summary=dict.fromkeys(_COUNTS, 0),
    )
    validated_save(job)
    job.summary["total"] = chunks.store_rows(job, rows, most_rows=CHUNK_ROWS, most_characters=_CHUNK_CHARACTERS)
    job.save(update_fields=["summary", "updated_at"])
    send_after_commit(job)
    return job


@step_of(Job.Type.USERS_IMPORT)
def import_next_chunk(job: Job) -> bool:
    """Import the next open chunk of a job whose row is locked, and count its rows. Returns False if no chunk is left."""
    chunk = job.chunks.filter(is_done=False).first()
    if chunk is None:
        JobUser.objects.filter(job=job).delete()
        job.has_effect_due = bool(job.parameters.get("send_completion_email"))
        return False
    if job.connection is None:
        raise NotFound("The connection does not exist.")
    refuse_if_being_deleted(job.connection)
    counts = _import_chunk(job, job.connection, chunk)
    job.summary = {name: job.summary.get(name, 0) + counts[name] for name in _COUNTS}
    chunks.clear(chunk)
    return True


def _import_chunk(job: Job, connection: Connection, chunk: JobChunk) -> Counter[str]:
    counts: Counter[str] = Counter()
    good = _good_rows(job, connection, chunk, counts)
    try:
        with transaction.atomic():
            return counts + _write_rows(job, connection, good)
    except (IntegrityError, ValueError):
        # A value that must be unique belongs to another user or to two rows of the chunk, or an event would be too large. Write the rows
        # one by one to find the row that fails.
        for number, row in good:
            try:
                with transaction.atomic():
                    counts += _write_rows(job, connection, [(number, row)])
            except IntegrityError as error:
                constraint = getattr(getattr(error.__cause__, "diag", None), "constraint_name", None) or ""
                _fail(job, number, row, [RowProblem(_CONFLICTS.get(constraint, _TAKEN.code), _TAKEN.message)], counts)
            except ValueError as error:
                # The recorder raises a subclass of ValueError for an event that is too large. This code cannot name the subclass, because
                # this app must not import the app of the recorder.
                logger.warning("job %s: row %s was refused: %s", job.pk, number, type(error).__name__)
                _fail(job, number, row, [_TOO_LARGE], counts)
    return counts


def _good_rows(job: Job, connection: Connection, chunk: JobChunk, counts: Counter[str]) -> list[NumberedRow]:
    """Return the valid rows, and store the errors of the invalid rows."""
    first, rows = chunks.rows_of(chunk)
    has_usernames = takes_username(connection.options)
    good: list[NumberedRow] = []
    seen: set[tuple[str, str]] = set()
    for number, row in enumerate(rows, start=first):
        problems = row_problems(row, takes_username=has_usernames)
        keys = set() if problems else set(keys_of(connection, row))
        if keys & seen:
            problems = [_TWICE]
        if problems:
            _fail(job, number, row, problems, counts)
        else:
            seen |= keys
            good.append((number, row))
    return good


def _write_rows(job: Job, connection: Connection, rows: list[NumberedRow]) -> Counter[str]:
    """Insert and update the users of the rows in one transaction. New users are inserted in the order of the file."""
    counts: Counter[str] = Counter()
    # A concurrent request that links a user makes the user's id the id of an identity. Wait for such requests before reading users and
    # identities.
    lock_names(f"user:{job.tenant_id}:{key}" for _, row in rows for name, key in keys_of(connection, row) if name == "user_id")
    linked = linked_rows(connection, [row for _, row in rows])
    existing = matches_of(connection, [row for _, row in rows])
    found = {user.pk for user in existing.values()}
    written = set(JobUser.objects.filter(job=job, user_key__in=found).values_list("user_key", flat=True)) if found else set()
    new: list[tuple[User, dict[str, Any]]] = []
    changed: list[User] = []
    for number, row in rows:
        user = next((existing[key] for key in keys_of(connection, row) if key in existing), None)
        problem = _problem(job, row, user, linked=linked, written=written)
        if problem:
            _fail(job, number, row, [problem], counts)
        elif user is None:
            new.append((_new_user(connection, row), row))
        else:
            _update(user, row)
            changed.append(user)
    User.objects.of(job.tenant_id).bulk_create([user for user, _ in new])
    _store_proofs(new)
    JobUser.objects.bulk_create([JobUser(job=job, user_key=user.pk) for user in [*(user for user, _ in new), *changed]])
    return counts + Counter(inserted=len(new), updated=len(changed))


def _problem(job: Job, row: dict[str, Any], user: User | None, *, linked: set[str], written: set[Any]) -> RowProblem | None:
    if row.get("user_id") in linked:
        return _LINKED
    if user is None:
        return None
    if user.pk in written:
        return _TWICE
    if user.connection_id != job.connection_id:
        return _ELSEWHERE
    return None if job.parameters.get("upsert") else _EXISTS


def _update(user: User, row: dict[str, Any]) -> None:
    """Overwrite the profile; metadata is replaced as a whole. Passwords and factors of existing users are kept."""
    changes, before = profile_of(row), standing_of(user)
    if "email" in changes and changes["email"] != user.email:
        changes.setdefault("email_verified", False)
    for name, value in changes.items():
        setattr(user, name, value)
    user.save(update_fields=[*changes, "updated_at"])
    tell_account_change(user, before, in_bulk=True)


def _new_user(connection: Connection, row: dict[str, Any]) -> User:
    user = new_user(connection, row.get("user_id") or new_hex_id(), profile_of(row))
    # An imported factor is required at the first login, so the profile says from the start that the user has a factor.
    user.multifactor = [EnrolledFactor.PROVIDER] if row.get("mfa_factors") else []
    return user


def _store_proofs(new: list[tuple[User, dict[str, Any]]]) -> None:
    passwords = [PasswordCredential(user=user, password_hash=stored) for user, row in new if (stored := stored_password(row))]
    PasswordCredential.objects.bulk_create(passwords)
    factors = [_factor(user, factor) for user, row in new for factor in row.get("mfa_factors", ())]
    if factors:
        EnrolledFactor.objects.of(factors[0].tenant_id).bulk_create(factors)


def _factor(user: User, described: dict[str, dict[str, str]]) -> EnrolledFactor:
    kind, members = next(iter(described.items()))
    factor = EnrolledFactor(tenant_id=user.tenant_id, user=user, kind=kind, address=members.get("value", ""))
    if "secret" in members:
        factor.set_secret(members["secret"])
    return factor


def _fail(job: Job, number: int, row: Any, problems: list[RowProblem], counts: Counter[str]) -> None:
    counts["failed"] += 1
    if job.summary.get("failed", 0) + counts["failed"] <= settings.IMPORT_ERRORS_KEPT:
        JobError.objects.create(job=job, row_number=number, user=shown_row(row), errors=[problem.as_json() for problem in problems])


@effect_of(Job.Type.USERS_IMPORT)
def mail_outcome(job: Job) -> Pause | None:
    """Mail the result to every active administrator of the tenant. Platform operators belong to no tenant and get no mail."""
    admins = Staff.objects.filter(tenant_id=job.tenant_id, is_active=True).order_by("pk")
    addresses = list(admins.values_list("email", flat=True))
    if not addresses:
        return None
    context = {"job": job, "tenant": job.tenant, "connection": job.connection or ""}
    return send_once(job, partial(send_mail, "import_finished", to=addresses, context=context))
