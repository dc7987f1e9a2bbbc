"""When a mail that the server did not take is tried again, and when it is given up."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from identity.models import Job
from identity.services.failures import ServiceError
from identity.services.jobs import Pause

_GIVEN_UP_AFTER = timedelta(hours=24)
_SHORTEST_SECONDS, _LONGEST_SECONDS = 15.0, 900.0


class MailServerAwayTooLong(ServiceError):
    """The mail server has been away for a day."""


def pause_of(job: Job) -> Pause:
    """Return how long the mail of a job waits for its next try: longer each time. After a day raise `MailServerAwayTooLong`."""
    waited = timezone.now() - job.created_at
    if waited > _GIVEN_UP_AFTER:
        raise MailServerAwayTooLong
    return Pause(min(_LONGEST_SECONDS, max(_SHORTEST_SECONDS, waited.total_seconds() / 2)))
