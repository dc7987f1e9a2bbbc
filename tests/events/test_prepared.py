"""Statements without a cursor: the same rows, the same errors, and a connection that is never left half read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import psycopg
import pytest
from django.db import connection
from psycopg import errors
from psycopg_pool import AsyncConnectionPool

from events.log import read_pool
from events.prepared import Statement

Result = TypeVar("Result")
Pool = AsyncConnectionPool[psycopg.AsyncConnection[Any]]

ECHO = Statement("test_echo", ("text", "bigint"), "SELECT $1, $2, $1::bytea, '2026-01-02 03:04:05+00'::timestamptz, NULL::text")
MANY = Statement("test_many", ("bigint",), "SELECT n, repeat('x', 1000) FROM generate_series(1, $1) n")
SLOW = Statement("test_slow", ("text",), "SELECT pg_sleep($1::float)::text")
WRONG = Statement("test_wrong", ("bigint",), "SELECT 1 / ($1 - $1)")


@pytest.fixture(autouse=True)
def _with_a_database(committed_db: None) -> None:
    """Every statement here runs on the test's server."""


def _with(story: Callable[[Pool], Awaitable[Result]]) -> Result:
    async def told() -> Result:
        pool = read_pool()
        await pool.open()
        try:
            async with asyncio.timeout(30):
                return await story(pool)
        finally:
            await pool.close()

    return asyncio.run(told())


async def _rows(pool: Pool, statement: Statement, *values: str | int) -> list[tuple[Any, ...]]:
    async with pool.connection() as handle:
        if not await (await handle.execute("SELECT 1 FROM pg_prepared_statements WHERE name = %s", [statement.name])).fetchone():
            await statement.prepare(handle)
        return await statement.rows(handle, *values)


def test_values_come_as_what_they_are() -> None:
    async def story(pool: Pool) -> list[tuple[Any, ...]]:
        return await _rows(pool, ECHO, "Ada", 2**40)

    [(text, number, raw, moment, nothing)] = _with(story)
    assert (text, number, raw, nothing) == ("Ada", 2**40, b"Ada", None)
    assert moment.isoformat() == "2026-01-02T03:04:05+00:00"


@pytest.mark.parametrize("count", [0, 1, 20_000])
def test_an_answer_of_any_size_is_whole(count: int) -> None:
    rows = _with(lambda pool: _rows(pool, MANY, count))
    assert [number for number, _ in rows] == list(range(1, count + 1))


def test_an_error_has_its_name_and_the_next_question_its_answer() -> None:
    async def story(pool: Pool) -> list[tuple[Any, ...]]:
        with pytest.raises(errors.DivisionByZero):
            await _rows(pool, WRONG, 1)
        return await _rows(pool, ECHO, "Ada", 1)

    assert len(_with(story)) == 1


def test_who_is_cancelled_leaves_no_answer_to_the_next() -> None:
    async def story(pool: Pool) -> None:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await _rows(pool, SLOW, "5")
            assert (await _rows(pool, ECHO, "Ada", 1))[0][0] == "Ada"

    _with(story)


def test_a_connection_that_is_cut_in_the_middle_fails_once_and_is_replaced() -> None:
    async def story(pool: Pool) -> None:
        for _ in range(3):
            async with pool.connection() as handle:
                await SLOW.prepare(handle)
                asking = asyncio.create_task(SLOW.rows(handle, "20"))
                await asyncio.to_thread(_terminate, handle.info.backend_pid)
                with pytest.raises(psycopg.OperationalError):
                    await asking
                assert handle.closed
            assert (await _rows(pool, ECHO, "Ada", 1))[0][0] == "Ada"

    _with(story)


def _terminate(pid: int) -> None:
    with connection.cursor() as cursor:
        # The statement runs by then, or is cut before it began.
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    connection.close()


def test_a_server_that_stops_answering_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(pool: Pool) -> None:
        with pytest.raises(psycopg.OperationalError, match="does not answer"):
            await _rows(pool, SLOW, "4")
        assert (await _rows(pool, ECHO, "Ada", 1))[0][0] == "Ada"

    monkeypatch.setattr("events.prepared._PATIENCE_SECONDS", 0.3)
    _with(story)
