"""The list that this process searches. Opened on first use, and again after the file was replaced."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from django.conf import settings

from identity.breaches.list_file import BreachList, Facts, ListUnreadable

logger = logging.getLogger(__name__)

# A process looks for a new file at most once in this time. Meanwhile, it uses the list that is already open.
_LOOKED_EVERY_SECONDS = 1.0
_NO_LIST = "Passwords are not checked: the operator of the service has not set BREACHED_PASSWORDS_FILE."
_NOT_MADE = "Passwords are not checked: there is no file at BREACHED_PASSWORDS_FILE. Create it with manage.py breached_passwords."


@dataclass(frozen=True)
class ListStatus:
    """Whether a list can be searched. If `facts` is None, no list can be read, and `problem` says why."""

    facts: Facts | None
    problem: str = ""

    @property
    def in_words(self) -> str:
        """A message for administrators."""
        if self.facts is None:
            return self.problem
        return f"The list has {self.facts.count:,} passwords. It was created on {self.facts.made_at:%Y-%m-%d}."


class CurrentList:
    """The open list, which all threads share, and the time at which the file was last checked."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._list: BreachList | None = None
        self._problem = ""
        self._place: tuple[str, float] = ("", 0.0)

    def get(self) -> BreachList | None:
        """Return the list at the configured path, or None if no list can be read."""
        path, now = settings.BREACHED_PASSWORDS_FILE, time.monotonic()
        if self._place[0] == path and now - self._place[1] < _LOOKED_EVERY_SECONDS:
            return self._list
        with self._lock:
            self._look(path)
            self._place = (path, now)
            return self._list

    def status(self) -> ListStatus:
        """Check the file now and return the status."""
        self._place = ("", 0.0)
        found = self.get()
        return ListStatus(found.facts) if found is not None else ListStatus(None, self._problem)

    def drop(self, problem: str) -> None:
        """Stop using a list that could not be read, until the next check of the file."""
        with self._lock:
            self._lose(problem)

    def _look(self, path: str) -> None:
        if not path:
            self._list, self._problem = None, _NO_LIST
            return
        try:
            stat = Path(path).stat()
            if self._list is None or self._list.identity != (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns):
                self._list, self._problem = BreachList(Path(path)), ""
        except FileNotFoundError:
            self._list, self._problem = None, _NOT_MADE
        except (OSError, ListUnreadable) as error:
            self._lose(f"The list cannot be read: {error}")

    def _lose(self, problem: str) -> None:
        if problem != self._problem:
            logger.error("passwords are not checked for breaches: %s", problem)
        self._list, self._problem = None, problem


_current = CurrentList()


def is_in_breach(password: str) -> bool:
    """Tell whether the list of this service contains a password.

    Returns False if there is no list, or if the list cannot be read, so that logins continue.
    """
    found = _current.get()
    if found is None:
        return False
    try:
        return found.holds(password)
    except (OSError, ListUnreadable) as error:
        _current.drop(f"The list cannot be read: {error}")
        return False


def list_status() -> ListStatus:
    """Return the status of the list in this process."""
    return _current.status()
