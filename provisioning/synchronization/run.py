"""The work of one worker on a synchronization: job, plan, server, and the time after which the worker stops."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from django.utils import timezone

from events.models import EventStream
from identity.models import Job
from provisioning.runs.failures import TransientFailure
from provisioning.synchronization.bound_setup import setup_of_stream
from provisioning.synchronization.examination import Examiner
from provisioning.synchronization.findings import Finding, Outcome
from provisioning.synchronization.people import People
from provisioning.synchronization.plan import Plan
from provisioning.synchronization.remote import Remote
from provisioning.synchronization.state import save

# A worker stops after this many seconds, so that it can take other work.
_TURN_SECONDS = 4.0
_LONGEST_PAUSE_SECONDS = 3600.0
_FIRST_PAUSE_SECONDS = 2.0
# Number of tries for each user while the server is busy. After the last try, the user counts as failed. Three consecutive failed users stop
# the job. In the phases that read or delete accounts, the last try stops the job.
MOST_TRIES = 5


class Stopped(Exception):
    """The job must not continue automatically."""


class Run:
    """The state shared by the phases of a synchronization. Raises `NotSupported` and `Misconfigured` for an unusable action."""

    def __init__(self, job: Job, stream: EventStream) -> None:
        self.job = job
        self.plan = Plan.of_document(job.parameters["plan"])
        self.remote = Remote(setup_of_stream(stream), correlation_id=job.pk)
        self.people = People(job.tenant_id, self.remote.settings.connection_allowlist)
        self.examiner = Examiner(self.remote, self.plan)
        self._ends_at = time.monotonic() + _TURN_SECONDS
        self._next_at = time.monotonic()

    def is_over(self) -> bool:
        """Whether the worker must stop now."""
        return time.monotonic() >= self._ends_at

    def keep_pace(self) -> None:
        """Wait until the work on the next user may start. The limit is `rate` users per second."""
        now = time.monotonic()
        if self._next_at > now:
            time.sleep(self._next_at - now)
        self._next_at = max(now, self._next_at) + 1 / self.plan.rate

    def failed(self, user_id: str, failure: Exception) -> Finding:
        """Return the finding for a user that could not be synchronized."""
        detail = getattr(failure, "detail", "")
        reason = f"{failure}; {detail}" if detail else str(failure)
        return Finding(Outcome.FAILED, user_id, reason=self.remote.mask.text(reason), error_class=type(failure).__name__)

    def rest(self, failure: TransientFailure, findings: list[Finding], **progress: Any) -> None:
        """Pause the job, and then try the same work again.

        The pause grows with each try. If the `Retry-After` of the server is longer, the pause has this length. No pause is
        longer than `_LONGEST_PAUSE_SECONDS`.
        """
        tries = self.job.parameters.get("tries", 0) + 1
        seconds = min(max(failure.retry_after or 0.0, _FIRST_PAUSE_SECONDS * 2 ** (tries - 1)), _LONGEST_PAUSE_SECONDS)
        until = timezone.now() + timedelta(seconds=seconds)
        save(self.job, findings, tries=tries, pause_until=until.isoformat(), **progress)
