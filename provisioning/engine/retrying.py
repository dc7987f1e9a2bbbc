"""A Celery task that is retried after exactly the delay that the task requests. The database determines when each lane is due."""

from __future__ import annotations

from typing import Any

from celery import Task

# The longest delay of a message, in seconds. The sweeper handles longer pauses, because a worker keeps every delayed message in memory.
LONGEST_RETRY_SECONDS = 30.0


class RetryLater(Exception):
    """The lane pauses, so the task must run again with the same message after `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"again in {seconds:.1f} s")
        self.seconds = seconds


class RetryingTask(Task):  # type: ignore[type-arg]  # celery's Task is generic in its stubs only
    """Retries `RetryLater` without limit, because attempts are counted in the row of the delivery, not in the message."""

    autoretry_for = (RetryLater,)
    max_retries = None

    def retry(self, *args: Any, **options: Any) -> Any:
        """Use the exact delay of `RetryLater`. The default of Celery is 180 s, and a random backoff could be shorter than the pause of the
        lane.
        """
        reason = options.get("exc")
        if isinstance(reason, RetryLater):
            options["countdown"] = reason.seconds
        return super().retry(*args, **options)
