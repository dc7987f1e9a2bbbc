"""The deletion of a tenant: the order of the deleted rows, the last events of its streams, and the purge of every row."""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import groupby
from typing import Any

import psycopg
import pytest
from django.conf import LazySettings
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from authapi.models import SigningKey
from events.log.numbering import number_batch, open_connection
from events.models import Head, Outbox
from identity.hosts import forget_hosts, resolve_host
from identity.models import FormerTenant, Job, Tenant, User
from identity.purging import coverage
from identity.services import groups, memberships, organizations, roles, tenant_deletion, tenant_purge
from identity.services.failures import BeingDeleted, Invalid, NotSupported
from identity.services.jobs import run_job
from identity.services.tenants import create_tenant, set_tenant_status
from provisioning.engine import dispatch, lanes
from provisioning.models import Lane
from provisioning.runs.outcomes import Failure
from tests.deadlines import eventually
from tests.depth import sized
from tests.events.log_reading import folded, numbered, tables, types
from tests.factories.admin import Rows, browser_of, new_staff
from tests.factories.identity import make_connection, make_user
from tests.factories.models.identity import TenantFactory
from tests.identity.sweeps import take_all_unattended_jobs
from tests.provisioning.engine.logs import make_stream


@pytest.fixture(autouse=True)
def _settings(settings: LazySettings) -> None:
    settings.TENANT_DRAIN_SECONDS = 0.0


def deleted(tenant: Tenant) -> Tenant:
    """Delete a tenant with a job, as the workers do, and return the tenant."""
    job = tenant_deletion.start(tenant_id=tenant.pk)
    assert run_job(job.pk)
    tenant.refresh_from_db()
    return tenant


def purged(tenant: Tenant) -> None:
    Tenant.objects.filter(pk=tenant.pk).update(purge_after=timezone.now())
    assert tenant_purge.purge_tenant(tenant.pk)


def rows_that_name(tenant_id: str) -> dict[str, int]:
    """Count the rows of each table that contain the id in any column.

    Tables without such a row are left out. The table of former tenants is also left out, because its row only reserves the id.
    """
    found = {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'"
        )
        for (table,) in cursor.fetchall():
            cursor.execute(f'SELECT count(*) FROM "{table}" t WHERE t::text LIKE %s', [f"%{tenant_id}%"])  # noqa: S608  (the schema's own names)
            if count := cursor.fetchone()[0]:
                found[table] = count
    found.pop("identity_formertenant", None)
    return found


def _populate(tenant: Tenant) -> None:
    here: dict[str, Any] = {"tenant_id": tenant.pk}
    people = make_connection(**here, name="people")
    ada, grace = make_user(connection=people), make_user(connection=people)
    organization = organizations.create_organization(**here, name="acme")
    role = roles.create_role(**here, name="editor")
    group = groups.create_group(**here, name="engineers")
    directory = groups.create_group(**here, name="directory", type="connection", connection_id=people.pk)
    inside = {**here, "organization_id": organization.pk}
    memberships.add_connection(**inside, connection_id=people.pk)
    memberships.add_members(**inside, user_ids=[ada.user_id])
    memberships.assign_member_roles(**inside, user_id=ada.user_id, role_ids=[role.pk])
    groups.add_group_members(**here, group_id=group.pk, user_ids=[ada.user_id, grace.user_id])
    groups.add_group_members(**here, group_id=directory.pk, user_ids=[ada.user_id])
    groups.assign_group_roles(**here, group_id=group.pk, role_ids=[role.pk])


def test_the_rows_of_a_tenant_are_deleted_in_the_documented_order_with_their_events(tenant: Tenant) -> None:
    _populate(tenant)
    before = len(numbered(tenant.pk))

    deleted(tenant)

    assert [name for name, _ in groupby(types(tenant.pk)[before:])] == [
        "organization.member.role.deleted",
        "organization.member.deleted",
        "organization.connection.removed",
        "organization.deleted",
        # When a connection is deleted, its groups are deleted first, and then its users. The memberships of a user are deleted before the
        # user.
        "group.member.deleted",
        "group.deleted",
        "group.member.deleted",
        "user.deleted",
        "group.member.deleted",
        "user.deleted",
        "connection.deleted",
        "group.role.deleted",
        "group.deleted",
    ]
    assert folded(numbered(tenant.pk)) == tables(tenant.pk) == {}


def test_the_hosts_of_the_tenant_refuse_requests_immediately_and_no_new_rows_are_created(tenant: Tenant) -> None:
    tenant_deletion.start(tenant_id=tenant.pk)

    match = resolve_host(f"{tenant.pk}.example.test")
    assert match is not None
    assert not match.is_active
    with pytest.raises(BeingDeleted):
        make_connection(tenant_id=tenant.pk, name="another")
    with pytest.raises(BeingDeleted):
        roles.create_role(tenant_id=tenant.pk, name="another")
    with pytest.raises(NotSupported, match="deleting cannot become active"):
        set_tenant_status(tenant_id=tenant.pk, status="active")


