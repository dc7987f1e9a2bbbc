"""Prepared statements return the same rows and raise the same errors as a cursor, and leave no partial answer on a connection."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest
from django.db import connection
from psycopg import errors

from events.log.reading import read_pool
from foundation.database.prepared_statements import Line, LinePool, Statement
from tests.deadlines import eventually

Result = TypeVar("Result")
Pool = LinePool

ECHO = Statement("test_echo", ("text", "bigint"), "SELECT $1, $2, $1::bytea, '2026-01-02 03:04:05+00'::timestamptz, NULL::text")
MANY = Statement("test_many", ("bigint",), "SELECT n, repeat('x', 1000) FROM generate_series(1, $1) n")
SLOW = Statement("test_slow", ("text",), "SELECT pg_sleep($1::float)::text")
PID = Statement("test_pid", ("bigint",), "SELECT pg_backend_pid() FROM generate_series(1, $1)")
LIST = Statement("test_list", ("text[]", "bigint[]"), "SELECT a, b FROM unnest($1, $2) AS t (a, b)")
WRONG = Statement("test_wrong", ("bigint",), "SELECT 1 / ($1 - $1)")


@pytest.fixture(autouse=True)
def _with_a_database(committed_db: None) -> None:
    """Run every statement of this file on the test's server."""


def _with(story: Callable[[Pool], Awaitable[Result]]) -> Result:
    async def told() -> Result:
        pool = read_pool()
        pool._configure = _prepare
        await pool.open()
        try:
            async with asyncio.timeout(30):
                return await story(pool)
        finally:
            await pool.close()

    return asyncio.run(told())


async def _rows(pool: Pool, statement: Statement, *values: str | int) -> list[tuple[Any, ...]]:
    return await pool.rows(statement, *values)


async def _prepare(handle: psycopg.AsyncConnection[Any]) -> None:
    for statement in (ECHO, MANY, SLOW, PID, LIST, WRONG):
        await statement.prepare(handle)


def test_values_have_their_python_types() -> None:
    async def story(pool: Pool) -> list[tuple[Any, ...]]:
        return await _rows(pool, ECHO, "Ada", 2**40)

    [(text, number, raw, moment, nothing)] = _with(story)
    assert (text, number, raw, nothing) == ("Ada", 2**40, b"Ada", None)
    assert moment.isoformat() == "2026-01-02T03:04:05+00:00"


@pytest.mark.parametrize("count", [0, 1, 20_000])
def test_an_answer_of_any_size_is_complete(count: int) -> None:
    rows = _with(lambda pool: _rows(pool, MANY, count))
    assert [number for number, _ in rows] == list(range(1, count + 1))


def test_an_error_of_the_server_has_its_usual_class_and_the_next_statement_works() -> None:
    async def story(pool: Pool) -> list[tuple[Any, ...]]:
        with pytest.raises(errors.DivisionByZero):
            await _rows(pool, WRONG, 1)
        return await _rows(pool, ECHO, "Ada", 1)

    assert len(_with(story)) == 1


def test_a_canceled_call_leaves_no_answer_for_the_next_call() -> None:
    async def story(pool: Pool) -> None:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await _rows(pool, SLOW, "5")
            assert (await _rows(pool, ECHO, "Ada", 1))[0][0] == "Ada"

    _with(story)


def test_a_connection_closed_during_a_statement_fails_once_and_is_replaced() -> None:
    async def story(pool: Pool) -> None:
        for _ in range(3):
            handle = await pool.getconn()
            line = Line(handle)
            asking = asyncio.create_task(line.rows(SLOW, "20"))
            await asyncio.to_thread(_terminate, handle.info.backend_pid)
            with pytest.raises(psycopg.OperationalError):
                await asking
            assert not line.is_usable
            assert handle.closed
            await pool.putconn(handle)
            assert (await _rows(pool, ECHO, "Ada", 1))[0][0] == "Ada"

    _with(story)


