"""Statements that every new event waits for: prepared with the connection, and asked without the work of a cursor.

psycopg's cursors convert, adapt and wait in many small steps, which takes several times as long as the server's answer.
Here a statement is one message to the server and one look at its answer; psycopg still opens the connections, decodes
the rows and names the errors.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer

# Beyond any statement's own limit: what has not answered by then is not there any more, or cannot be reached.
_PATIENCE_SECONDS = 15.0

Value = str | int | list[str]
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Statement:
    """A query with `$1`, `$2` and so on, the SQL types of those, and the name under which a connection knows it."""

    name: str
    types: tuple[str, ...]
    query: str

    async def prepare(self, handle: psycopg.AsyncConnection[Any]) -> None:
        """Let the server parse it, once per connection."""
        await handle.execute(f"PREPARE {self.name} ({', '.join(self.types)}) AS {self.query}".encode())

    async def rows(self, handle: psycopg.AsyncConnection[Any], *values: Value) -> list[Row]:
        """Return the rows of the answer. A connection that did not answer well is closed, and the pool replaces it."""
        pgconn = handle.pgconn
        try:
            pgconn.send_query_prepared(self.name.encode(), [_text(value) for value in values], result_format=pq.Format.BINARY)
            answer = await _answer(pgconn)
        except BaseException:
            # Whoever is cancelled leaves half an answer behind, and a statement may have to be parsed anew.
            pgconn.finish()
            raise
        rows = Transformer(handle)
        rows.set_pgresult(answer, format=pq.Format.BINARY)
        return rows.load_rows(0, answer.ntuples, tuple)


def _text(value: Value) -> bytes:
    """Return a value as the server reads it. Every element of an array is quoted."""
    if not isinstance(value, list):
        return str(value).encode()
    quoted = (element.replace("\\", "\\\\").replace('"', '\\"') for element in value)
    return ("{" + ",".join(f'"{element}"' for element in quoted) + "}").encode()


class _Answer:
    """What has come of one answer: the server sends the result, then that it is ready for the next question."""

    def __init__(self, pgconn: pq.abc.PGconn, whole: asyncio.Future[pq.abc.PGresult]) -> None:
        self._pgconn = pgconn
        self._whole = whole
        self._result: pq.abc.PGresult | None = None

    def read(self) -> None:
        """Take what has arrived; called whenever something has."""
        if self._whole.done():
            return
        try:
            self._pgconn.consume_input()
            while not self._pgconn.is_busy():
                if self._is_over(self._pgconn.get_result()):
                    return
        except psycopg.Error as error:
            self._whole.set_exception(error)

    def give_up(self) -> None:
        """Wait no longer; the server would have ended the statement long ago."""
        if not self._whole.done():
            self._whole.set_exception(psycopg.OperationalError("the server does not answer"))

    def _is_over(self, result: pq.abc.PGresult | None) -> bool:
        if result is not None and result.status == pq.ExecStatus.TUPLES_OK:
            self._result = result
            return False
        # Nothing need follow a failure: a server that goes away says so and may leave it at that.
        if result is not None:
            self._whole.set_exception(psycopg.errors.error_from_result(result))
        elif self._result is not None:
            self._whole.set_result(self._result)
        else:
            self._whole.set_exception(psycopg.OperationalError("the server closed the connection"))
        return True


async def _answer(pgconn: pq.abc.PGconn) -> pq.abc.PGresult:
    if pgconn.flush():
        # A question is a few bytes, and nothing else is on its way to the server.
        raise psycopg.OperationalError("the server takes no question")
    loop = asyncio.get_running_loop()
    whole: asyncio.Future[pq.abc.PGresult] = loop.create_future()
    answer, socket = _Answer(pgconn, whole), pgconn.socket
    loop.add_reader(socket, answer.read)
    patience = loop.call_later(_PATIENCE_SECONDS, answer.give_up)
    try:
        return await whole
    finally:
        patience.cancel()
        loop.remove_reader(socket)
