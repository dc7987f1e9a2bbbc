"""Celery's edges of identity. Arguments are ids only; running any of them twice is harmless."""

from __future__ import annotations

from celery import shared_task

from identity.services import imports  # noqa: F401  (it registers the steps of its jobs)
from identity.services.jobs import run_job

RUN_JOB = "identity.run_job"
# Some seconds of work; then the rest goes to the end of the queue, so that deliveries are not kept waiting.
_CHUNKS_PER_TURN = 5


@shared_task(name=RUN_JOB)
def work_on_job(job_id: str) -> None:
    """Work on a job for one turn, then send what is left; a lost message is sent again by the sweep."""
    if not run_job(job_id, chunks=_CHUNKS_PER_TURN):
        work_on_job.delay(job_id)
