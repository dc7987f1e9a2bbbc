"""Every write that bypasses the signals of Django leaves a mark, and the sweep records the right event for the mark."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from django.core import serializers
from django.core.management import call_command
from django.db import connection, transaction
from django.db.models import F, Value
from django.db.models.functions import Concat
from pytest_django.fixtures import Settings

from events.checks import check_spelling, check_tripwire
from events.log.numbering import open_connection
from events.models import Event, Mark
from events.record import tripwire
from foundation.tenancy import BulkWriteRefused, TenantRequired, tenant_bound
from identity.models import Connection, Tenant, User
from identity.services import memberships, organizations, users
from tests.events.log_reading import folded, numbered, tables, types
from tests.factories.models.identity import TenantFactory


@pytest.fixture(autouse=True)
def _present_triggers(committed_db: None) -> None:
    """Install the triggers of the present source, because the copied database may have the triggers of an earlier version.

    A sweep records the changes of all tenants, so the marks that earlier tests left are deleted.
    """
    tripwire.install()
    Mark.objects.all().delete()


@pytest.fixture
def user(tenant: Tenant, database_connection: Connection) -> User:
    return users.create_user(tenant_id=tenant.pk, connection=database_connection, email="ada@example.test", given_name="Ada")


def run_sql(statement: str, *parameters: str | int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)


def test_updates_and_deletions_without_instances_of_recorded_rows_are_refused(tenant: Tenant, user: User) -> None:
    rows = User.objects.of(tenant.pk)
    with pytest.raises(BulkWriteRefused):
        rows.update(name="x")
    with pytest.raises(BulkWriteRefused):
        User._base_manager.filter(pk=user.pk).update(name="x")
    with pytest.raises(BulkWriteRefused):
        rows.bulk_create([user], ignore_conflicts=True)
    with pytest.raises(BulkWriteRefused):
        rows._raw_delete("default")


def test_bulk_writes_of_instances_are_recorded(tenant: Tenant, user: User, database_connection: Connection) -> None:
    made = User.objects.of(tenant.pk).bulk_create(
        [User(tenant=tenant, connection=database_connection, user_id=f"database|{index}", name=f"user {index}") for index in range(3)]
    )
    for row in (*made, user):
        row.nickname = "many"
    User.objects.of(tenant.pk).bulk_update([*made, user], ["nickname"])
    events = numbered(tenant.pk)
    assert [event["type"] for event in events[2:]] == ["user.created"] * 3 + ["user.updated"] * 4
    assert folded(events) == tables(tenant.pk)
    assert not Mark.objects.filter(tenant_id=tenant.pk).exists()


def test_reading_without_a_tenant_is_refused(tenant: Tenant) -> None:
    with pytest.raises(TenantRequired):
        User.objects.first()


def test_a_manager_returns_only_rows_of_the_named_or_the_bound_tenant(tenant: Tenant, user: User) -> None:
    other = TenantFactory.create()
    assert User.objects.of(tenant.pk).get() == user
    assert not User.objects.of(other.pk).exists()
    with tenant_bound(other.pk):
        assert not User.objects.exists()


def test_a_raw_sql_update_records_an_update_with_the_document_before_the_change(tenant: Tenant, user: User) -> None:
    run_sql("UPDATE identity_user SET given_name = 'Augusta' WHERE id = %s", user.pk)
    run_sql("UPDATE identity_user SET family_name = 'King' WHERE id = %s", user.pk)
    assert tripwire.sweep() == 1
    event = numbered(tenant.pk)[-1]
    assert event["type"] == "user.updated"
    assert event["data"]["previous_object"]["given_name"] == "Ada"
    assert event["data"]["object"]["family_name"] == "King"
    assert not Mark.objects.filter(tenant_id=tenant.pk).exists()


def test_a_raw_sql_delete_records_a_deletion_with_the_complete_profile(tenant: Tenant, user: User) -> None:
    run_sql("DELETE FROM identity_user WHERE id = %s", user.pk)
    tripwire.sweep()
    event = numbered(tenant.pk)[-1]
    assert event["type"] == "user.deleted"
    assert event["data"]["object"]["given_name"] == "Ada"
    assert event["data"]["context"]["connection"]["name"] == "people"


def test_the_sweep_records_the_deletion_of_a_user_before_that_of_its_connection(
    tenant: Tenant, user: User, database_connection: Connection
) -> None:
    run_sql("DELETE FROM identity_user WHERE id = %s", user.pk)
    run_sql("DELETE FROM identity_connection WHERE id = %s", database_connection.pk)
    tripwire.sweep()
    events = numbered(tenant.pk)
    assert [event["type"] for event in events[-2:]] == ["user.deleted", "connection.deleted"]
    assert events[-2]["data"]["context"]["connection"]["name"] == "people"
    assert folded(events) == {}


def test_a_change_that_is_undone_before_the_sweep_records_no_event(tenant: Tenant, user: User, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("Augusta", "Ada"):
        run_sql("UPDATE identity_user SET given_name = %s WHERE id = %s", name, user.pk)
    assert Mark.objects.filter(tenant_id=tenant.pk).exists()
    assert tripwire.sweep() == 0
    assert types(tenant.pk) == ["connection.created", "user.created"]
    assert not Mark.objects.filter(tenant_id=tenant.pk).exists()
    assert "bypassed the signals" not in caplog.text


def test_a_row_that_is_inserted_and_deleted_before_the_sweep_records_no_event(tenant: Tenant, database_connection: Connection) -> None:
    run_sql(
        "INSERT INTO identity_connection (id, tenant_id, name, strategy, display_name, options, sealed_options, realms, enabled_clients,"
        " is_domain_connection, metadata, created_at, updated_at)"
        " VALUES ('con_raw0000000000000', %s, 'raw', 'oidc', '', '{}', '{}', '[]', '[]', false, '{}', now(), now())",
        tenant.pk,
    )
    run_sql("DELETE FROM identity_connection WHERE id = 'con_raw0000000000000'")
    tripwire.sweep()
    assert types(tenant.pk) == ["connection.created"]


def test_a_changed_id_is_recorded_as_a_deletion_and_a_creation(tenant: Tenant, user: User) -> None:
    run_sql("UPDATE identity_user SET user_id = 'database|renamed' WHERE id = %s", user.pk)
    tripwire.sweep()
    events = numbered(tenant.pk)
    assert [event["type"] for event in events[-2:]] == ["user.deleted", "user.created"]
    assert folded(events) == tables(tenant.pk)


def test_an_identity_moved_to_another_user_is_recorded_as_updates_of_both_users(
    tenant: Tenant, user: User, database_connection: Connection
) -> None:
    secondary = users.create_user(tenant_id=tenant.pk, connection=database_connection, name="secondary")
    other = users.create_user(tenant_id=tenant.pk, connection=database_connection, name="other")
    users.link_users(tenant_id=tenant.pk, primary_id=user.user_id, secondary_id=secondary.user_id)
    before = len(numbered(tenant.pk))
    run_sql("UPDATE identity_linkedidentity SET user_id = %s WHERE user_id = %s", other.pk, user.pk)
    tripwire.sweep()
    events = numbered(tenant.pk)
    changed = {event["data"]["object"]["user_id"]: len(event["data"]["object"]["identities"]) for event in events[before:]}
    assert changed == {user.user_id: 1, other.user_id: 2}
    assert folded(events) == tables(tenant.pk)


def test_a_row_cannot_change_its_tenant(tenant: Tenant, user: User) -> None:
    with pytest.raises(Exception, match="never changes its tenant"), transaction.atomic():
        run_sql("UPDATE identity_user SET tenant_id = 'other' WHERE id = %s", user.pk)


def test_an_update_with_an_expression_records_the_resulting_value(tenant: Tenant, user: User) -> None:
    user.name = Concat(F("name"), Value("!"))
    user.save()
    assert numbered(tenant.pk)[-1]["data"]["object"]["name"] == "ada@example.test!"


def test_a_login_leaves_no_mark(tenant: Tenant, user: User) -> None:
    run_sql("UPDATE identity_user SET last_login = now(), logins_count = logins_count + 1, last_ip = '192.0.2.1' WHERE id = %s", user.pk)
    assert not Mark.objects.filter(tenant_id=tenant.pk).exists()


def test_the_sweep_records_rows_loaded_from_a_fixture(tenant: Tenant, user: User, tmp_path: Path) -> None:
    user.name = "From a fixture"
    fixture = tmp_path / "users.json"
    fixture.write_text(serializers.serialize("json", [user]))
    call_command("loaddata", str(fixture), verbosity=0)
    assert types(tenant.pk)[-1] == "user.created"
    tripwire.sweep()
    events = numbered(tenant.pk)
    assert events[-1]["data"]["object"]["name"] == "From a fixture"
    assert folded(events) == tables(tenant.pk)


def test_a_save_with_signals_after_a_write_without_signals_records_both_changes_once(tenant: Tenant, user: User) -> None:
    run_sql("UPDATE identity_user SET given_name = 'Augusta' WHERE id = %s", user.pk)
    users.update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"family_name": "King"})
    tripwire.sweep()
    events = numbered(tenant.pk)
    assert [event["type"] for event in events] == ["connection.created", "user.created", "user.updated"]
    assert folded(events) == tables(tenant.pk)


def test_the_sweep_skips_a_document_locked_by_another_transaction(tenant: Tenant, user: User) -> None:
    run_sql("UPDATE identity_user SET given_name = 'Augusta' WHERE id = %s", user.pk)
    locked, release = threading.Event(), threading.Event()

    def work() -> None:
        with transaction.atomic():
            users.locked_user(tenant_id=tenant.pk, user_id=user.user_id)
            locked.set()
            assert release.wait(10)
        connection.close()

    worker = threading.Thread(target=work)
    worker.start()
    assert locked.wait(10)
    tripwire.sweep()
    assert types(tenant.pk)[-1] == "user.created"
    release.set()
    worker.join()
    tripwire.sweep()
    assert types(tenant.pk)[-1] == "user.updated"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param("SELECT 1 FROM identity_user WHERE id = %s FOR UPDATE", id="the row"),
        # The row already has a mark. The trigger does not write a second mark: it keeps the image of the first mark, and locks this mark.
        pytest.param("UPDATE identity_user SET family_name = 'King' WHERE id = %s", id="the row and its mark"),
        pytest.param("UPDATE events_mark SET image = image WHERE document_key = %s::text", id="the mark"),
    ],
)
def test_the_sweep_does_not_wait_for_a_locked_row_or_a_locked_mark(
    tenant: Tenant, user: User, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    run_sql("UPDATE identity_user SET given_name = 'Augusta' WHERE id = %s", user.pk)
    with open_connection() as other, other.transaction():
        other.execute(change, [user.pk])
        assert tripwire.sweep() == 0
        assert types(tenant.pk)[-1] == "user.created"
        # A sweep that waited for the lock would end with a timeout, and would log an error.
        assert f"the leftover change of user {user.pk}" not in caplog.text
    tripwire.sweep()
    assert types(tenant.pk)[-1] == "user.updated"


@pytest.mark.parametrize(
    ("change", "event_type"),
    [
        pytest.param("DELETE FROM identity_organizationmember WHERE user_id = %s", "organization.member.deleted", id="deleted"),
        pytest.param(
            "INSERT INTO identity_organizationmember (tenant_id, organization_id, user_id, created_at) SELECT tenant_id, o.id, u.id, now()"
            " FROM identity_user u JOIN identity_organization o USING (tenant_id) WHERE u.id = %s",
            "organization.member.added",
            id="added",
        ),
    ],
)
def test_the_sweep_skips_only_memberships_whose_organization_is_locked(
    tenant: Tenant, user: User, change: str, event_type: str, caplog: pytest.LogCaptureFixture
) -> None:
    free, locked = (organizations.create_organization(tenant_id=tenant.pk, name=name) for name in ("free", "locked"))
    if event_type == "organization.member.deleted":
        for organization in (free, locked):
            memberships.add_members(tenant_id=tenant.pk, organization_id=organization.pk, user_ids=[user.user_id])
    run_sql(change, user.pk)
    before = len(types(tenant.pk))
    with open_connection() as other, other.transaction():
        other.execute("SELECT 1 FROM identity_organization WHERE id = %s FOR UPDATE", [locked.pk])
        tripwire.sweep()
        swept = numbered(tenant.pk)[before:]
        assert [(event["type"], event["data"]["object"]["organization"]["id"]) for event in swept] == [(event_type, free.pk)]
        assert "could not be recorded" not in caplog.text
    tripwire.sweep()
    assert types(tenant.pk)[before:] == [event_type] * 2


def test_parents_that_were_created_without_signals_are_recorded_before_their_members(tenant: Tenant, user: User) -> None:
    organization_id = _organization_without_signals(tenant)
    before = len(types(tenant.pk))
    run_sql(
        "INSERT INTO identity_organizationmember (tenant_id, organization_id, user_id, created_at) VALUES (%s, %s, %s, now())",
        tenant.pk,
        organization_id,
        user.pk,
    )
    tripwire.sweep()
    assert types(tenant.pk)[before:] == ["organization.created", "organization.member.added"]


def test_the_sweep_skips_a_membership_whose_own_row_is_locked(tenant: Tenant, user: User, caplog: pytest.LogCaptureFixture) -> None:
    organization = organizations.create_organization(tenant_id=tenant.pk, name="acme")
    run_sql(
        "INSERT INTO identity_organizationmember (tenant_id, organization_id, user_id, created_at) VALUES (%s, %s, %s, now())",
        tenant.pk,
        organization.pk,
        user.pk,
    )
    with open_connection() as other, other.transaction():
        other.execute("SELECT 1 FROM identity_organizationmember WHERE user_id = %s FOR UPDATE", [user.pk])
        assert tripwire.sweep() == 0
        assert "could not be recorded" not in caplog.text
    assert tripwire.sweep() == 1


def _organization_without_signals(tenant: Tenant) -> str:
    """Copy a recorded organization with SQL, and return the id of the copy."""
    original = organizations.create_organization(tenant_id=tenant.pk, name="original")
    columns = [str(field.column) for field in original._meta.concrete_fields if field.column not in {"id", "name"}]
    names = ", ".join(columns)
    copied = f"{original.pk[:-4]}copy"
    statement = f"INSERT INTO identity_organization (id, name, {names}) SELECT %s, 'copy', {names} FROM identity_organization WHERE id = %s"  # noqa: S608  (columns of the model)
    run_sql(statement, copied, original.pk)
    return copied


def test_a_document_that_cannot_be_recorded_keeps_its_mark_and_is_not_counted(
    tenant: Tenant, user: User, database_connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    # Python cannot represent this time.
    run_sql("UPDATE identity_user SET given_name = 'Augusta', created_at = 'infinity' WHERE id = %s", user.pk)
    run_sql("UPDATE identity_connection SET display_name = 'People' WHERE id = %s", database_connection.pk)
    try:
        assert tripwire.sweep() == 1
        assert f"the leftover change of user {user.pk} could not be recorded" in caplog.text
        assert Mark.objects.filter(tenant_id=tenant.pk).count() == 1
    finally:
        run_sql("UPDATE identity_user SET created_at = now() WHERE id = %s", user.pk)
    tripwire.sweep()
    assert not Mark.objects.filter(tenant_id=tenant.pk).exists()


def test_a_later_sweep_records_newer_changes_although_older_changes_cannot_be_recorded(
    tenant: Tenant, user: User, database_connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    # Python cannot represent this time.
    run_sql("UPDATE identity_user SET given_name = 'Augusta', created_at = 'infinity' WHERE id = %s", user.pk)
    run_sql("UPDATE identity_connection SET display_name = 'People' WHERE id = %s", database_connection.pk)
    try:
        assert [tripwire.sweep(limit=1) for _ in range(3)] == [0, 1, 0]
        caplog.clear()
        assert tripwire.sweep(limit=1) == 0
        assert f"the leftover change of user {user.pk} could not be recorded" in caplog.text
    finally:
        run_sql("UPDATE identity_user SET created_at = now() WHERE id = %s", user.pk)
    assert [tripwire.sweep(limit=1) for _ in range(2)] == [0, 1]
    assert not Mark.objects.filter(tenant_id=tenant.pk).exists()


def test_one_sweep_records_at_most_the_given_number_of_marks(tenant: Tenant, user: User, database_connection: Connection) -> None:
    run_sql("UPDATE identity_user SET given_name = 'Augusta' WHERE id = %s", user.pk)
    run_sql("UPDATE identity_connection SET display_name = 'People' WHERE id = %s", database_connection.pk)
    assert [tripwire.sweep(limit=1) for _ in range(3)] == [1, 1, 0]


def test_the_time_of_a_swept_event_is_the_time_of_the_last_change(tenant: Tenant, user: User) -> None:
    run_sql("UPDATE identity_user SET given_name = 'Augusta' WHERE id = %s", user.pk)
    marked_at = Mark.objects.get(tenant_id=tenant.pk).marked_at
    tripwire.sweep()
    assert Event.objects.filter(tenant_id=tenant.pk).latest("id").time == marked_at


def test_the_check_reports_a_missing_trigger_and_a_migration_installs_it(committed_db: None) -> None:
    run_sql("DROP TRIGGER events_tripwire_update ON identity_user")
    assert [message.id for message in check_tripwire(["default"])] == ["events.W001"]
    call_command("migrate", verbosity=0, interactive=False)
    assert check_tripwire(["default"]) == []


@pytest.mark.parametrize("name", ["EVENT_ATTRIBUTE_PREFIX", "EVENT_SOURCE_NAMESPACE"])
def test_a_changed_setting_for_names_in_events_is_reported_if_events_exist(
    tenant: Tenant, user: User, settings: Settings, name: str
) -> None:
    assert check_spelling(["default"]) == []
    setattr(settings, name, "brand")
    assert [message.id for message in check_spelling(["default"])] == ["events.E002"]
