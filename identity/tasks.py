"""Celery's edges of identity. Arguments are ids only; running any of them twice is harmless."""

from __future__ import annotations

from celery import shared_task

from identity.services.imports import run_import

RUN_IMPORT = "identity.run_import"
# Some seconds of work; then the rest goes to the end of the queue, so that deliveries are not kept waiting.
_CHUNKS_PER_TURN = 5


@shared_task(name=RUN_IMPORT)
def import_users(job_id: str) -> None:
    """Import for one turn, then send what is left; a lost message is sent again by the sweep."""
    if not run_import(job_id, chunks=_CHUNKS_PER_TURN):
        import_users.delay(job_id)
