"""Refuses a pooler that gives a client another server connection for each transaction. Decision: docs/adr/0126.

Such a pooler loses prepared statements and session settings, and gives them to other clients. In session mode a client keeps one server
connection.
"""

from __future__ import annotations

import logging
from typing import Any

import psycopg
from django.db import connection

logger = logging.getLogger(__name__)

_ROUNDS = 3


class TransactionPooling(Exception):
    """DATABASE_URL leads to a pooler that gives each transaction another server connection.

    Each session of the service needs its own server connection: set `pool_mode = session` for this database in PgBouncer, or connect to
    PostgreSQL without a pooler.
    """

    def __str__(self) -> str:
        return " ".join((self.__doc__ or "").split())


def refuse_transaction_pooling() -> None:
    """Raise `TransactionPooling` if DATABASE_URL leads to a pooler that shares server connections.

    Logs a warning if the database does not answer.
    """
    try:
        with _connected() as first, _connected() as second:
            is_shared = _share_servers(first, second)
    except psycopg.Error as error:
        logger.warning("whether a pooler shares connections was not checked: %s", type(error).__name__)
        return
    if is_shared:
        raise TransactionPooling


def _share_servers(first: psycopg.Connection[Any], second: psycopg.Connection[Any]) -> bool:
    """Tell whether a pooler lets two open connections share a server process, or gives one connection different processes.

    Without other clients, some poolers assign the server connection that was returned last, so both connections get the same process. Other
    poolers assign the server connection that was idle for longest, so one connection gets different processes. With other clients, both
    effects occur.
    """
    own = _server_process(first)
    return any(_server_process(first) != own or _server_process(second) == own for _ in range(_ROUNDS))


def _server_process(database: psycopg.Connection[Any]) -> tuple[Any, ...]:
    # Processes of two servers, for example in containers, can have the same number.
    return database.execute("SELECT pg_backend_pid(), pg_postmaster_start_time()").fetchone() or ()


def _connected() -> psycopg.Connection[Any]:
    parameters = connection.get_connection_params()
    for name in ("cursor_factory", "context", "prepare_threshold"):
        parameters.pop(name, None)
    return psycopg.connect(**parameters, autocommit=True, prepare_threshold=None)
