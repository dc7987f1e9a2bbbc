"""A stopped tenant: the responses of its hosts, the work that workers skip, and how a tenant is started again."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.utils import timezone

from authapi.expiry import drop_ended
from authapi.models import LogoutNotice, RevokedToken
from authapi.protocols.oauth.logout_notices import claim_notice, due_notices
from config.console.admin_login import may_enter
from events.log import retention
from events.models import LogEntry, Mark, Outbox
from identity.hosts import forget_hosts
from identity.models import AuditEntry, Job, Tenant, TenantMove
from identity.moving import stopping
from identity.moving.failures import MoveRefused
from identity.services import tenant_deletion
from identity.services.failures import NotSupported
from identity.services.jobs import run_job, take_unattended_jobs
from identity.services.tenants import set_tenant_status
from identity.stopped_tenants import RETRY_AFTER_SECONDS
from provisioning.engine import dispatch, lane_rows, sweeper
from provisioning.engine.lanes import claim_named
from provisioning.models import Delivery, Lane
from tests.deadlines import eventually
from tests.events.log_reading import numbered
from tests.factories.admin import Rows
from tests.factories.identity import make_connection, make_user
from tests.management import Management, request
from tests.provisioning.engine.logs import append_events, make_stream

STATUSES = ("stopped", "moved", "arriving")


def put(tenant: Tenant, status: str) -> None:
    Tenant.objects.filter(pk=tenant.pk).update(status=status)
    forget_hosts()


@pytest.mark.parametrize("status", STATUSES)
def test_every_interface_of_a_stopped_tenant_answers_503_with_the_time_to_retry(tenant: Tenant, status: str) -> None:
    management = Management(tenant)
    assert management.get("users").status == 200
    put(tenant, status)
    paths = ("/userinfo", "/.well-known/openid-configuration", "/authorize", "/u/login", "/samlp/metadata/x", "/api/v2/events", "/nowhere")
    answers = [management.call("GET", path) for path in paths]
    answers += [management.get("users"), request("POST", "/oauth/token", "", {"host": management.host}, b"")]
    assert {(answer.status, answer.headers.get("retry-after")) for answer in answers} == {(503, str(RETRY_AFTER_SECONDS))}


def test_a_stop_and_a_start_restore_the_earlier_status_of_the_tenant(tenant: Tenant) -> None:
    put(tenant, "suspended")

    stopping.stop_tenant(tenant_id=tenant.pk)
    stopping.stop_tenant(tenant_id=tenant.pk)
    assert Tenant.objects.get(pk=tenant.pk).status == "stopped"

    assert stopping.start_tenant(tenant_id=tenant.pk) == "suspended"
    assert not TenantMove.objects.filter(pk=tenant.pk).exists()
    acts = AuditEntry.objects.filter(tenant_id=tenant.pk, object_type="identity.tenant").order_by("id").values_list("act", flat=True)
    assert list(acts)[-2:] == ["Stopped the tenant for a move", "Started the tenant again"]


def test_a_tenant_that_is_being_deleted_or_that_is_arriving_cannot_be_stopped(tenant: Tenant) -> None:
    put(tenant, "arriving")
    with pytest.raises(MoveRefused, match="is arriving"):
        stopping.stop_tenant(tenant_id=tenant.pk)
    with pytest.raises(MoveRefused, match="is arriving"):
        stopping.start_tenant(tenant_id=tenant.pk)
    put(tenant, "active")
    tenant_deletion.start(tenant_id=tenant.pk)
    with pytest.raises(MoveRefused, match="is deleting"):
        stopping.stop_tenant(tenant_id=tenant.pk)


@pytest.mark.parametrize("status", STATUSES)
def test_a_stopped_tenant_cannot_be_activated_suspended_or_deleted(tenant: Tenant, status: str) -> None:
    put(tenant, status)
    for wanted in ("active", "suspended"):
        with pytest.raises(NotSupported):
            set_tenant_status(tenant_id=tenant.pk, status=wanted)
    with pytest.raises(NotSupported):
        tenant_deletion.start(tenant_id=tenant.pk)


def test_staff_of_a_stopped_tenant_cannot_use_the_admin(tenant: Tenant) -> None:
    staff = get_user_model()(email=f"a@{tenant.pk}.test", tenant=tenant, is_active=True)
    assert may_enter(staff)
    put(tenant, "stopped")
    tenant.refresh_from_db()
    assert not may_enter(staff)


@pytest.mark.parametrize("status", STATUSES)
def test_no_event_of_a_stopped_tenant_is_dispatched_and_no_delivery_is_claimed(tenant: Tenant, recorder: object, status: str) -> None:
    stream = make_stream(tenant)
    append_events(tenant, ["user:a", "user:b"])
    dispatch.dispatch_tenant(tenant.pk)
    append_events(tenant, ["user:c"])
    Lane.objects.filter(stream_id=stream.pk).update(nudged_until=None)

    put(tenant, status)

    assert dispatch.dispatch_tenant(tenant.pk) == []
    assert dispatch.dispatch_stream(stream.pk).deliveries == 0
    assert claim_named(stream.pk, "user:a") is None
    with transaction.atomic():
        assert lane_rows.take_oldest(stream.pk, lease_seconds=5, most_attempts=3) is None
    sweeper.nudge_due_lanes()
    assert set(Lane.objects.filter(stream_id=stream.pk).values_list("nudged_until", flat=True)) == {None}

    put(tenant, "active")
    assert dispatch.dispatch_stream(stream.pk).deliveries == 1
    assert claim_named(stream.pk, "user:a") is not None
    assert Delivery.objects.filter(stream_id=stream.pk).count() == 3


def test_no_job_of_a_stopped_tenant_runs_and_no_notice_is_sent(tenant: Tenant) -> None:
    rows = Rows(tenant)
    job = rows.of(Job)
    notice = rows.of(LogoutNotice)
    LogoutNotice.objects.of(tenant.pk).filter(pk=notice.pk).update(due_at=timezone.now() - timedelta(minutes=1))
    put(tenant, "stopped")

    assert run_job(job.pk)
    job.refresh_from_db()
    assert (job.status, job.started_at) == ("pending", None)
    assert job.pk not in take_unattended_jobs()
    assert notice.pk not in due_notices()
    assert claim_notice(notice.pk) is None

    put(tenant, "active")
    assert claim_notice(notice.pk) is not None


def test_the_log_of_a_stopped_tenant_is_not_pruned(tenant: Tenant) -> None:
    revoked = Rows(tenant).of(RevokedToken)
    RevokedToken.objects.of(tenant.pk).filter(pk=revoked.pk).update(expires_at=timezone.now() - timedelta(days=1))
    append_events(tenant, ["user:a"])
    LogEntry.objects.filter(tenant_id=tenant.pk).update(recorded_at=timezone.now() - timedelta(days=4000))
    put(tenant, "stopped")

    drop_ended()
    assert RevokedToken.objects.of(tenant.pk).exists()
    assert retention.due_logs(tenant.pk) == []

    put(tenant, "active")
    drop_ended()
    assert not RevokedToken.objects.of(tenant.pk).exists()
    assert len(retention.due_logs(tenant.pk)) == 1


def test_a_stop_reports_unrecorded_changes_and_events_without_a_position(tenant: Tenant) -> None:
    make_user(connection=make_connection(tenant_id=tenant.pk))
    Mark.objects.create(table_name="t", row_key="1", document_key="1", document_table="t", tenant_id=tenant.pk)
    stopped = stopping.stop(tenant.pk)

    assert Outbox.objects.filter(tenant_id=tenant.pk).exists()
    assert [sentence.partition(" ")[2] for sentence in stopped.still_runs()] == [
        "events have no position in the log yet; a running worker gives them one.",
        "changes are not recorded as events yet; the sweep of a running worker records them.",
    ]

    numbered(tenant.pk)
    Mark.objects.filter(tenant_id=tenant.pk).delete()
    assert stopped.still_runs() == []


def test_a_stop_reports_transactions_that_began_before_the_stop_until_they_end(tenant: Tenant) -> None:
    begun, ends = threading.Event(), threading.Event()

    def writes() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            begun.set()
            ends.wait(20)
        connection.close()

    writer = threading.Thread(target=writes)
    writer.start()
    assert begun.wait(10)
    stopped = stopping.stop(tenant.pk)
    assert "transactions that began before the stop are open" in " ".join(stopped.still_runs())
    ends.set()
    writer.join()
    eventually(lambda: not stopped.still_runs())


def test_a_stop_reports_a_running_delivery(tenant: Tenant, recorder: object) -> None:
    stream = make_stream(tenant)
    append_events(tenant, ["user:a"])
    dispatch.dispatch_tenant(tenant.pk)
    assert claim_named(stream.pk, "user:a") is not None
    assert stopping.stop(tenant.pk).still_runs() == ["1 deliveries are running."]


def test_the_stop_command_asks_for_confirmation_and_waits_until_no_work_runs(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.input", lambda _: "another")
    with pytest.raises(CommandError, match="Nothing was changed"):
        call_command("tenants", "stop", tenant.pk)
    assert Tenant.objects.get(pk=tenant.pk).status == "active"

    make_connection(tenant_id=tenant.pk)
    with pytest.raises(CommandError, match="is stopped, but work still runs: 1 events have no position"):
        call_command("tenants", "stop", tenant.pk, "--yes", "--wait", "0")
    numbered(tenant.pk)
    call_command("tenants", "stop", tenant.pk, "--yes")
    call_command("tenants", "start", tenant.pk, "--yes")
    assert Tenant.objects.get(pk=tenant.pk).status == "active"


def test_a_tenant_that_was_handed_over_is_started_again_only_on_explicit_request(tenant: Tenant) -> None:
    stopping.stop_tenant(tenant_id=tenant.pk)
    put(tenant, "moved")
    with pytest.raises(CommandError, match="was handed over"):
        call_command("tenants", "start", tenant.pk, "--yes")
    call_command("tenants", "start", tenant.pk, "--yes", "--after-hand-over")
    assert Tenant.objects.get(pk=tenant.pk).status == "active"
