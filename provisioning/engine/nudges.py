"""Telling workers that there is work. A nudge may be lost and never carries an event; the sweeper heals a lost one.

`post` hands the message to a thread of this process and returns at once: the numberer and web requests use it, since a
broker that hangs blocks a publisher for seconds. `send` publishes here and now. Neither ever raises.
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

# After a failure nothing is published for so long: each try may block for two seconds.
_PAUSE_SECONDS = 30.0
# More different messages than this wait only while the broker is away; then they are the sweeper's.
_MOST_WAITING = 10_000
# Between two rounds of a busy process, so that equal nudges meet in the set and are sent once.
_ROUND_SECONDS = 0.01

# The first lanes get a message each, so that idle workers all start. A turn goes through many lanes and passes what it leaves
# over on: a message for each lane would cost more than its delivery.
FIRST_MESSAGES = 8
_LANES_PER_MESSAGE = 20

Nudge = tuple[str, tuple[str, ...]]
_guard = OutageGuard(_PAUSE_SECONDS)


def is_silent() -> bool:
    """Tell whether the broker failed a moment ago, so that publishing is not tried."""
    return _guard.is_open


def send(task: str, *arguments: str, countdown: float | None = None) -> bool:
    """Publish a message; return whether the broker took it."""
    if is_silent():
        return False
    try:
        current_app.send_task(task, args=list(arguments), countdown=countdown)
    except Exception as error:  # noqa: BLE001  (whatever a broker client raises, work goes on without the nudge)
        logger.warning("nudges are silent for %.0f s: %s", _guard.failed(), type(error).__name__)
        return False
    return True


def send_into(stream_id: str, keys: list[str]) -> None:
    """Send enough messages for due lanes of one stream."""
    for key in keys[:FIRST_MESSAGES] + keys[FIRST_MESSAGES::_LANES_PER_MESSAGE]:
        send(DELIVER, stream_id, key)


class Nudger:
    """One daemon thread per process that publishes what was posted; equal messages that wait together are sent once."""

    def __init__(self) -> None:
        self._waiting: dict[Nudge, None] = {}
        self._guard = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def post(self, task: str, *arguments: str) -> None:
        """Publish soon; returns at once."""
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
    """Publish from this process's thread; a forked child has one of its own."""
    if settings.DELIVERY_NUDGES_ENABLED:
        _nudgers.setdefault(os.getpid(), Nudger()).post(task, *arguments)


def work_on_waiting_job(job_id: str, **_: Any) -> None:
    """Have a worker begin a job that was just committed."""
    post(RUN_JOB, job_id)


def begin_waiting_work(task: str, arguments: tuple[str, ...], **_: Any) -> None:
    """Have a worker begin what was just committed."""
    post(task, *arguments)


def dispatch_numbered(tenant_id: str, _head_position: Any) -> None:
    """Have the tenant's streams look at its log; called by the numberer after each numbering."""
    post(DISPATCH, tenant_id)
