"""The first synchronization against a real SCIM server."""

from __future__ import annotations

from typing import Any

import pytest

from events.log.numbering import number_tenant
from events.models import EventStream
from identity.documents import user_document
from identity.models import Connection, Job, Tenant, User
from identity.services.failures import Conflict
from identity.services.jobs import run_job
from identity.services.users import block_user, delete_user, update_user
from provisioning.engine import delivering, dispatch, streams
from provisioning.engine.retrying import RetryLater
from provisioning.mapping.table import DEFAULT_TABLE, map_user
from provisioning.models import Delivery, SynchronizationRow
from provisioning.synchronization import service
from provisioning.synchronization.plan import Plan
from provisioning.synchronization.state import outcomes_of
from tests.depth import sized
from tests.factories.identity import make_user
from tests.factories.scim import RealServer
from tests.provisioning.synchronization.conftest import Synchronize, work_on


def mapped(user: User) -> dict[str, Any]:
    return map_user(user_document(User.objects.of(user.tenant_id).get(pk=user.pk)), DEFAULT_TABLE, "update").resource


def on_server(server: RealServer, user: User) -> dict[str, Any] | None:
    found = server.user(user.user_id)
    return None if found is None else {name: value for name, value in found.items() if name not in ("id", "meta")}


def rows(job: Job, outcome: str) -> list[SynchronizationRow]:
    return list(SynchronizationRow.objects.filter(job=job, outcome=outcome).order_by("pk"))


def test_users_are_created_or_linked_or_updated_or_left_unchanged(
    database_connection: Connection, stream: EventStream, server: RealServer, synchronize: Synchronize
) -> None:
    new = make_user(connection=database_connection, email="new@example.test", name="New")
    known = make_user(connection=database_connection, email="known@example.test", email_verified=True, name="Known")
    moved = make_user(connection=database_connection, email="moved@example.test")
    blocked = make_user(connection=database_connection, email="blocked@example.test")
    block_user(tenant_id=blocked.tenant_id, user_id=blocked.user_id)
    nameless = make_user(connection=database_connection, email=None, phone_number="+4712345678")
    unlinked = server.add(userName="Known@example.test", displayName="From the old directory")
    server.add(userName="old@example.test", externalId=moved.user_id)
    bystander = server.add(userName="bystander@example.test", externalId="hr|17")

    job = synchronize()

    assert (job.status, outcomes_of(job)) == ("completed", {"created": 2, "linked": 1, "updated": 1, "skipped": 1})
    assert all(on_server(server, user) == mapped(user) for user in (new, known, moved, blocked))
    linked = server.user(known.user_id)
    assert linked is not None
    assert linked["id"] == unlinked["id"]
    assert on_server(server, blocked) is not None
    assert mapped(blocked)["active"] is False
    assert bystander in server.users()
    assert len(server.users()) == 5
    assert [(row.user_id, row.reason) for row in rows(job, "skipped")] == [(nameless.user_id, "missing userName")]
    paths = {difference["path"] for difference in rows(job, "updated")[0].differences}
    assert {"userName", 'emails[type eq "work"].value'} <= paths


def test_a_second_run_writes_nothing(database_connection: Connection, server: RealServer, synchronize: Synchronize) -> None:
    for number in range(3):
        make_user(connection=database_connection, email=f"user{number}@example.test", name="Ada", given_name="Ada")
    synchronize()
    before = server.users()
    job = synchronize()
    assert outcomes_of(job) == {"unchanged": 3}
    # The server changes `meta` at every write. So equal accounts prove that the run wrote nothing.
    assert server.users() == before


def test_a_dry_run_reports_the_same_changes_and_writes_nothing(
    database_connection: Connection, server: RealServer, synchronize: Synchronize
) -> None:
    make_user(connection=database_connection, email="new@example.test")
    make_user(connection=database_connection, email="known@example.test", email_verified=True)
    server.add(userName="known@example.test")
    before = server.users()
    dry = synchronize(is_dry_run=True)
    assert server.users() == before
    assert outcomes_of(dry) == outcomes_of(synchronize()) == {"created": 1, "linked": 1}


def test_a_dry_run_reports_that_a_new_user_name_is_taken(
    database_connection: Connection, server: RealServer, synchronize: Synchronize
) -> None:
    user = make_user(connection=database_connection, email="new@example.test")
    server.add(externalId=user.user_id, userName="old@example.test")
    server.add(externalId="database|stranger", userName="new@example.test")
    dry = synchronize(is_dry_run=True)
    assert outcomes_of(dry)["skipped"] == 1
    assert rows(dry, "skipped")[0].reason.startswith("foreign account")
    assert outcomes_of(synchronize()) == outcomes_of(dry)


