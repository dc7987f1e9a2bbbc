"""The service recognizes a pooler that shares server connections, by comparing the server processes of two connections."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, cast

import psycopg
import pytest

from events.log.numbering import open_connection
from foundation.database.pooler import TransactionPooling, _share_servers

pytestmark = pytest.mark.usefixtures("committed_db")


class Pooled:
    """A client of a pooler in transaction mode: its statements run on several server connections in turn."""

    def __init__(self, *servers: psycopg.Connection[Any]) -> None:
        self._servers = itertools.cycle(servers)

    def execute(self, statement: str) -> psycopg.Cursor[Any]:
        return next(self._servers).execute(statement.encode())


@pytest.fixture
def servers() -> Iterator[list[psycopg.Connection[Any]]]:
    with open_connection() as first, open_connection() as second:
        yield [first, second]


def shared(first: object, second: object) -> bool:
    return _share_servers(cast("psycopg.Connection[Any]", first), cast("psycopg.Connection[Any]", second))


def test_no_pooler_is_reported_if_two_connections_have_different_server_processes(servers: list[psycopg.Connection[Any]]) -> None:
    assert not shared(*servers)


def test_a_pooler_is_reported_if_two_connections_have_the_same_server_process(servers: list[psycopg.Connection[Any]]) -> None:
    assert shared(Pooled(servers[0]), Pooled(servers[0]))


def test_a_pooler_is_reported_if_the_server_process_of_a_connection_changes(servers: list[psycopg.Connection[Any]]) -> None:
    with open_connection() as third:
        assert shared(Pooled(*servers), Pooled(third))


def test_the_error_names_the_setting_of_the_pooler_to_change() -> None:
    assert "set `pool_mode = session` for this database in PgBouncer" in str(TransactionPooling())
