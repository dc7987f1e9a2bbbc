"""How a move copies the tables of identity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import Q

from identity.models import Connection, Job, JobChunk
from identity.moving.carrying import Pointer, Sealed, TextKey, carry, sealed_names, sealed_text
from identity.services.chunks import place_of


def declare() -> None:
    """Declare the tables of identity, and Django's own log of the admin."""
    carry(
        "identity",
        left_behind={"TenantMove": "The row describes the move at this installation only."},
        sealed={
            "Connection": (Sealed("sealed_options", _of_options, ~Q(sealed_options={})),),
            "MessageProvider": (sealed_names("sealed_settings", lambda row, name: row._place(name)),),
            "StaffFactor": (sealed_text("sealed_secret", lambda row: row._place),),
            "EnrolledFactor": (sealed_text("sealed_secret", lambda row: row._place),),
            "JobChunk": (Sealed("content", _of_chunk, ~Q(content=b"")),),
        },
        keys={"JobUser": {"user_key": "User"}},
        text_keys={
            "AuditEntry": (
                TextKey("object_id", kind_column="object_type"),
                TextKey("actor_id", kind_column="actor_kind", kinds={"staff": "identity.staff"}),
            ),
        },
    )
    carry("admin", left_behind={"LogEntry": "The admin writes the audit log instead."})


def _of_options(row: Connection) -> Mapping[Pointer, str]:
    """Return for each encrypted option the associated data of its encryption.

    An option that is not a text is stored as an object, with the encrypted value in the member `json`.
    """
    pointers: dict[Pointer, str] = {}
    for path, token in row.sealed_options.items():
        pointers[(path,) if isinstance(token, str) else (path, "json")] = f"{row._secrets_place}:{path}"
    return pointers


def _of_chunk(row: Any) -> Mapping[Pointer, str]:
    """Return the associated data of a chunk's encrypted rows. Returns an empty mapping if the chunk has no content, or if the content is a
    piece of an export file: such pieces are compressed but not encrypted."""
    chunk: JobChunk = row
    is_sealed = bool(chunk.content) and chunk.job.type != Job.Type.USERS_EXPORT
    return {(): place_of(chunk.job_id, chunk.number)} if is_sealed else {}
