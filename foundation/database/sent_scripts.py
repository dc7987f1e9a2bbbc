"""Fast path: scripts whose answer is read later, so that the database works while a destination processes a request.

The plain path is `run_script`, which waits for the answer. No worker process can deliver faster than a loop that only calls the destination
and uses no database. With `run_script`, a worker process reaches 0.52 of the rate of this loop, and with this module 0.77 (`make
bench-provisioning`, docs/performance.md). These scripts use a second connection of the thread, because other code may use the thread's
usual connection meanwhile. The second connection is opened on first use. The thread closes both of its connections together.
"""

from __future__ import annotations

import select
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import DEFAULT_DB_ALIAS, OperationalError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import errors
from psycopg.adapt import Transformer
from psycopg.pq import ExecStatus

from foundation.database.statements import Prepared, Row, prepare, text_of

_ANSWERED = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)


class ScriptSender:
    """Sends one script at a time. Any error closes the connection: an unread answer must not be taken for the answer to another script."""

    def __init__(self, wrapper: BaseDatabaseWrapper) -> None:
        self._wrapper = wrapper
        self._wrapper.ensure_connection()
        # While an answer is unread: a reference to the thread's usual connection. Otherwise Python could free the usual connection, and
        # would then close the connection of the script, too.
        self._usual: Any = None

    @property
    def is_usable(self) -> bool:
        return self._wrapper.connection is not None and not self._wrapper.connection.closed

    def close(self) -> None:
        self._usual = None
        self._wrapper.close()

    def prepare(self, statements: Sequence[Prepared]) -> None:
        """Make the server discard its plans and plan the statements again, for the present contents of the tables."""
        with self._closed_on_error(), self._wrapper.cursor() as cursor:
            cursor.execute("DISCARD PLANS")
            prepare(cursor, statements)

    def send(self, statements: Sequence[Prepared], parameters: Mapping[str, Any]) -> None:
        """Send prepared statements as one transaction, whose commit does not wait for the disk; return at once."""
        raw: Any = self._wrapper.connection
        text = raw.cursor().mogrify(text_of(tuple(statements), is_repeatable=True), parameters)
        with self._closed_on_error(), self._wrapper.wrap_database_errors:
            self._usual = connection.connection
            raw.pgconn.send_query(text.encode())
            while raw.pgconn.flush():
                select.select([], [raw.pgconn.socket], [])

    def results(self) -> list[tuple[int, Row | None]]:
        """Wait for the answer; return the row count and the first row of each statement. Raises `OperationalError` if the connection was
        closed meanwhile."""
        raw: Any = self._wrapper.connection
        if not self.is_usable:
            raise OperationalError("the connection was closed before the answer was read")
        results: list[tuple[int, Row | None]] = []
        with self._closed_on_error(), self._wrapper.wrap_database_errors:
            while (result := _next_result(raw.pgconn)) is not None:
                if result.status not in _ANSWERED:
                    raise errors.error_from_result(result, encoding="utf-8")
                results.append((result.command_tuples or 0, _first_row(result, raw)))
        self._usual = None
        # The first result belongs to the statement that sets `synchronous_commit`.
        return results[1:]

    @contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            # The time limit of a task can raise an exception at any point, also while the connection waits for an answer.
            self.close()
            raise


def _next_result(pgconn: Any) -> Any:
    while pgconn.is_busy():
        select.select([pgconn.socket], [], [])
        pgconn.consume_input()
    return pgconn.get_result()


def _first_row(result: Any, raw: Any) -> Row | None:
    if not result.ntuples:
        return None
    reading = Transformer(raw)
    reading.set_pgresult(result)
    return reading.load_row(0, tuple)


# The senders, by the usual psycopg connection of their thread.
_senders: weakref.WeakKeyDictionary[Any, ScriptSender] = weakref.WeakKeyDictionary()


def script_sender() -> ScriptSender:
    """Return this thread's sender; raises the errors of a failed connection."""
    connection.ensure_connection()
    usual = connection.connection
    sender = _senders.get(usual)
    if sender is None or not sender.is_usable:
        wrapper = connections.create_connection(DEFAULT_DB_ALIAS)
        sender = _senders[usual] = ScriptSender(wrapper)
        weakref.finalize(usual, wrapper.connection.close)
    return sender
