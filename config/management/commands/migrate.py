"""Django's command `manage.py migrate`, with a short limit on the time that it waits for a lock. Decision: docs/adr/0130."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management import CommandError
from django.core.management.commands import migrate
from django.db import connections
from django.db.utils import OperationalError
from psycopg.errors import LockNotAvailable

from foundation.database.migration_limits import concurrent_indexes, long_transactions, set_limits


class Command(migrate.Command):
    """Applies migrations while processes of the previous version run."""

    _current: Any = None

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate. A lock that is not available within MIGRATION_LOCK_TIMEOUT_SECONDS ends the command with an explanation."""
        self._database = connections[options["database"]]
        seconds = settings.MIGRATION_LOCK_TIMEOUT_SECONDS
        try:
            with concurrent_indexes(self._database):
                super().handle(*args, **options)
        except OperationalError as error:
            if not isinstance(error.__cause__, LockNotAvailable):
                raise
            raise CommandError(self._explanation(seconds)) from error

    def migration_progress_callback(self, action: str, migration: Any = None, fake: bool = False) -> None:  # noqa: FBT001, FBT002  (Django)
        """Set the timeouts of locks and statements before each migration: an earlier migration may have changed them for the session."""
        if action in {"apply_start", "unapply_start"}:
            self._current = migration
            set_limits(self._database, lock_seconds=settings.MIGRATION_LOCK_TIMEOUT_SECONDS)
        super().migration_progress_callback(action, migration, fake)

    def _explanation(self, seconds: float) -> str:
        name = f"{self._current.app_label}.{self._current.name}" if self._current else "the database"
        is_whole = self._current is None or self._current.atomic
        state = "The migration changed nothing." if is_whole else "The migration runs without a transaction, so a part of it may be done."
        found = long_transactions(self._database, seconds=seconds)
        listed = f"These transactions may hold the lock: {'; '.join(found)}. Wait until they end, or end them with pg_terminate_backend."
        holders = listed if found else "The lock may be free now."
        return (
            f"The migration {name} waited {seconds:g} s for a lock and stopped, so that running processes do not wait behind it. {state} "
            f"{holders} Then run the command again: it continues with this migration. MIGRATION_LOCK_TIMEOUT_SECONDS is the time limit."
        )
