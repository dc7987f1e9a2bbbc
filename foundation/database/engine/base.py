"""Django's PostgreSQL backend, extended for failovers. Decision: docs/adr/0124.

Two errors are handled differently than in Django. A write that a standby refuses (SQLSTATE 25006) means that the server was demoted: the
connection is closed, so that the next connection reaches the new primary. If a connection fails during COMMIT, it is unknown whether the
transaction was saved; the error is then `CommitInDoubt`.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

import psycopg
from django.db.backends.postgresql import base
from django.db.utils import DatabaseErrorWrapper as DjangoErrorWrapper
from django.db.utils import OperationalError
from django.utils.functional import cached_property
from psycopg.errors import ReadOnlySqlTransaction

from foundation.database.session_settings import SESSION_SETTINGS, set_statement


class NotThePrimary(OperationalError):
    """The server accepts no writes, because it was demoted or is a standby. Nothing was saved."""


class CommitInDoubt(OperationalError):
    """The connection failed during COMMIT: the transaction is either saved as a whole or not at all."""


class DatabaseErrorWrapper(DjangoErrorWrapper):
    """Django's translation of psycopg's errors, with `NotThePrimary`."""

    def __init__(self, wrapper: base.DatabaseWrapper) -> None:
        super().__init__(wrapper)
        self._wrapper = wrapper

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, ReadOnlySqlTransaction):
            self._wrapper.errors_occurred = True
            # A pool discards a closed connection. In a transaction, Django drops the connection at the end of the outermost block.
            if self._wrapper.connection is not None:
                self._wrapper.connection.close()
            if not self._wrapper.in_atomic_block:
                self._wrapper.close()
            raise NotThePrimary("the server accepts no writes") from error
        super().__exit__(kind, error, trace)


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection to the primary server."""

    @cached_property
    def wrap_database_errors(self) -> DatabaseErrorWrapper:
        return DatabaseErrorWrapper(self)

    def get_connection_params(self) -> dict[str, Any]:
        """Return the parameters for psycopg."""
        parameters: dict[str, Any] = super().get_connection_params()
        parameters.pop(SESSION_SETTINGS, None)
        return parameters

    def _configure_connection(self, connection: Any) -> bool:
        values = self.settings_dict["OPTIONS"].get(SESSION_SETTINGS)
        if values:
            with connection.cursor() as cursor:
                cursor.execute(*set_statement(values))
        return bool(super()._configure_connection(connection) or values)  # type: ignore[misc]  # missing in the stubs

    def _commit(self) -> Any:
        raw = self.connection
        try:
            return super()._commit()  # type: ignore[misc]  # missing in the stubs
        except OperationalError as error:
            if isinstance(error.__cause__, psycopg.OperationalError) and raw is not None and raw.closed:
                raise CommitInDoubt("the connection failed during COMMIT") from error
            raise