def test_an_idle_connection_that_the_server_closed_is_replaced_before_the_next_statement() -> None:
    async def story(pool: Pool) -> None:
        for _ in range(3):
            [(pid,)] = await _rows(pool, PID, 1)
            await asyncio.to_thread(_terminate, pid)
            [(other,)] = await _rows(pool, PID, 1)
            assert other != pid

    _with(story)


def test_one_read_notices_the_closing_message_and_the_end_of_a_connection() -> None:
    async def story(pool: Pool) -> None:
        [(pid,)] = await _rows(pool, PID, 1)
        # The loop stands still until the server has sent its message and closed the connection. Then it reads the socket once.
        terminating = threading.Thread(target=_terminate, args=(pid,))
        terminating.start()
        terminating.join()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        [(other,)] = await _rows(pool, PID, 1)
        assert other != pid

    _with(story)


def test_a_free_connection_is_reused_and_each_concurrent_statement_gets_its_own_answer() -> None:
    async def story(pool: Pool) -> None:
        assert await _rows(pool, PID, 1) == await _rows(pool, PID, 1)
        assert [rows[0][0] for rows in await asyncio.gather(*(_rows(pool, ECHO, str(n), n) for n in range(20)))] == [
            str(n) for n in range(20)
        ]

    _with(story)


def test_a_loop_that_closes_does_not_wait_for_a_connection_that_opens() -> None:
    async def begun(port: int, has_connected: asyncio.Event) -> None:
        pool = LinePool(conninfo=f"host=127.0.0.1 port={port} dbname=silent", min_size=1, open=False)
        await pool.open()
        async with asyncio.timeout(10):
            await has_connected.wait()

    async def told() -> None:
        has_connected = asyncio.Event()
        silent = await asyncio.start_server(lambda _reading, _writing: has_connected.set(), "127.0.0.1", 0)
        await begun(silent.sockets[0].getsockname()[1], has_connected)
        workers = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for worker in workers:
            worker.cancel()
        _, going_on = await asyncio.wait(workers, timeout=5)
        silent.close()
        assert workers
        assert not going_on

    asyncio.run(told())


def test_lists_are_passed_unchanged() -> None:
    texts = ["plain", 'with "quotes"', "back\\slash", "{a,b}", "", "NULL"]
    numbers = [0, 1, -5, 2**40, 7, 8]
    assert _with(lambda pool: pool.rows(LIST, texts, numbers)) == list(zip(texts, numbers, strict=True))


def _terminate(pid: int) -> None:
    with connection.cursor() as cursor:
        # The backend ends while the statement runs, or before the statement starts.
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    connection.close()
    # The server reports the end of the backend before the backend has closed its socket, so wait until its process has ended. The process
    # of a remote server is not in /proc, so the test does not wait for such a process.
    eventually(lambda: not _is_alive(pid))


def _is_alive(pid: int) -> bool:
    try:
        return "postgres" in Path(f"/proc/{pid}/comm").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_server_that_stops_answering_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(pool: Pool) -> None:
        with pytest.raises(psycopg.OperationalError, match="does not answer"):
            await _rows(pool, SLOW, "4")
        assert (await _rows(pool, ECHO, "Ada", 1))[0][0] == "Ada"

    monkeypatch.setattr("foundation.database.prepared_statements._PATIENCE_SECONDS", 0.3)
    _with(story)


@pytest.mark.parametrize(("statement", "values"), [(ECHO, ("Ada", 2**40)), (ECHO, ("☃ '", -1)), (MANY, (300,)), (MANY, (0,))])
def test_a_prepared_statement_and_a_cursor_return_the_same_rows(statement: Statement, values: tuple[str | int, ...]) -> None:
    async def story(pool: Pool) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        async with pool.connection() as handle:
            cursor = psycopg.AsyncRawCursor(handle)
            await cursor.execute(f"EXECUTE {statement.name} ({', '.join(_literal(value) for value in values)})".encode(), binary=True)
            return await _rows(pool, statement, *values), await cursor.fetchall()

    fast, plain = _with(story)
    assert fast == plain


def _literal(value: str | int) -> str:
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"
