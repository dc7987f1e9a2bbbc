"""Fast path: statements that run for every new event, prepared when a connection opens and run without a cursor.

The plain path is a cursor on a connection of psycopg's pool, which converts, adapts and waits in many small steps: 182 µs of
processor time for a page of the log. This module takes 74 µs (`python -m benchmarks fast_paths`, docs/figures.md): it reserves a few
connections, which stay registered with the event loop. A statement is one message to the server and one read of its
answer; psycopg still opens the connections, decodes the rows and creates the exceptions.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from psycopg_pool import AsyncConnectionPool
from psycopg_pool._acompat import AQueue
from psycopg_pool.pool_async import MaintenanceTask

# Maximum wait for an answer, in seconds. It is longer than the limits of all statements, so a connection without an answer is dead.
_PATIENCE_SECONDS = 15.0
# Connections that stay reserved while idle: two for the reads of tails, of which at most two run at a time, and one for everything else.
_LINES_KEPT = 3
# psycopg's pool waits longer after each failed connection. After this many seconds it gives up, and the next statement tries again.
_RECONNECT_SECONDS = 5.0

Value = str | int | datetime | None | list[str] | list[int]
Row = tuple[Any, ...]
Handle = psycopg.AsyncConnection[Any]


@dataclass(frozen=True)
class Statement:
    """A query with the parameters `$1`, `$2` and so on, the SQL types of the parameters, and the name of the query on a connection.

    Without types, the server infers them. With `is_text`, rows arrive in the text format, which Django's own loaders read.
    """

    name: str
    types: tuple[str, ...]
    query: str
    is_text: bool = False

    async def prepare(self, handle: Handle) -> None:
        """Make the server parse the statement, once per connection."""
        types = f" ({', '.join(self.types)})" if self.types else ""
        await handle.execute(f"PREPARE {self.name}{types} AS {self.query}".encode())

    @property
    def format(self) -> pq.Format:
        return pq.Format.TEXT if self.is_text else pq.Format.BINARY


class Line:
    """A connection that runs one prepared statement at a time and stays registered with the event loop."""

    __slots__ = ("_answer", "_asked_at", "_is_watched", "_loaders", "_loop", "_patience", "_pgconn", "_result", "_socket", "handle")

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self._pgconn = handle.pgconn
        self._socket = self._pgconn.socket
        self._loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[pq.abc.PGresult] | None = None
        self._result: pq.abc.PGresult | None = None
        self._asked_at = 0.0
        self._patience: asyncio.TimerHandle | None = None
        # Cached decoders of a statement's columns, by its name.
        self._loaders: dict[str, Any] = {}
        self._is_watched = True
        self._loop.add_reader(self._socket, self._read)

    @property
    def is_usable(self) -> bool:
        """Tell whether another statement can be sent."""
        return self._is_watched

    async def rows(self, statement: Statement, *values: Value) -> list[Row]:
        """Return the rows of the answer. A connection with a failed statement is closed, and the pool replaces it."""
        try:
            self._pgconn.send_query_prepared(statement.name.encode(), [_text(value) for value in values], result_format=statement.format)
            if self._pgconn.flush():
                # The send buffer is full, although it contains only one statement of a few bytes: the server no longer reads.
                raise psycopg.OperationalError("the server accepts no statement")
            self._be_patient()
            self._answer = self._loop.create_future()
            answer = await self._answer
        except BaseException:
            # A canceled call leaves a partial answer on the connection. After an error, the server may have to parse the statement again.
            # A new connection has neither problem.
            self.end()
            raise
        finally:
            self._answer = self._result = None
        return self._loaded(statement, answer)

    def unwatch(self) -> None:
        """Unregister the connection from the event loop."""
        if self._is_watched:
            self._is_watched = False
            self._loop.remove_reader(self._socket)
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def end(self) -> None:
        """Close the connection."""
        self.unwatch()
        self._pgconn.finish()

    def _loaded(self, statement: Statement, answer: pq.abc.PGresult) -> list[Row]:
        loaders = self._loaders.get(statement.name)
        if loaders is None:
            loaders = self._loaders[statement.name] = Transformer(self.handle)
            loaders.set_pgresult(answer, format=statement.format)
        else:
            loaders.set_pgresult(answer, set_loaders=False)
        try:
            return loaders.load_rows(0, answer.ntuples, tuple)
        finally:
            # Free the bytes of this answer before the next answer arrives.
            loaders.set_pgresult(None, set_loaders=False)

    def _read(self) -> None:
        """Process received data: the server sends the result, then a message that it is ready for the next statement."""
        try:
            self._pgconn.consume_input()
            if self._answer is None:
                # A server that closes an idle connection first sends a message. The first `consume_input` reads only this message. So read
                # again, to notice that the connection is closed.
                self._pgconn.consume_input()
            while self._answer is not None and not self._answer.done() and not self._pgconn.is_busy():
                self._take(self._answer, self._pgconn.get_result())
        except psycopg.Error as error:
            if self._answer is None:
                # The server closed the idle connection; the next statement gets another connection.
                self.end()
            elif not self._answer.done():
                self._answer.set_exception(error)

    def _take(self, whole: asyncio.Future[pq.abc.PGresult], result: pq.abc.PGresult | None) -> None:
        if result is not None and result.status == pq.ExecStatus.TUPLES_OK:
            self._result = result
        # A server that shuts down may send only an error, without the message that it is ready.
        elif result is not None:
            whole.set_exception(psycopg.errors.error_from_result(result))
        elif self._result is not None:
            whole.set_result(self._result)
        else:
            whole.set_exception(psycopg.OperationalError("the server closed the connection"))

    def _be_patient(self) -> None:
        # One timer for all statements, set to the earliest deadline.
        self._asked_at = self._loop.time()
        if self._patience is None:
            self._patience = self._loop.call_later(_PATIENCE_SECONDS, self._lose_patience)

    def _lose_patience(self) -> None:
        self._patience = None
        if self._answer is None or self._answer.done():
            return
        left = self._asked_at + _PATIENCE_SECONDS - self._loop.time()
        if left > 0:
            self._patience = self._loop.call_later(left, self._lose_patience)
        else:
            self._answer.set_exception(psycopg.OperationalError("the server does not answer"))


class _UntilCanceled:
    """The queue of a pool's worker. The queue ends the worker if the task of the worker was canceled."""

    def __init__(self, queue: AQueue[MaintenanceTask]) -> None:
        self._queue = queue

    async def get(self) -> MaintenanceTask:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError
        return await self._queue.get()


