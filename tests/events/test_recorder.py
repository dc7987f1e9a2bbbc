"""The event of a saved change is recorded once, in the transaction of the change."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from pytest_django.fixtures import Settings

from events.models import Event, Head, Mark, Outbox
from events.record.catalogue import DOCUMENT_KINDS
from events.record.recorder import LogMissing, TransactionRequired, record_changes, record_document
from events.record.tripwire import sweep
from foundation.ids import new_group_id
from foundation.shapes import SchemaViolation
from identity.models import Connection, Group, Tenant, User
from identity.services import users
from identity.services.passwords import set_password
from tests.events.log_reading import folded, numbered, tables, types
from tests.factories.organizations import make_organization

USER, ORGANIZATION, GROUP = (next(kind for kind in DOCUMENT_KINDS if kind.name == name) for name in ("user", "organization", "group"))


def make(tenant: Tenant, database_connection: Connection, **profile: Any) -> User:
    return users.create_user(tenant_id=tenant.pk, connection=database_connection, **{"email": "ada@example.test", **profile})


def test_recording_outside_a_transaction_is_refused(committed_db: None) -> None:
    with pytest.raises(TransactionRequired, match="inside the transaction that makes the change"):
        record_document(USER, "1")


def test_a_change_in_a_tenant_without_a_log_is_refused(tenant: Tenant, database_connection: Connection) -> None:
    Head.objects.filter(pk=tenant.pk).delete()
    with pytest.raises(LogMissing, match="has no log: create tenants through"):
        make(tenant, database_connection)
    assert not User.objects.of(tenant.pk).exists()


def test_a_document_without_a_change_records_no_event(tenant: Tenant, database_connection: Connection) -> None:
    user = make(tenant, database_connection)
    with transaction.atomic():
        assert record_document(USER, str(user.pk)) == 0


def test_recording_a_document_keeps_marks_with_the_same_key_in_other_tables(tenant: Tenant) -> None:
    # Remove the marks of earlier tests.
    sweep()
    organization = make_organization(tenant)
    same_key, other = (
        Group.all_tenants.create(id=key, tenant_id=tenant.pk, name=key, type="tenant") for key in (organization.pk, new_group_id())
    )
    with transaction.atomic():
        with connection.cursor() as cursor:
            # Another program renames the organization and both groups.
            cursor.execute("UPDATE identity_organization SET name = 'renamed' WHERE id = %s", [organization.pk])
            cursor.execute("UPDATE identity_group SET name = 'renamed ' || id WHERE id = ANY(%s)", [[same_key.pk, other.pk]])
        assert record_changes([(ORGANIZATION, organization.pk), (GROUP, other.pk)]) == 2

    assert list(Mark.objects.filter(document_key=organization.pk).values_list("document_table", flat=True)) == [GROUP.table]
    assert sweep() == 1
    assert not Mark.objects.filter(document_key=organization.pk).exists()


def test_only_the_changed_one_of_two_documents_records_an_event(tenant: Tenant, database_connection: Connection) -> None:
    user, organization = make(tenant, database_connection), make_organization(tenant)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("UPDATE identity_organization SET name = 'renamed' WHERE id = %s", [organization.pk])
        assert record_changes([(USER, str(user.pk)), (ORGANIZATION, organization.pk)]) == 1


def test_a_failed_recording_rolls_back_the_change(tenant: Tenant, database_connection: Connection, settings: Settings) -> None:
    settings.EVENT_MAX_BYTES = 600
    with pytest.raises(ValueError, match="exceed the maximum size"):
        make(tenant, database_connection, name="n" * 300)
    assert not User.objects.of(tenant.pk).exists()


def test_data_that_breaks_the_schema_of_its_event_rolls_back_the_change(tenant: Tenant, database_connection: Connection) -> None:
    user = make(tenant, database_connection)
    with connection.cursor() as cursor:
        # Another program writes a list where the schema requires an object.
        cursor.execute("UPDATE identity_user SET app_metadata = '[1]' WHERE id = %s", [user.pk])
    with pytest.raises(SchemaViolation, match="app_metadata"):
        users.update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"name": "Ada"})
    assert User.objects.of(tenant.pk).get(pk=user.pk).name != "Ada"
    assert types(tenant.pk) == ["connection.created", "user.created"]


def test_a_rolled_back_change_leaves_no_event(tenant: Tenant, database_connection: Connection) -> None:
    with contextlib.suppress(ZeroDivisionError), transaction.atomic():
        make(tenant, database_connection)
        raise ZeroDivisionError
    assert types(tenant.pk) == ["connection.created"]


def test_a_rolled_back_savepoint_removes_only_its_own_event(tenant: Tenant, database_connection: Connection) -> None:
    with transaction.atomic():
        user = make(tenant, database_connection)
        with contextlib.suppress(ZeroDivisionError), transaction.atomic():
            users.update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"name": "lost"})
            raise ZeroDivisionError
        users.update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"name": "kept"})
    events = numbered(tenant.pk)
    assert [event["type"] for event in events] == ["connection.created", "user.created", "user.updated"]
    assert folded(events) == tables(tenant.pk)


def test_creating_a_user_is_one_event_with_the_complete_profile(tenant: Tenant, database_connection: Connection) -> None:
    user = make(tenant, database_connection, given_name="Ada", app_metadata={"plan": {"seats": 3}})
    event = numbered(tenant.pk)[-1]
    assert event["type"] == "user.created"
    assert event["data"]["object"]["identities"] == [
        {"connection": "people", "user_id": user.identifier, "provider": "database", "isSocial": False}
    ]
    assert event["data"]["object"]["app_metadata"] == {"plan": {"seats": 3}}
    assert event["data"]["context"]["connection"] == {"id": database_connection.id, "name": "people", "strategy": "database"}
    assert event["source"] == f"urn:svc:{tenant.pk}.{tenant.pk}.example.test"


def test_a_save_that_changes_no_visible_field_records_no_event(tenant: Tenant, database_connection: Connection) -> None:
    user = make(tenant, database_connection)
    user.logins_count += 1
    user.save()
    User.objects.of(tenant.pk).get(pk=user.pk).save()
    set_password(user, "correct horse battery staple")
    assert types(tenant.pk) == ["connection.created", "user.created"]
    assert not Mark.objects.filter(tenant_id=tenant.pk).exists()


def test_a_stale_instance_records_the_values_of_the_row(tenant: Tenant, database_connection: Connection) -> None:
    user = make(tenant, database_connection, given_name="Ada")
    stale = User.objects.of(tenant.pk).get(pk=user.pk)
    users.update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"given_name": "Augusta"})
    stale.family_name = "Lovelace"
    stale.save(update_fields=["family_name"])
    events = numbered(tenant.pk)
    assert events[-1]["data"]["object"]["given_name"] == "Augusta"
    assert folded(events) == tables(tenant.pk)


def test_an_update_event_contains_the_document_before_and_after_the_change(tenant: Tenant, database_connection: Connection) -> None:
    user = make(tenant, database_connection, name="Ada")
    users.block_user(tenant_id=tenant.pk, user_id=user.user_id)
    event = numbered(tenant.pk)[-1]
    assert "blocked" not in event["data"]["previous_object"]
    assert event["data"]["object"]["blocked"] is True


def test_linking_deletes_the_secondary_user_and_updates_the_primary_user(tenant: Tenant, database_connection: Connection) -> None:
    primary = make(tenant, database_connection)
    secondary = make(tenant, database_connection, email="byron@example.test", user_metadata={"gone": True})
    users.link_users(tenant_id=tenant.pk, primary_id=primary.user_id, secondary_id=secondary.user_id)
    events = numbered(tenant.pk)
    assert [event["type"] for event in events[-2:]] == ["user.deleted", "user.updated"]
    assert events[-2]["data"]["object"]["user_id"] == secondary.user_id
    assert events[-2]["data"]["object"]["user_metadata"] == {"gone": True}
    assert "deleted_at" in events[-2]["data"]["object"]
    assert [identity["user_id"] for identity in events[-1]["data"]["object"]["identities"]] == [primary.identifier, secondary.identifier]
    assert len(events[-1]["data"]["previous_object"]["identities"]) == 1
    assert folded(events) == tables(tenant.pk)


def test_unlinking_restores_the_secondary_user(tenant: Tenant, database_connection: Connection) -> None:
    primary = make(tenant, database_connection)
    secondary = make(tenant, database_connection, email="byron@example.test", email_verified=True)
    users.link_users(tenant_id=tenant.pk, primary_id=primary.user_id, secondary_id=secondary.user_id)
    users.unlink_identity(tenant_id=tenant.pk, user_id=primary.user_id, provider="database", identifier=secondary.identifier)
    events = numbered(tenant.pk)
    assert [event["type"] for event in events[-2:]] == ["user.updated", "user.created"]
    assert events[-1]["data"]["object"]["email"] == "byron@example.test"
    assert folded(events) == tables(tenant.pk)


def test_deleting_a_user_with_linked_identities_is_one_event(tenant: Tenant, database_connection: Connection) -> None:
    primary = make(tenant, database_connection)
    secondary = make(tenant, database_connection, email="byron@example.test")
    users.link_users(tenant_id=tenant.pk, primary_id=primary.user_id, secondary_id=secondary.user_id)
    count = len(numbered(tenant.pk))
    users.delete_user(tenant_id=tenant.pk, user_id=primary.user_id)
    events = numbered(tenant.pk)[count:]
    assert [event["type"] for event in events] == ["user.deleted"]
    assert len(events[0]["data"]["object"]["identities"]) == 2
    assert not Mark.objects.filter(tenant_id=tenant.pk).exists()


def test_a_value_that_would_end_a_stream_in_some_clients_is_stored_escaped(tenant: Tenant, database_connection: Connection) -> None:
    make(tenant, database_connection, name="[DONE]")
    body = bytes(Event.objects.filter(tenant_id=tenant.pk, type="user.created").get().body)
    assert b"[DONE]" not in body
    assert numbered(tenant.pk)[-1]["data"]["object"]["name"] == "[DONE]"


def test_recording_a_save_takes_two_additional_statements(tenant: Tenant, database_connection: Connection) -> None:
    user = make(tenant, database_connection)
    statements: list[str] = []
    with connection.execute_wrapper(_collect(statements)):
        user.name = "Augusta"
        user.save(update_fields=["name"])
    ours = [sql for sql in statements if "events_" in sql]
    assert len(ours) == 2
    assert Outbox.objects.filter(tenant_id=tenant.pk).exists()


def _collect(statements: list[str]) -> Callable[..., Any]:
    def wrapper(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        statements.append(sql)
        return execute(sql, *rest)

    return wrapper
