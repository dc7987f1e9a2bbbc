"""A new database gets its schema from the dump, or from the migrations if the dump does not match."""

from __future__ import annotations

import dataclasses
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from config.schema import dump
from config.schema.__main__ import made_dump
from config.schema.restoring import restore_schema

COUNT_TABLES = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"


@pytest.fixture
def kept() -> dump.SchemaDump:
    kept = dump.read()
    assert kept is not None, "the dump does not match the migrations: run make schema"
    return kept


@pytest.fixture
def empty() -> Iterator[psycopg.Connection]:
    """Return a connection to an empty database."""
    name = f"schema_{secrets.token_hex(6)}"
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            with psycopg.connect(os.environ["DATABASE_URL"], dbname=name, autocommit=True) as connection:
                yield connection
        finally:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def tables_in(connection: psycopg.Connection) -> int:
    (count,) = connection.execute(COUNT_TABLES).fetchone() or (0,)
    return int(count)


def test_a_restored_schema_has_the_same_dump(kept: dump.SchemaDump, empty: psycopg.Connection) -> None:
    if empty.info.server_version // 10000 != kept.server:
        pytest.skip(f"the dump is for PostgreSQL {kept.server}")
    assert restore_schema(empty)
    assert made_dump(empty.info.dsn) == kept


def test_restoring_the_dump_keeps_the_settings_of_the_session(kept: dump.SchemaDump, empty: psycopg.Connection) -> None:
    read = "SELECT current_setting('search_path'), current_setting('check_function_bodies'), current_setting('client_min_messages')"
    before = empty.execute(read).fetchone()
    restore_schema(empty)
    assert empty.execute(read).fetchone() == before


def test_a_database_that_has_a_table_is_not_changed(empty: psycopg.Connection) -> None:
    empty.execute("CREATE TABLE something (id int)")
    assert not restore_schema(empty)
    assert tables_in(empty) == 1


def test_a_dump_of_another_postgresql_version_is_not_used(
    kept: dump.SchemaDump, empty: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dump, "read", lambda: dataclasses.replace(kept, server=kept.server + 1))
    assert not restore_schema(empty)
    assert tables_in(empty) == 0


def test_a_dump_with_a_statement_that_the_server_refuses_changes_nothing(
    kept: dump.SchemaDump, empty: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    refused = "CREATE EXTENSION there_is_no_such_extension;"
    server = empty.info.server_version // 10000
    monkeypatch.setattr(
        dump, "read", lambda: dataclasses.replace(kept, server=server, statements=f"CREATE TABLE public.a (id int);{refused}")
    )
    assert not restore_schema(empty)
    assert tables_in(empty) == 0
    assert "there_is_no_such_extension" in caplog.text


def test_a_dump_of_other_migrations_is_not_used(kept: dump.SchemaDump, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dump, "sources_digest", lambda: "0" * 64)
    assert dump.read() is None


MIGRATION = '"""Why."""\n\n\nclass Migration:\n    """What."""\n\n    # Which.\n    sql = "CREATE TABLE a ();"\n'


@pytest.mark.parametrize(
    ("old", "new", "is_other"),
    [("Which.", "The first table.", False), ("Why.", "Why so.", False), ("What.", "The table.", False), ("TABLE a", "TABLE b", True)],
    ids=["a comment", "the docstring of the module", "the docstring of a class", "a statement"],
)
def test_only_a_changed_statement_changes_the_digest_of_the_migrations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, is_other: bool
) -> None:
    monkeypatch.setattr(dump, "ROOT", tmp_path)
    file = tmp_path / "events" / "migrations" / "0001_initial.py"
    file.parent.mkdir(parents=True)
    file.write_text(MIGRATION)
    before = dump.sources_digest()
    file.write_text(MIGRATION.replace(old, new))
    assert (dump.sources_digest() != before) == is_other


def test_the_dump_contains_no_session_settings_and_no_dates() -> None:
    printed = (
        "-- Dumped from database version 18.1\n\\restrict abc\n\nSET statement_timeout = 0;\n"
        "SELECT pg_catalog.set_config('search_path', '', false);\n\nCREATE TABLE public.a (id int);\n"
        "INSERT INTO public.django_migrations VALUES\n\t(1, 'x', '0001_initial', '2026-01-02 03:04:05.6+00');\n\\unrestrict abc\n"
    )
    assert dump.statements_of(printed) == (
        "CREATE TABLE public.a (id int);\nINSERT INTO public.django_migrations VALUES\n\t(1, 'x', '0001_initial', now());\n"
    )