@pytest.mark.parametrize("status", ["suspended", "deleted"])
def test_a_change_of_the_status_on_an_old_page_does_not_end_a_deletion(tenant: Tenant, status: str) -> None:
    tenant_deletion.start(tenant_id=tenant.pk)

    with pytest.raises(NotSupported, match="A tenant that is deleting cannot become"):
        set_tenant_status(tenant_id=tenant.pk, status=status)

    assert Tenant.objects.get(pk=tenant.pk).status == Tenant.Status.DELETING


def test_a_deletion_starts_only_with_its_own_function(tenant: Tenant) -> None:
    with pytest.raises(NotSupported, match="A tenant that is active cannot become deleting"):
        set_tenant_status(tenant_id=tenant.pk, status="deleting")


def test_a_repeated_request_does_not_start_a_second_job(tenant: Tenant) -> None:
    assert tenant_deletion.start(tenant_id=tenant.pk) == tenant_deletion.start(tenant_id=tenant.pk)


def test_a_deletion_can_be_canceled_only_before_the_first_row_is_deleted(tenant: Tenant, settings: LazySettings) -> None:
    settings.TENANT_DELETION_GRACE_DAYS = 1.0
    people = make_connection(tenant_id=tenant.pk)
    user = make_user(connection=people)
    job = tenant_deletion.start(tenant_id=tenant.pk)
    run_job(job.pk)
    assert User.objects.of(tenant.pk).filter(pk=user.pk).exists()
    assert job.pk not in take_all_unattended_jobs()

    assert tenant_deletion.restore(tenant_id=tenant.pk).status == "suspended"

    settings.TENANT_DELETION_GRACE_DAYS = 0.0
    run_job(tenant_deletion.start(tenant_id=tenant.pk).pk, chunks=1)
    with pytest.raises(NotSupported, match="has begun"):
        tenant_deletion.restore(tenant_id=tenant.pk)


def test_the_deletion_of_a_tenant_deletes_its_signing_keys(tenant: Tenant) -> None:
    rows = Rows(tenant)
    rows.of(SigningKey)

    deleted(tenant)

    assert not SigningKey.objects.of(tenant.pk).exists()


def test_the_deletion_waits_for_its_event_streams(tenant: Tenant, settings: LazySettings) -> None:
    settings.TENANT_DRAIN_SECONDS = 3600.0
    people = make_connection(tenant_id=tenant.pk)
    make_user(connection=people)
    stream = make_stream(tenant)
    job = tenant_deletion.start(tenant_id=tenant.pk)

    assert run_job(job.pk)
    assert Tenant.objects.get(pk=tenant.pk).status == "deleting"
    numbered(tenant.pk)
    run_job(job.pk)
    assert Tenant.objects.get(pk=tenant.pk).status == "deleting"
    dispatch.dispatch_stream(stream.pk)
    assert Lane.objects.filter(stream_id=stream.pk).exists()
    run_job(job.pk)
    assert Tenant.objects.get(pk=tenant.pk).status == "deleting"

    lanes.bury_waiting(stream.pk, Failure("configuration", "gone"), limit=10)
    assert not Lane.objects.filter(stream_id=stream.pk).exists()
    run_job(job.pk)

    assert Tenant.objects.get(pk=tenant.pk).status == "deleted"


def test_a_deletion_continues_and_says_so_if_its_streams_miss_the_deadline(tenant: Tenant) -> None:
    make_user(connection=make_connection(tenant_id=tenant.pk))
    make_stream(tenant)

    assert deleted(tenant).status == "deleted"

    job = Job.objects.of(tenant.pk).get(type=Job.Type.TENANT_DELETION)
    assert "had not delivered all events" in job.status_details


def test_the_log_of_a_deleted_tenant_is_kept_for_its_retention(tenant: Tenant) -> None:
    Tenant.objects.filter(pk=tenant.pk).update(event_retention_days=3)
    deleted(tenant)

    assert tenant.purge_after is not None
    assert timedelta(days=2.9) < tenant.purge_after - timezone.now() <= timedelta(days=3)
    assert tenant.pk not in tenant_purge.due_tenants()
    with pytest.raises(NotSupported):
        tenant_purge.purge_tenant(tenant.pk)


def test_a_purge_deletes_every_row_of_the_tenant_and_no_row_of_other_tenants(tenant: Tenant) -> None:
    other = TenantFactory.create(id=f"u-{secrets.token_hex(6)}", name="other", host=f"u-{secrets.token_hex(6)}.example.test")
    for rows in (Rows(tenant), Rows(other)):
        for table in coverage().ordered:
            rows.of(table.model)
        # The sign-in adds a row to the table of sessions. The purge must delete this row, although the table has no column for a tenant.
        browser_of(new_staff(rows.tenant))
    sessions = Session.objects.count()
    kept = rows_that_name(other.pk)
    assert set(rows_that_name(tenant.pk)) >= {table.model._meta.db_table for table in coverage().ordered if table.path == "tenant_id"}

    Tenant.objects.filter(pk=tenant.pk).update(status="deleted")
    purged(tenant)

    assert rows_that_name(tenant.pk) == {}
    assert rows_that_name(other.pk) == kept
    assert Session.objects.count() == sessions - 1


