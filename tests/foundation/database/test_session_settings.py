"""Every kind of database connection has time limits. No limit is a startup option, because a pooler may refuse startup options."""

from __future__ import annotations

import asyncio

import pytest
from django.db import connection

from events.log.numbering import open_connection
from events.log.reading import read_pool
from foundation.database.loop_queries import _closed_pool
from foundation.database.prepared_statements import LinePool

pytestmark = pytest.mark.usefixtures("committed_db")


def limits_of(pool: LinePool) -> tuple[str, str]:
    async def story() -> tuple[str, str]:
        await pool.open()
        try:
            async with pool.connection() as handle:
                cursor = await handle.execute("SELECT current_setting('statement_timeout'), current_setting('lock_timeout')")
                found: tuple[str, str] = await cursor.fetchone() or ("", "")
                return found
        finally:
            await pool.close()

    return asyncio.run(story())


def test_no_limit_is_a_startup_option() -> None:
    assert not {"options", "session_settings"} & connection.get_connection_params().keys()


def test_the_connection_of_a_request_has_limits_for_statements_and_idle_transactions() -> None:
    connection.close()
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('statement_timeout'), current_setting('idle_in_transaction_session_timeout')")
        assert cursor.fetchone() == ("30s", "1min")


def test_the_connection_of_the_numberer_has_a_limit_for_statements() -> None:
    with open_connection() as database:
        assert database.execute("SELECT current_setting('statement_timeout')").fetchone() == ("30s",)


def test_the_connections_of_the_log_readers_have_a_shorter_limit_for_statements() -> None:
    assert limits_of(read_pool()) == ("5s", "10s")


def test_the_connections_of_the_fast_path_have_limits_for_statements_and_locks() -> None:
    assert limits_of(_closed_pool()) == ("30s", "10s")