class LinePool(AsyncConnectionPool[Handle]):
    """psycopg's pool, with `kept` of its connections reserved for prepared statements."""

    def __init__(self, *, kept: int = _LINES_KEPT, **options: Any) -> None:
        super().__init__(reconnect_timeout=_RECONNECT_SECONDS, **options)
        self._kept = kept
        self._lines: list[Line] = []

    async def rows(self, statement: Statement, *values: Value) -> list[Row]:
        """Run a statement on a free reserved connection, else on another connection of the pool."""
        line = await self.line()
        try:
            return await line.rows(statement, *values)
        finally:
            await self.keep(line)

    @classmethod
    async def worker(cls, q: AQueue[MaintenanceTask]) -> None:
        """Run the tasks of the queue until this task is canceled.

        psycopg's worker treats a cancellation as a failure of its connection and continues. So an event loop that closes before its pool,
        for example because a second signal stops the server, would wait for this worker forever.
        """
        await super().worker(cast(AQueue[MaintenanceTask], _UntilCanceled(q)))

    async def close(self, timeout: float = 5.0) -> None:  # noqa: ASYNC109  (psycopg's signature)
        """Close every connection."""
        while self._lines:
            await self._give_back(self._lines.pop())
        await super().close(timeout)

    async def keep(self, line: Line) -> None:
        """Take back a connection that `line` returned: keep it reserved, or return it to the pool if enough connections are reserved."""
        if line.is_usable and len(self._lines) < self._kept and not self.closed:
            self._lines.append(line)
        else:
            await self._give_back(line)

    async def line(self) -> Line:
        """Return a free connection. The caller returns it with `keep`."""
        while self._lines:
            line = self._lines.pop()
            if line.is_usable:
                return line
            await self._give_back(line)
        return Line(await self.getconn())

    async def _give_back(self, line: Line) -> None:
        line.unwatch()
        await self.putconn(line.handle)


def _text(value: Value) -> bytes | None:
    """Return a value in the server's input format. Every text of an array is quoted."""
    if value is None:
        return None
    if not isinstance(value, list):
        return str(value).encode()
    return ("{" + ",".join(map(_element, value)) + "}").encode()


def _element(value: str | int) -> str:
    if isinstance(value, int):
        return str(value)
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"'
