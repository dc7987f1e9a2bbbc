"""Nudges: messages that make workers query the database for work. A nudge contains no event. The sweeper replaces lost nudges.

`post` passes the message to a thread of this process and returns immediately. The numberer and web requests use `post`, because a broker
that hangs blocks a publisher for seconds. `send` publishes synchronously. Neither function raises an exception.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import Any

from celery import current_app
from django.conf import settings

from foundation.memory.outage_guard import OutageGuard
from identity.tasks import RUN_JOB

logger = logging.getLogger(__name__)

DISPATCH = "provisioning.dispatch"
DELIVER = "provisioning.deliver"
PROBE = "provisioning.probe"
READ_PROBE = "provisioning.read_probe"
ALERT = "provisioning.alert"
TRY = "provisioning.try_event"

# After a failure, nothing is published for this many seconds, because each attempt to publish may block for two seconds.
_PAUSE_SECONDS = 30.0
# The queue of the process reaches this size only while the broker is unreachable. Then further messages are dropped, and the sweeper later
# sends new messages for the same work.
_MOST_WAITING = 10_000
# Seconds that the thread of a busy process waits before it publishes again. Equal nudges that wait during this time are sent once.
_ROUND_SECONDS = 0.01

# The first lanes get one message each, so that all idle workers start. The other lanes share messages: a turn processes many lanes, and
# sends one message at the end of the turn if lanes are left. One message per lane would cost more than the delivery.
FIRST_MESSAGES = 8
_LANES_PER_MESSAGE = 20

Nudge = tuple[str, tuple[str, ...]]
_guard = OutageGuard(_PAUSE_SECONDS)


def is_silent() -> bool:
    """Tell whether this process publishes nothing at present, because the broker failed recently."""
    return _guard.is_open


def send(task: str, *arguments: str, countdown: float | None = None) -> bool:
    """Publish a message; return whether the broker accepted the message."""
    if is_silent():
        return False
    try:
        current_app.send_task(task, args=list(arguments), countdown=countdown)
    except Exception as error:  # noqa: BLE001  (broker clients raise any type; work continues without the nudge)
        logger.warning("no nudges are sent for %.0f s: %s", _guard.failed(), type(error).__name__)
        return False
    return True


def send_into(stream_id: str, keys: list[str]) -> None:
    """Send messages for the due lanes `keys` of one stream: each of the first lanes gets its own message, the others share messages."""
    for key in keys[:FIRST_MESSAGES] + keys[FIRST_MESSAGES::_LANES_PER_MESSAGE]:
        send(DELIVER, stream_id, key)


class Nudger:
    """Publishes posted messages in one daemon thread per process; equal waiting messages are sent once."""

    def __init__(self) -> None:
        self._waiting: dict[Nudge, None] = {}
        self._guard = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def post(self, task: str, *arguments: str) -> None:
        """Queue the message and return immediately."""
        with self._guard:
            if len(self._waiting) >= _MOST_WAITING:
                return
            self._waiting[(task, arguments)] = None
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="nudger", daemon=True)
                self._thread.start()
        self._wake.set()

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            with self._guard:
                taken, self._waiting = self._waiting, {}
            for task, arguments in taken:
                send(task, *arguments)
            time.sleep(_ROUND_SECONDS)


_nudgers: dict[int, Nudger] = {}


def post(task: str, *arguments: str) -> None:
    """Queue the message for this process's thread; a forked child starts its own thread."""
    if settings.DELIVERY_NUDGES_ENABLED:
        _nudgers.setdefault(os.getpid(), Nudger()).post(task, *arguments)


def work_on_waiting_job(job_id: str, **_: Any) -> None:
    """Send a nudge for a job that was just committed."""
    post(RUN_JOB, job_id)


def begin_waiting_work(task: str, arguments: tuple[str, ...], **_: Any) -> None:
    """Send a nudge for work that was just committed."""
    post(task, *arguments)


def dispatch_numbered(tenant_id: str, _head_position: Any) -> None:
    """Send a nudge to dispatch the tenant's log; the numberer calls this after each numbering."""
    post(DISPATCH, tenant_id)
