"""Results of sweeps in a database that other tests of the same worker share."""

from __future__ import annotations

from identity.services.jobs import take_unattended_jobs


def take_all_unattended_jobs() -> set[str]:
    """Sweep until nothing is left: one sweep takes a limited number, and other tests leave jobs that wait."""
    taken: set[str] = set()
    while batch := take_unattended_jobs():
        taken.update(batch)
    return taken
