"""Fast path: statements that every new event waits for, prepared with the connection and asked without the work of a cursor.

The plain path is a cursor on a connection of psycopg's pool, which converts, adapts and waits in many small steps: 182 µs of processor
time for a page of the log, where this takes 74 (`python -m benchmarks fast_paths`, docs/figures.md). Here a few connections are kept aside
and watched once for all, and a statement is one message to the server and one look at its answer; psycopg still opens the
connections, decodes the rows and names the errors.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from psycopg_pool import AsyncConnectionPool

# Beyond any statement's own limit: what has not answered by then is not there any more, or cannot be reached.
_PATIENCE_SECONDS = 15.0
# Kept aside while nobody asks: one for each tail that reads, and one for the rest.
_LINES_KEPT = 3

Value = str | int | list[str] | list[int]
Row = tuple[Any, ...]
Handle = psycopg.AsyncConnection[Any]


@dataclass(frozen=True)
class Statement:
    """A query with `$1`, `$2` and so on, the SQL types of those, and the name under which a connection knows it."""

    name: str
    types: tuple[str, ...]
    query: str

    async def prepare(self, handle: Handle) -> None:
        """Let the server parse it, once per connection."""
        await handle.execute(f"PREPARE {self.name} ({', '.join(self.types)}) AS {self.query}".encode())


class Line:
    """A connection that answers one prepared statement at a time and is watched from its first one on."""

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
        # How the columns of a statement are decoded, by its name: looked up once.
        self._loaders: dict[str, Any] = {}
        self._is_watched = True
        self._loop.add_reader(self._socket, self._read)

    @property
    def is_usable(self) -> bool:
        """Tell whether another statement can be asked."""
        return self._is_watched

    async def rows(self, statement: Statement, *values: Value) -> list[Row]:
        """Return the rows of the answer. A connection that did not answer well is closed, and the pool replaces it."""
        try:
            self._pgconn.send_query_prepared(statement.name.encode(), [_text(value) for value in values], result_format=pq.Format.BINARY)
            if self._pgconn.flush():
                # A question is a few bytes, and nothing else is on its way to the server.
                raise psycopg.OperationalError("the server takes no question")
            self._be_patient()
            self._answer = self._loop.create_future()
            answer = await self._answer
        except BaseException:
            # Whoever is cancelled leaves half an answer behind, and a statement may have to be parsed anew.
            self.end()
            raise
        finally:
            self._answer = self._result = None
        return self._loaded(statement, answer)

    def unwatch(self) -> None:
        """Leave the connection to whoever wants it next."""
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
            loaders.set_pgresult(answer, format=pq.Format.BINARY)
        else:
            loaders.set_pgresult(answer, set_loaders=False)
        try:
            return loaders.load_rows(0, answer.ntuples, tuple)
        finally:
            # The bytes of the answer need not stay until the next one.
            loaders.set_pgresult(None, set_loaders=False)

    def _read(self) -> None:
        """Take what has arrived: the server sends the result, then that it is ready for the next question."""
        try:
            self._pgconn.consume_input()
            while self._answer is not None and not self._answer.done() and not self._pgconn.is_busy():
                self._take(self._answer, self._pgconn.get_result())
        except psycopg.Error as error:
            if self._answer is None:
                # The server has gone while nobody asked; whoever asks next gets another connection.
                self.end()
            elif not self._answer.done():
                self._answer.set_exception(error)

    def _take(self, whole: asyncio.Future[pq.abc.PGresult], result: pq.abc.PGresult | None) -> None:
        if result is not None and result.status == pq.ExecStatus.TUPLES_OK:
            self._result = result
        # Nothing need follow a failure: a server that goes away says so and may leave it at that.
        elif result is not None:
            whole.set_exception(psycopg.errors.error_from_result(result))
        elif self._result is not None:
            whole.set_result(self._result)
        else:
            whole.set_exception(psycopg.OperationalError("the server closed the connection"))

    def _be_patient(self) -> None:
        # One timer for all questions: it looks again when the first of them would have been answered long ago.
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


class LinePool(AsyncConnectionPool[Handle]):
    """psycopg's pool, with a few of its connections kept aside for prepared statements."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._lines: list[Line] = []

    async def rows(self, statement: Statement, *values: Value) -> list[Row]:
        """Ask on a line that is free, else on a further connection of the pool."""
        line = await self._line()
        try:
            return await line.rows(statement, *values)
        finally:
            if line.is_usable and len(self._lines) < _LINES_KEPT and not self.closed:
                self._lines.append(line)
            else:
                await self._give_back(line)

    async def close(self, timeout: float = 5.0) -> None:  # noqa: ASYNC109  (psycopg's own)
        """Close every connection."""
        while self._lines:
            await self._give_back(self._lines.pop())
        await super().close(timeout)

    async def _line(self) -> Line:
        while self._lines:
            line = self._lines.pop()
            if line.is_usable:
                return line
            await self._give_back(line)
        return Line(await self.getconn())

    async def _give_back(self, line: Line) -> None:
        line.unwatch()
        await self.putconn(line.handle)


def _text(value: Value) -> bytes:
    """Return a value as the server reads it. Every text of an array is quoted."""
    if not isinstance(value, list):
        return str(value).encode()
    return ("{" + ",".join(map(_element, value)) + "}").encode()


def _element(value: str | int) -> str:
    if isinstance(value, int):
        return str(value)
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"'
