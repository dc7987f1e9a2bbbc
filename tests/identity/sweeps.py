"""Sweeps for jobs in a database that all tests of one pytest worker share."""

from __future__ import annotations

from identity.services.jobs import take_unattended_jobs


def take_all_unattended_jobs() -> set[str]:
    """Sweep until no waiting job is left, and return the ids of the jobs that were taken.

    One sweep is not enough: it takes a limited number of jobs, and other tests have left waiting jobs.
    """
    taken: set[str] = set()
    while batch := take_unattended_jobs():
        taken.update(batch)
    return taken
