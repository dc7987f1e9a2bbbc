"""Restores the schema of an empty database at once."""

from __future__ import annotations

import logging

import psycopg

from config.schema import dump

logger = logging.getLogger(__name__)

# The dump names the schema `public`. If the search path of a connection begins with another schema, the tables must be created in that
# schema, so the dump cannot be used.
_IS_EMPTY = """
SELECT current_schema() = 'public' AND NOT EXISTS (SELECT FROM pg_class WHERE relnamespace = current_schema()::regnamespace)
"""
# These settings apply to this transaction only. Functions are checked when they are called, since they may name tables that are created
# later.
_WHILE_RESTORING = "SET LOCAL search_path = ''; SET LOCAL check_function_bodies = off; SET LOCAL client_min_messages = warning;\n"


def restore_schema(connection: psycopg.Connection) -> bool:
    """Restore the schema from the dump, and return whether it was restored. The caller then applies the missing migrations.

    Restores everything or nothing, in one transaction. Returns False if the database is not empty, if the sources have changed since the
    dump was made, if the dump is for another version of PostgreSQL, or if the server refuses a statement, such as the statement that
    creates an extension.
    """
    kept = dump.read()
    if kept is None or connection.info.server_version // 10000 != kept.server:
        return False
    try:
        with connection.transaction():
            (is_empty,) = connection.execute(_IS_EMPTY).fetchone() or (False,)
            if is_empty:
                run_statements(connection, kept)
    except psycopg.Error as error:
        logger.warning("the schema could not be restored, so the migrations make it: %s", error)
        return False
    return bool(is_empty)


def run_statements(connection: psycopg.Connection, kept: dump.SchemaDump) -> None:
    """Restore the schema inside the open transaction. Raises `psycopg.Error` when the server refuses a statement."""
    # Without parameters, psycopg sends any number of statements at once.
    connection.execute((_WHILE_RESTORING + kept.statements).encode())