@pytest.mark.parametrize(("match", "verified"), [("userName", False), ("none", True)])
def test_an_account_with_an_equal_user_name_is_not_linked_without_a_trusted_match(
    match: str, verified: bool, database_connection: Connection, server: RealServer, synchronize: Synchronize
) -> None:
    make_user(connection=database_connection, email="anna@example.test", email_verified=verified)
    held = server.add(userName="anna@example.test")
    job = synchronize(match=match)
    assert outcomes_of(job) == {"skipped": 1}
    assert rows(job, "skipped")[0].reason.startswith("foreign account")
    assert server.users() == [held]


def test_a_foreign_account_is_never_changed(database_connection: Connection, server: RealServer, synchronize: Synchronize) -> None:
    make_user(connection=database_connection, email="anna@example.test", email_verified=True)
    foreign = server.add(userName="anna@example.test", externalId="hr|17")
    assert outcomes_of(synchronize()) == {"skipped": 1}
    assert server.users() == [foreign]


def test_an_operator_can_choose_the_attribute_that_links_accounts(
    database_connection: Connection, server: RealServer, synchronize: Synchronize
) -> None:
    user = make_user(connection=database_connection, email="anna@example.test", app_metadata={"nick": "a-1"})
    twin = make_user(connection=database_connection, email="twin@example.test", app_metadata={"nick": "b-2"})
    account = server.add(userName="legacy-1", nickName="a-1")
    server.add(userName="legacy-2", nickName="b-2")
    server.add(userName="legacy-3", nickName="b-2")
    job = synchronize(match="nickName=app_metadata.nick")
    assert outcomes_of(job) == {"linked": 1, "ambiguous": 1}
    found = server.user(user.user_id)
    assert found is not None
    assert (found["id"], found["userName"]) == (account["id"], "anna@example.test")
    assert server.user(twin.user_id) is None


def test_accounts_without_a_user_are_reported_and_deleted_only_if_requested(
    tenant: Tenant, database_connection: Connection, server: RealServer, synchronize: Synchronize
) -> None:
    user = make_user(connection=database_connection, email="here@example.test")
    server.add(userName="gone@example.test", externalId=f"database|gone-{tenant.pk}")
    server.add(userName="hr@example.test", externalId="hr|17")
    reported = synchronize()
    assert (outcomes_of(reported)["extra"], len(server.users())) == (1, 3)
    assert "not deleted" in reported.status_details
    job = synchronize(deletes_missing=True)
    assert outcomes_of(job) == {"unchanged": 1, "deleted": 1}
    assert {account.get("externalId") for account in server.users()} == {user.user_id, "hr|17"}


def test_deletions_over_the_limit_wait_for_approval(tenant: Tenant, server: RealServer, synchronize: Synchronize) -> None:
    for number in range(3):
        server.add(userName=f"gone{number}@example.test", externalId=f"database|gone{number}")
    job = synchronize(deletes_missing=True, deletion_limit="2")
    assert (job.status, len(server.users())) == ("processing", 3)
    assert "3 accounts without a user here would be deleted, more than the limit of 2" in job.status_details
    assert len(work_on(job).status_details) > 0
    assert len(server.users()) == 3
    service.confirm_deletions(tenant_id=tenant.pk, job_id=job.pk, actor="a person")
    assert (work_on(job).status, outcomes_of(job), server.users()) == ("completed", {"deleted": 3}, [])


def test_declining_the_deletions_keeps_the_accounts(tenant: Tenant, server: RealServer, synchronize: Synchronize) -> None:
    server.add(userName="gone@example.test", externalId="database|gone")
    job = synchronize(deletes_missing=True, deletion_limit="0%")
    service.decline_deletions(tenant_id=tenant.pk, job_id=job.pk, actor="a person")
    assert (work_on(job).status, outcomes_of(job), len(server.users())) == ("completed", {"extra": 1}, 1)


def test_a_comparison_reports_drift_with_masked_values_and_writes_nothing(
    database_connection: Connection, server: RealServer, synchronize: Synchronize
) -> None:
    missing = make_user(connection=database_connection, email="missing@example.test")
    drifted = make_user(connection=database_connection, email="drifted@example.test", name="Anna Berg")
    server.add(userName="drifted@example.test", externalId=drifted.user_id, displayName="Someone", active=True)
    server.add(userName="gone@example.test", externalId="database|gone")
    before = server.users()
    job = synchronize(only_reports=True)
    assert server.users() == before
    assert outcomes_of(job) == {"missing": 1, "different": 1, "extra": 1}
    assert rows(job, "missing")[0].user_id == missing.user_id
    found = {difference["path"]: difference for difference in rows(job, "different")[0].differences}
    assert found["displayName"] == {"path": "displayName", "here": "***", "there": "***"}
    assert b"Someone" not in b"".join(service.report_lines(job))
    shown = synchronize(only_reports=True, shows_values=True)
    found = {difference["path"]: difference for difference in rows(shown, "different")[0].differences}
    assert found["displayName"] == {"path": "displayName", "here": "Anna Berg", "there": "Someone"}


