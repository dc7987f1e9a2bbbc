"""Why services lock the root row of a document: concurrent writers with a fixed order of steps, with and without the lock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import connection, transaction

from events.log.numbering import open_connection
from events.record.catalogue import DOCUMENT_KINDS
from events.record.recorder import record_document
from identity.mail.verification import TicketUsed, confirm_ticket, hand_out_ticket, token_of
from identity.models import Connection, LinkedIdentity, Tenant, User
from identity.services import users
from identity.services.failures import ServiceError
from tests.deadlines import eventually
from tests.events.log_reading import folded, numbered, tables

USER = next(kind for kind in DOCUMENT_KINDS if kind.name == "user")


def rows(tenant: Tenant, database_connection: Connection) -> tuple[User, User]:
    primary = users.create_user(tenant_id=tenant.pk, connection=database_connection, name="primary")
    secondary = users.create_user(tenant_id=tenant.pk, connection=database_connection, name="secondary")
    return primary, secondary


def test_the_last_event_contains_a_state_that_never_existed_if_the_root_is_not_locked(
    tenant: Tenant, database_connection: Connection
) -> None:
    """Two transactions change different rows of one user. Each transaction records the document that it reads.

    So the last event lacks the change of the other transaction.
    """
    primary, _ = rows(tenant, database_connection)
    first_recorded, second_recorded = threading.Event(), threading.Event()
    documents = {}

    def read_document() -> list[str]:
        user = User.objects.of(tenant.pk).get(pk=primary.pk)
        return [user.given_name or "", *[row.identifier for row in user.linked_identities.all()]]

    def link() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO identity_linkedidentity (tenant_id, user_id, connection_id, provider, identifier, profile_data, created_at)"
                " VALUES (%s, %s, %s, 'database', 'other', '{}', now())",
                [tenant.pk, primary.pk, database_connection.pk],
            )
            documents["link"] = read_document()
            first_recorded.set()
            assert second_recorded.wait(10)
        connection.close()

    thread = threading.Thread(target=link)
    thread.start()
    assert first_recorded.wait(10)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE identity_user SET given_name = 'Ada' WHERE id = %s", [primary.pk])
        documents["rename"] = read_document()
    second_recorded.set()
    thread.join()
    # The tables contain both changes. Each recorded document contains only one of the two changes.
    assert read_document() == ["Ada", "other"]
    assert documents == {"link": ["", "other"], "rename": ["Ada"]}


def test_the_second_writer_waits_for_the_root_lock_and_sees_the_first_change(tenant: Tenant, database_connection: Connection) -> None:
    primary, secondary = rows(tenant, database_connection)
    linked, go_on = threading.Event(), threading.Event()

    def link() -> None:
        with transaction.atomic():
            users.link_users(tenant_id=tenant.pk, primary_id=primary.user_id, secondary_id=secondary.user_id)
            linked.set()
            assert go_on.wait(10)
        connection.close()

    def rename() -> None:
        users.update_user(tenant_id=tenant.pk, user_id=primary.user_id, changes={"given_name": "Ada"})
        connection.close()

    first, second = threading.Thread(target=link), threading.Thread(target=rename)
    first.start()
    assert linked.wait(10)
    second.start()
    go_on.set()
    first.join()
    second.join()
    events = numbered(tenant.pk)
    assert folded(events) == tables(tenant.pk)
    last = events[-1]["data"]["object"]
    assert last["given_name"] == "Ada"
    assert len(last["identities"]) == 2


def a_lock_is_waited_for() -> bool:
    with open_connection() as other:
        waiting = (
            "SELECT 1 FROM pg_locks WHERE NOT granted AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())"
        )
        return other.execute(waiting).fetchone() is not None


def test_two_writers_of_the_metadata_of_one_user_lose_no_key(tenant: Tenant, database_connection: Connection) -> None:
    user, _ = rows(tenant, database_connection)

    def add(key: str) -> None:
        users.update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"user_metadata": {key: True}})

    def add_second() -> None:
        add("second")
        connection.close()

    second = threading.Thread(target=add_second)
    with transaction.atomic():
        add("first")
        second.start()
        eventually(a_lock_is_waited_for)
    second.join()
    user.refresh_from_db()
    assert user.user_metadata == {"first": True, "second": True}


def test_a_deletion_by_email_address_keeps_a_user_whose_address_changes_meanwhile(tenant: Tenant, database_connection: Connection) -> None:
    kept = users.create_user(tenant_id=tenant.pk, connection=database_connection, email="a@example.test")
    users.create_user(tenant_id=tenant.pk, connection=database_connection, email="b@example.test")
    deleted: list[int] = []

    def delete(email: str) -> None:
        deleted.append(users.delete_users_by_email(tenant_id=tenant.pk, connection_id=database_connection.pk, email=email))
        connection.close()

    deleting = threading.Thread(target=delete, args=("a@example.test",))
    with transaction.atomic():
        users.update_user(tenant_id=tenant.pk, user_id=kept.user_id, changes={"email": "new@example.test"})
        deleting.start()
        eventually(a_lock_is_waited_for)
    deleting.join()
    delete("B@example.test")
    assert deleted == [0, 1]
    assert list(User.objects.of(tenant.pk).values_list("email", flat=True)) == ["new@example.test"]


def test_the_second_of_two_concurrent_confirmations_of_a_mailed_link_finds_the_link_used(
    tenant: Tenant, database_connection: Connection
) -> None:
    user = users.create_user(tenant_id=tenant.pk, connection=database_connection, email="ada@example.test")
    token = token_of(hand_out_ticket(user=user, identity=None, life=timedelta(hours=1), parameters={}))
    outcomes: list[str] = []

    def confirm() -> None:
        try:
            confirm_ticket(tenant_id=tenant.pk, token=token)
            outcomes.append("confirmed")
        except TicketUsed:
            outcomes.append("used")
        connection.close()

    second = threading.Thread(target=confirm)
    with transaction.atomic():
        confirm_ticket(tenant_id=tenant.pk, token=token)
        second.start()
        eventually(a_lock_is_waited_for)
    second.join()
    assert outcomes == ["used"]


def test_saving_a_linked_identity_first_locks_the_row_of_its_user(tenant: Tenant, database_connection: Connection) -> None:
    primary, _ = rows(tenant, database_connection)
    statements: list[str] = []
    identity = LinkedIdentity(tenant=tenant, user=primary, connection=database_connection, provider="database", identifier="x")

    def note(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        statements.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(note):
        identity.save()
    locks = [index for index, sql in enumerate(statements) if "FOR NO KEY UPDATE" in sql]
    inserts = [index for index, sql in enumerate(statements) if 'INSERT INTO "identity_linkedidentity"' in sql]
    assert locks[0] < inserts[0]


def test_deleting_linked_identities_in_bulk_first_locks_the_rows_of_their_users(tenant: Tenant, database_connection: Connection) -> None:
    primary, _ = rows(tenant, database_connection)
    LinkedIdentity.objects.of(tenant.pk).create(
        tenant=tenant, user=primary, connection=database_connection, provider="database", identifier="x"
    )
    statements: list[str] = []

    def note(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        statements.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(note):
        LinkedIdentity.objects.of(tenant.pk).filter(user=primary).delete()
    locks = [index for index, sql in enumerate(statements) if 'FROM "identity_user"' in sql and "FOR NO KEY UPDATE" in sql]
    deletions = [index for index, sql in enumerate(statements) if 'DELETE FROM "identity_linkedidentity"' in sql]
    assert locks[0] < deletions[0]


def test_concurrent_requests_to_link_two_users_in_opposite_directions_cause_no_deadlock(
    tenant: Tenant, database_connection: Connection
) -> None:
    first, second = rows(tenant, database_connection)
    refused: list[str] = []

    def link(primary: User, secondary: User) -> None:
        try:
            users.link_users(tenant_id=tenant.pk, primary_id=primary.user_id, secondary_id=secondary.user_id)
        except ServiceError as error:
            refused.append(str(error))
        connection.close()

    threads = [threading.Thread(target=link, args=pair) for pair in ((first, second), (second, first))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 1
    with transaction.atomic():
        assert record_document(USER, str(first.pk)) == 0
    assert folded(numbered(tenant.pk)) == tables(tenant.pk)


def test_an_id_that_is_being_linked_is_not_assigned_to_a_new_user(tenant: Tenant, database_connection: Connection) -> None:
    primary, secondary = rows(tenant, database_connection)
    linked, go_on = threading.Event(), threading.Event()
    refused: list[str] = []

    def link() -> None:
        with transaction.atomic():
            users.link_users(tenant_id=tenant.pk, primary_id=primary.user_id, secondary_id=secondary.user_id)
            linked.set()
            assert go_on.wait(10)
        connection.close()

    def create() -> None:
        try:
            users.create_user(tenant_id=tenant.pk, connection=database_connection, identifier=secondary.identifier, name="again")
        except ServiceError as error:
            refused.append(type(error).__name__)
        connection.close()

    first, second = threading.Thread(target=link), threading.Thread(target=create)
    first.start()
    assert linked.wait(10)
    second.start()
    eventually(_somebody_waits_for_a_lock)
    go_on.set()
    first.join()
    second.join()
    assert refused == ["AlreadyExists"]
    assert folded(numbered(tenant.pk)) == tables(tenant.pk)


def _somebody_waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
        return bool(cursor.fetchone()[0])
