"""Fast path: single statements of hot endpoints, run on the event loop as prepared statements, without a thread.

The plain path is `CompiledSelect.first` or a query set, in a thread; docs/figures.md has the measurement. Django's own loaders decode the
rows, and both paths return the same model instances. A process has one pool of four connections for these statements, open from the start
of the process to its end. `Cold` is raised when the pool is closed, when no connection is free in time, and when a statement fails; the
caller then uses the plain path, which reports the cause. For a write without an answer, `Unanswered` is raised.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property, lru_cache, partial
from typing import Any, Generic, TypeVar

import psycopg
from django.db import DEFAULT_DB_ALIAS, connection, connections, models
from django.db.backends.postgresql.psycopg_any import BaseTzLoader
from psycopg.abc import Buffer

from foundation.database.compiled_select import CompiledSelect
from foundation.database.prepared_statements import LinePool, Row, Statement, Value
from foundation.database.session_settings import session_settings, set_statement
from foundation.memory.batching import Gathering
from foundation.memory.ttl_cache import Cold

logger = logging.getLogger(__name__)

Instance = TypeVar("Instance", bound=models.Model)

_MOST_CONNECTIONS = 4
_WAIT_SECONDS = 1.0
# Every statement that the pool prepares on a new connection.
_statements: list[LoopStatement] = []


class Unanswered(Exception):
    """The server received a write but did not answer. The write may have been executed."""


class _Open:
    """The pool of one event loop.

    This class limits how many statements run at a time. psycopg's pool cannot limit them, because it does not see when a connection that
    is reserved for prepared statements is used.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, pool: LinePool) -> None:
        self.loop, self.pool = loop, pool
        self._free = asyncio.Semaphore(_MOST_CONNECTIONS)

    async def rows(self, statement: Statement, values: Sequence[Value]) -> list[Row]:
        """Return the rows of a statement. Raises `Cold` if the statement was not sent, and `Unanswered` if no answer came."""
        async with self._free:
            try:
                line = await self.pool.line()
            except (psycopg.Error, OSError) as error:
                logger.info("%s was not sent on the event loop: %s", statement.name, type(error).__name__)
                raise Cold from error
            try:
                return await line.rows(statement, *values)
            except (psycopg.Error, OSError) as error:
                logger.info("%s was not answered on the event loop: %s", statement.name, type(error).__name__)
                # Errors of psycopg other than `OperationalError` mean that the statement was refused and had no effect.
                is_known = isinstance(error, psycopg.Error) and not isinstance(error, psycopg.OperationalError)
                raise (Cold if is_known else Unanswered) from error
            finally:
                await self.pool.keep(line)


_open: list[_Open] = []


class UtcLoader(BaseTzLoader):  # type: ignore[misc]  # untyped in the stubs
    """Loads times in UTC as Django's loader does, but parses UTC output without psycopg's regular expression."""

    timezone = UTC

    def load(self, data: Buffer) -> datetime:
        text = str(data, "ascii")
        if text.endswith("+00"):
            # Python has no year beyond 9999; psycopg raises the error for such a time.
            with suppress(ValueError):
                return datetime.fromisoformat(text)
        moment: datetime = super().load(data)
        return moment


class LoopStatement:
    """One statement with the parameters `$1`, `$2` and so on. `text` returns its SQL when the pool opens, and may use Django's
    connection.
    """

    def __init__(self, name: str, text: Callable[[], str]) -> None:
        self._name, self._text = name, text
        _statements.append(self)

    @cached_property
    def statement(self) -> Statement:
        return Statement(self._name, (), self._text(), is_text=True)

    async def rows(self, *values: Value) -> list[Row]:
        """Return the rows. Raises `Cold`."""
        try:
            return await _opened().rows(self.statement, values)
        except Unanswered as error:
            raise Cold from error

    async def changes(self, *values: Value) -> bool:
        """Run a write, and return whether it changed a row: its `RETURNING` clause returns changed rows. Raises `Cold` and `Unanswered`."""
        return bool(await _opened().rows(self.statement, values))


class LoopSelect(Generic[Instance]):
    """A query for one row by text values, like `CompiledSelect`, run on the event loop."""

    def __init__(self, name: str, query: Callable[..., models.QuerySet[Instance]], *names: str) -> None:
        self._compiled = CompiledSelect(query, *names)
        self._statement = LoopStatement(name, lambda: numbered(self._compiled.sql))

    async def first(self, **values: str) -> Instance | None:
        """Return the row for these values, or None. Queries every time. Raises `Cold`."""
        found = await self._statement.rows(*self._compiled.parameters(**values))
        return self._compiled.built(found[0], _wrapper()) if found else None