def test_a_purge_in_chunks_of_one_row_deletes_every_row(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenant_purge, "CHUNK_ROWS", 1)
    rows = Rows(tenant)
    for table in coverage().ordered:
        rows.of(table.model)
    Tenant.objects.filter(pk=tenant.pk).update(status="deleted")

    purged(tenant)

    assert rows_that_name(tenant.pk) == {}


def test_hosts_of_a_purged_tenant_can_be_used_again_and_its_id_cannot(tenant: Tenant) -> None:
    host = f"{tenant.pk}.example.test"
    deleted(tenant)
    purged(tenant)

    forget_hosts()
    assert resolve_host(host) is None
    assert FormerTenant.objects.filter(pk=tenant.pk).exists()
    with pytest.raises(Invalid, match="A deleted tenant had this id"):
        create_tenant(tenant_id=tenant.pk, name="again", host="again.example.test")
    heir = TenantFactory.create(id=f"h-{secrets.token_hex(6)}", name="heir", host=host)
    forget_hosts()
    assert resolve_host(host).tenant_id == heir.pk  # type: ignore[union-attr]  # just created


@contextmanager
def numbering_without_end(tenant_id: str) -> Iterator[list[psycopg.Error]]:
    """Number the events of the tenant in two threads while the block runs. Yield a list of the errors of the threads."""
    errors: list[psycopg.Error] = []
    stopping = threading.Event()

    def number() -> None:
        with open_connection() as database:
            try:
                while not stopping.is_set():
                    number_batch(database, tenant_id)
            except psycopg.Error as error:
                errors.append(error)

    threads = [threading.Thread(target=number) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield errors
    finally:
        stopping.set()
        for thread in threads:
            thread.join(10)


def is_purged(tenant_id: str) -> bool:
    try:
        return tenant_purge.purge_tenant(tenant_id)
    except tenant_purge.PurgeBlocked:
        return False


@pytest.mark.sized
def test_numbering_during_a_purge_does_not_wait_or_deadlock(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenant_purge, "CHUNK_ROWS", 3)
    make_user(connection=make_connection(tenant_id=tenant.pk))
    deleted(tenant)
    Tenant.objects.filter(pk=tenant.pk).update(purge_after=timezone.now())
    Outbox.objects.bulk_create(Outbox(event=2**50 + secrets.randbelow(2**50), tenant_id=tenant.pk) for _ in range(sized(60, deep=300)))

    with numbering_without_end(tenant.pk) as errors:
        eventually(lambda: is_purged(tenant.pk), seconds=30)

    assert errors == []
    assert not Head.objects.filter(pk=tenant.pk).exists()
    assert rows_that_name(tenant.pk) == {}


def test_the_tenant_of_localhost_cannot_be_deleted(tenant: Tenant, settings: LazySettings) -> None:
    settings.LOCALHOST_TENANT = tenant.pk
    with pytest.raises(NotSupported, match="LOCALHOST_TENANT"):
        tenant_deletion.start(tenant_id=tenant.pk)


def test_the_commands_delete_and_purge_a_tenant(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_user(connection=make_connection(tenant_id=tenant.pk))
    Tenant.objects.filter(pk=tenant.pk).update(event_retention_days=0)
    monkeypatch.setattr("builtins.input", lambda _prompt: "another")
    with pytest.raises(CommandError, match="Nothing was deleted"):
        call_command("delete_tenant", tenant.pk)
    assert re.search(r"^users +1$", capsys.readouterr().out, re.MULTILINE)

    call_command("delete_tenant", tenant.pk, "--yes")
    assert f"{tenant.pk} is deleted." in capsys.readouterr().out
    call_command("purge_tenants", "--list")
    assert f"{tenant.pk}  due" in capsys.readouterr().out
    call_command("purge_tenants")

    assert f"{tenant.pk} is purged." in capsys.readouterr().out
    assert rows_that_name(tenant.pk) == {}


@pytest.mark.parametrize("status", ["active", "suspended"])
def test_a_tenant_that_is_not_deleted_is_never_purged(tenant: Tenant, status: str) -> None:
    set_tenant_status(tenant_id=tenant.pk, status=status)
    for purge_after in (None, timezone.now() - timedelta(days=1)):
        Tenant.objects.filter(pk=tenant.pk).update(purge_after=purge_after)
        with pytest.raises(NotSupported):
            tenant_purge.purge_tenant(tenant.pk)
    assert Tenant.objects.filter(pk=tenant.pk).exists()