def deliver(tenant: Tenant, stream: EventStream) -> list[tuple[str, str]]:
    number_tenant(tenant.pk)
    dispatch.dispatch_tenant(tenant.pk)
    for key in Delivery.objects.filter(stream_id=stream.pk).values_list("key", flat=True).distinct():
        try:
            delivering.deliver_lane(stream.pk, key)
        except RetryLater:
            continue
    return [(row.event_type, row.state) for row in Delivery.objects.filter(stream_id=stream.pk).order_by("position")]


def test_changes_during_a_synchronization_are_delivered_after_the_stream_is_enabled(
    tenant: Tenant, database_connection: Connection, stream: EventStream, server: RealServer
) -> None:
    changed = make_user(connection=database_connection, email="first@example.test")
    deleted = make_user(connection=database_connection, email="deleted@example.test")
    number_tenant(tenant.pk)
    job = service.start(tenant_id=tenant.pk, stream_id=stream.pk, plan=Plan(rate=1000, enables_stream=True), actor="a test")
    while not outcomes_of(job):
        run_job(job.pk, chunks=1)
        job.refresh_from_db()
    # The job has written both users, but has not ended. So the following changes happen after the position at which the stream will begin.
    update_user(tenant_id=tenant.pk, user_id=changed.user_id, changes={"email": "second@example.test"})
    delete_user(tenant_id=tenant.pk, user_id=deleted.user_id)
    late = make_user(connection=database_connection, email="late@example.test")
    with pytest.raises(Conflict):
        streams.enable_stream(tenant_id=tenant.pk, stream_id=stream.pk)
    assert work_on(job).status == "completed", job.status_details

    stream.refresh_from_db()
    assert (stream.status, stream.position) == ("enabled", job.parameters["position"])
    assert deliver(tenant, stream) == [("user.updated", "delivered"), ("user.deleted", "delivered"), ("user.created", "delivered")]
    assert {user["userName"] for user in server.users()} == {"second@example.test", "late@example.test"}
    assert server.user(late.user_id) is not None


def test_waiting_deliveries_of_the_stream_do_not_overwrite_profiles(
    tenant: Tenant, database_connection: Connection, stream: EventStream, server: RealServer, synchronize: Synchronize
) -> None:
    streams.enable_stream(tenant_id=tenant.pk, stream_id=stream.pk)
    user = make_user(connection=database_connection, email="old@example.test")
    gone = make_user(connection=database_connection, email="gone@example.test")
    delete_user(tenant_id=tenant.pk, user_id=gone.user_id)
    streams.disable_stream(tenant_id=tenant.pk, stream_id=stream.pk)
    update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"email": "new@example.test"})
    server.add(userName="gone@example.test", externalId=gone.user_id)

    job = synchronize(enables_stream=True)

    assert job.status == "completed", job.status_details
    states = deliver(tenant, stream)
    assert states == [("user.created", "superseded"), ("user.created", "superseded"), ("user.deleted", "delivered")]
    assert [account["userName"] for account in server.users()] == ["new@example.test"]


def test_each_kind_of_user_ends_with_the_account_that_the_mapping_defines(
    tenant: Tenant, database_connection: Connection, server: RealServer, synchronize: Synchronize
) -> None:
    count = sized(100, deep=500)
    users, foreign = [], []
    for number in range(count):
        kind, email = number % 10, f"user{number}@example.test"
        user = make_user(
            connection=database_connection,
            email=None if kind == 9 else email,
            phone_number=f"+47900{number:05}" if kind == 9 else None,
            email_verified=kind in (1, 2),
            name=f"User {number}",
            given_name="User",
            blocked=True if kind == 3 else None,
        )
        if kind == 1:
            server.add(userName=email.upper(), displayName="unlinked")
        elif kind == 2:
            foreign.append(server.add(userName=email, externalId=f"hr|{number}"))
        elif kind == 4:
            server.add(userName=f"before-{email}", externalId=user.user_id, active=True)
        users.append((kind, user))

    job = synchronize()

    tenth = count // 10
    expected = {"created": 6 * tenth, "linked": tenth, "updated": tenth, "skipped": 2 * tenth}
    assert (job.status, outcomes_of(job), job.rows_done) == ("completed", expected, count)
    accounts = server.users()
    by_key = {account.get("externalId"): account for account in accounts}
    assert len(by_key) == len(accounts) == 9 * tenth
    for kind, user in users:
        account = by_key.get(user.user_id)
        if kind in (2, 9):
            assert account is None
        else:
            assert account is not None
            assert {name: account[name] for name in account if name not in ("id", "meta")} == mapped(user)
    assert all(account in accounts for account in foreign)
    assert outcomes_of(synchronize()) == {"unchanged": 8 * tenth, "skipped": 2 * tenth}
    assert server.users() == accounts