class GatheredSelect(Generic[Instance]):
    """A query that serves many callers at once: the calls that arrive while a statement runs are combined into the next statement.

    The query selects by text columns and returns at most one row for each combination of their values.
    """

    def __init__(self, name: str, query: Callable[..., models.QuerySet[Instance]], *names: str) -> None:
        self._compiled = CompiledSelect(query, *names)
        self._statement = LoopStatement(name, self._text)
        self._gathered: Gathering[tuple[str, ...], Instance | None] = Gathering(self._rows)
        self._names = names

    async def first(self, **values: str) -> Instance | None:
        """Return the row for these values, or None. A statement that is already running is never used. Raises `Cold`."""
        _opened()
        return await self._gathered.ask(tuple(values[name] for name in self._names))

    async def _rows(self, asked: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], Instance | None]:
        found: dict[tuple[str, ...], Instance | None] = dict.fromkeys(asked)
        for number, *columns in await self._statement.rows(*([*column] for column in zip(*asked, strict=True))):
            found[asked[int(number) - 1]] = self._compiled.built(columns, _wrapper())
        return found

    def _text(self) -> str:
        """Return the statement that runs the query once for each combination of values."""
        names = ", ".join(f"v{number}" for number in range(len(self._names)))
        arrays = ", ".join(f"${number}::text[]" for number in range(1, len(self._names) + 1))
        places = iter(self._compiled.parameters(**{name: f"asked.v{number}" for number, name in enumerate(self._names)}))
        inner = re.sub("%s", lambda _place: str(next(places)), self._compiled.sql)
        # The inner query comes from Django and contains only names of the model.
        asked = f"unnest({arrays}) WITH ORDINALITY AS asked ({names}, number)"
        return f"SELECT asked.number, found.* FROM {asked}, LATERAL ({inner}) AS found"  # noqa: S608


@lru_cache(maxsize=1)
def _wrapper() -> Any:
    """Return a Django connection that is never opened. The converters need it; without it, each task would create another connection for
    them.
    """
    return connections.create_connection(DEFAULT_DB_ALIAS)


def numbered(sql: str) -> str:
    """Return Django's SQL with numbered parameters, as the server expects."""
    count = iter(range(1, sql.count("%s") + 1))
    return re.sub("%s", lambda _place: f"${next(count)}", sql)


async def open_loop_queries() -> None:
    """Open the pool for this event loop. Its connections are opened in the background, or on first use."""
    if _open and _open[0].loop is asyncio.get_running_loop():
        return
    # Compile the statements in a thread: this may use Django's connection, which must not be used on the event loop.
    pool = await asyncio.to_thread(_closed_pool)
    await pool.open()
    _open[:] = [_Open(asyncio.get_running_loop(), pool)]


async def close_loop_queries() -> None:
    """Close the pool of this event loop, if it is open."""
    if _open and _open[0].loop is asyncio.get_running_loop():
        await _open.pop().pool.close()


def _opened() -> _Open:
    if not _open or _open[0].loop is not asyncio.get_running_loop():
        raise Cold
    return _open[0]


def _closed_pool() -> LinePool:
    try:
        parameters = connection.get_connection_params()
        for each in _statements:
            _ = each.statement
        values = session_settings() | {"timezone": connection.timezone_name}
    finally:
        connection.close()
    for name in ("cursor_factory", "prepare_threshold"):
        parameters.pop(name, None)
    return LinePool(
        kwargs={**parameters, "autocommit": True, "prepare_threshold": None},
        min_size=1,
        max_size=_MOST_CONNECTIONS,
        timeout=_WAIT_SECONDS,
        max_idle=60.0,
        configure=partial(_prepare, values),
        open=False,
        name="hot",
        kept=_MOST_CONNECTIONS,
    )


async def _prepare(values: Mapping[str, str], handle: psycopg.AsyncConnection[Any]) -> None:
    await handle.execute(*set_statement(values))
    if _wrapper().timezone is UTC:
        handle.adapters.register_loader("timestamptz", UtcLoader)
    for each in _statements:
        await each.statement.prepare(handle)
