"""Stores the input of a job in chunks. The chunks are compressed. They are also encrypted, because rows contain hashes and secrets."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from typing import Any

from foundation.secrets import vault
from identity.models import Job, JobChunk

_FASTEST = 1


def store_rows(job: Job, rows: Iterable[Any], *, most_rows: int, most_characters: int) -> int:
    """Cut rows into chunks of a job.

    No chunk exceeds the two limits, except a chunk that consists of one long row. Returns the number of rows.
    """
    total = 0
    waiting: list[str] = []
    size = 0
    for row in rows:
        text = json.dumps(row)
        if waiting and (len(waiting) >= most_rows or size + len(text) > most_characters):
            _store(job, total - len(waiting), waiting)
            waiting, size = [], 0
        waiting.append(text)
        size += len(text)
        total += 1
    if waiting:
        _store(job, total - len(waiting), waiting)
    return total


def rows_of(chunk: JobChunk) -> tuple[int, list[Any]]:
    """Return the number of the first row of a chunk, and its rows."""
    text = zlib.decompress(vault.unseal_bytes(bytes(chunk.content), place=place_of(chunk.job_id, chunk.number)))
    return chunk.number, json.loads(text)


def clear(chunk: JobChunk) -> None:
    """Mark a chunk as done and delete its content."""
    chunk.is_done = True
    chunk.content = b""
    chunk.save(update_fields=["is_done", "content"])


def _store(job: Job, first: int, rows: list[str]) -> None:
    packed = zlib.compress(f"[{','.join(rows)}]".encode(), _FASTEST)
    JobChunk.objects.create(job=job, number=first, content=vault.seal_bytes(packed, place=place_of(job.pk, first)))


def place_of(job_id: str, number: int) -> str:
    """Return the associated data that binds the encrypted rows of a chunk to their job and chunk number."""
    return f"job:{job_id}:{number}"
