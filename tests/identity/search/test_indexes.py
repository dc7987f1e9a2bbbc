"""The indexes for searches of users: which index a query uses, how searches work without the indexes, and how a command creates them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from identity.checks import check_search_indexes
from identity.models import Connection, User
from identity.search.compiling import compiled_search
from identity.search.indexes import INDEXES, build_search_indexes, missing_search_indexes
from identity.search.rows import UserConditions
from tests.factories.identity import make_user


@pytest.fixture
def ada(database_connection: Connection) -> User:
    return make_user(connection=database_connection, email="ada@corp.com", name="Ada", app_metadata={"plan": "gold"})


@pytest.fixture
def without_indexes(committed_db: None) -> Iterator[None]:
    with connection.cursor() as cursor:
        for index in INDEXES:
            cursor.execute(f"DROP INDEX {index.name}")
    yield
    assert build_search_indexes(connection) == []


def plan_of(tenant_id: str, query: str, index: str) -> str:
    """Return the plan of a search.

    All other indexes of the table are marked as invalid first. Otherwise, the planner could use any index of the small table.
    """
    rows = User.objects.of(tenant_id).filter(UserConditions(tenant_id).of(compiled_search(query))).order_by()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indrelid = 'identity_user'::regclass AND indexrelid <> %s::regclass", [index]
        )
        plan = rows.explain(verbose=True)
        transaction.set_rollback(True)
    return plan


@pytest.mark.parametrize(
    ("query", "index", "narrows"),
    [
        ("name:*quill*", "identity_user_by_text", "quill"),
        ("name:jo*", "identity_user_by_text", "jo%"),
        ("username:ada", "identity_user_by_text", "ada"),
        ("app_metadata.plan:gold", "identity_user_by_metadata", "gold"),
        ("user_metadata.theme:7", "identity_user_by_metadata", "theme"),
        ("email:*@corp.com", "identity_user_by_email_end", "moc.proc@"),
        ("email.domain:corp.com", "identity_user_by_email_end", "moc.proc@"),
        ("_exists_:phone_number", "identity_user_by_phone", "tenant_id"),
        ('phone_number:"+4912345"', "identity_user_by_phone", "+4912345"),
        ("last_login:[2026-01-01 TO *]", "identity_user_by_last_login", "2026"),
    ],
)
def test_each_kind_of_query_uses_the_index_for_it(ada: User, query: str, index: str, narrows: str) -> None:
    condition = next(line for line in plan_of(ada.tenant_id, query, index).split("Index Cond: ")[1:])
    assert narrows in condition


def test_searches_work_without_the_indexes(ada: User, without_indexes: None) -> None:
    assert [index.name for index in missing_search_indexes(connection)] == [index.name for index in INDEXES]
    for query in ("name:*ada*", "app_metadata.plan:gold", "email:*@corp.com"):
        rows = User.objects.of(ada.tenant_id).filter(UserConditions(ada.tenant_id).of(compiled_search(query)))
        assert [row.pk for row in rows] == [ada.pk], query


def test_a_missing_index_that_the_role_may_not_create_is_reported(without_indexes: None) -> None:
    role = f"nobody_{secrets.token_hex(4)}"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {role}")
        cursor.execute(f"GRANT USAGE ON SCHEMA public TO {role}")
        cursor.execute(f"SET ROLE {role}")
    try:
        problems = build_search_indexes(connection)
        with pytest.raises(CommandError, match="identity_user_by_text is missing"):
            call_command("build_search_indexes")
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET ROLE")
            cursor.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
    assert len(problems) == len(INDEXES)
    assert all("read users row by row" in problem and "manage.py build_search_indexes" in problem for problem in problems)
    assert [warning.id for warning in check_search_indexes(databases=["default"])] == ["identity.W002", "identity.W002"]


def test_the_command_creates_missing_and_invalid_indexes(without_indexes: None) -> None:
    call_command("build_search_indexes", stdout=StringIO())
    with connection.cursor() as cursor:
        # The state after a CREATE INDEX CONCURRENTLY that was interrupted: the index exists and is invalid.
        cursor.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", [INDEXES[0].name])
    assert [index.name for index in missing_search_indexes(connection)] == [INDEXES[0].name]
    said = StringIO()
    call_command("build_search_indexes", stdout=said)
    assert (missing_search_indexes(connection), check_search_indexes(databases=["default"])) == ([], [])
    assert "All indexes of the search of users exist" in said.getvalue()
