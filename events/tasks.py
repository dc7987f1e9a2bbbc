"""Celery tasks of the event log. Each task can safely run twice."""

from __future__ import annotations

import logging

from celery import shared_task

from events.log import retention

logger = logging.getLogger(__name__)


@shared_task(name="events.prune")
def prune() -> None:
    """Delete events that are older than their tenant's retention."""
    for done in retention.prune():
        if done.count:
            logger.info("pruned %s positions of %s", done.count, done.tenant_id)
