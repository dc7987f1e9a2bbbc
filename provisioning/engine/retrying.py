"""A Celery task that is run again after exactly the delay it names; what is due when is known by the database alone."""

from __future__ import annotations

from typing import Any

from celery import Task

# Longer pauses are the sweeper's: a worker keeps every delayed message in memory.
LONGEST_RETRY_SECONDS = 30.0


class RetryLater(Exception):
    """The lane pauses; the same message should come again after `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"again in {seconds:.1f} s")
        self.seconds = seconds


class RetryingTask(Task):  # type: ignore[type-arg]  # celery's Task is generic in its stubs only
    """Retries `RetryLater` for ever: the attempts of a delivery are counted in its row, not in the message."""

    autoretry_for = (RetryLater,)
    max_retries = None

    def retry(self, *args: Any, **options: Any) -> Any:
        """Use the delay of `RetryLater` as it is: plain autoretry would wait 180 s, or less than the lane's pause."""
        reason = options.get("exc")
        if isinstance(reason, RetryLater):
            options["countdown"] = reason.seconds
        return super().retry(*args, **options)
