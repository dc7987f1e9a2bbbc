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


def test_two_connections_with_different_processes_are_no_pooler(servers: list[psycopg.Connection[Any]]) -> None:
    assert not shared(*servers)


def test_two_connections_with_the_same_process_are_a_pooler(servers: list[psycopg.Connection[Any]]) -> None:
    assert shared(Pooled(servers[0]), Pooled(servers[0]))


def test_a_connection_whose_process_changes_is_a_pooler(servers: list[psycopg.Connection[Any]]) -> None:
    with open_connection() as third:
        assert shared(Pooled(*servers), Pooled(third))


def test_the_refusal_says_what_to_set() -> None:
    assert "set `pool_mode = session` for this database in PgBouncer" in str(TransactionPooling())
