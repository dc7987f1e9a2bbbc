"""Synchronizations with a faulty, busy or unreachable server, and synchronizations whose process was killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.utils import timezone

from events.hooks import followers
from identity.models import Connection, Job, Tenant, User
from identity.services.failures import Conflict, Invalid, NotFound, NotSupported
from identity.services.jobs import cancel_job
from identity.services.users import delete_user, update_user
from provisioning.engine import streams
from provisioning.links.rows import write_links
from provisioning.models import SynchronizationRow
from provisioning.scim.links import Link, server_of
from provisioning.services.actions import deploy_action, set_secret
from provisioning.synchronization import service
from provisioning.synchronization.plan import Plan
from provisioning.synchronization.state import outcomes_of
from tests.deadlines import eventually
from tests.factories.identity import make_user
from tests.factories.models.identity import ConnectionFactory, TenantFactory
from tests.factories.models.provisioning import ActionFactory
from tests.factories.scim import (
    TOKEN,
    MisbehavingServer,
    RealServer,
    Received,
    Wire,
    by_verb,
    listing,
    misbehaving_server,
    reply,
    scim_error,
    user,
)
from tests.faults import worker
from tests.provisioning.synchronization.conftest import FAST, stream_to, work_on

FILTER = re.compile(r'(\w+) eq "(.*)"')


class Directory:
    """A SCIM server in this process that supports filters. Tests can replace its responses, and change users before a write."""

    def __init__(self) -> None:
        self.accounts: dict[str, dict[str, Any]] = {}
        self.answers: list[bytes] = []
        self.before_write: list[Any] = []

    def __call__(self, request: Received) -> bytes:
        if self.answers:
            return self.answers.pop(0)
        if request.verb == "GET":
            return self._found(request)
        for act in self.before_write[:1]:
            self.before_write.pop(0)
            act()
        identifier = request.path.rpartition("/")[2]
        if request.verb == "DELETE":
            del self.accounts[identifier]
            return reply(204)
        if request.verb == "POST":
            identifier = f"id{len(self.accounts)}"
        self.accounts[identifier] = {**request.json, "id": identifier}
        return reply(201 if request.verb == "POST" else 200, self.accounts[identifier])

    def _found(self, request: Received) -> bytes:
        asked = FILTER.fullmatch(request.filter)
        accounts = [account for account in self.accounts.values() if asked is None or account.get(asked[1]) == asked[2]]
        return listing(*([] if "startIndex=101" in request.target else accounts))


@pytest.fixture
def directory() -> Directory:
    return Directory()


@pytest.fixture
def wrong(directory: Directory) -> Iterator[MisbehavingServer]:
    with misbehaving_server(directory) as server:
        yield server


def start(tenant: Tenant, server: MisbehavingServer, **plan: Any) -> Job:
    stream = stream_to(tenant, server.base_url)
    return service.start(tenant_id=tenant.pk, stream_id=stream.pk, plan=replace(FAST, **plan), actor="a test")


def writes(server: MisbehavingServer) -> list[str]:
    return [line for line in server.lines if not line.startswith("GET")]


def users(connection: Connection, count: int) -> list[str]:
    return [make_user(connection=connection, email=f"user{number}@example.test", email_verified=True).user_id for number in range(count)]


def test_the_job_never_writes_to_a_server_that_ignores_filters(tenant: Tenant, database_connection: Connection) -> None:
    ours = users(database_connection, 2)
    everybody = [user("a", userName="user0@example.test"), user("b", externalId=ours[1]), user("c", externalId="hr|17")]
    with misbehaving_server(by_verb(GET=listing(*everybody))) as server:
        job = work_on(start(tenant, server))
    assert (outcomes_of(job), writes(server)) == ({"ambiguous": 2}, [])
    reason = SynchronizationRow.objects.filter(job=job).earliest("pk").reason
    assert "unverifiable match" in reason


def test_a_comparison_does_not_report_a_user_with_a_listed_account_as_missing(tenant: Tenant, database_connection: Connection) -> None:
    ours = users(database_connection, 3)
    accounts = [user(str(number), externalId=key, userName=f"renamed{number}@example.test") for number, key in enumerate(ours[:2])]

    def answer(request: Received) -> Wire:
        return listing() if request.filter else listing(*accounts)

    with misbehaving_server(answer) as server:
        job = work_on(start(tenant, server, only_reports=True))
    assert outcomes_of(job) == {"missing": 1, "unsearchable": 2}
    found = SynchronizationRow.objects.filter(job=job, outcome="unsearchable").order_by("scim_id")
    assert [(row.user_id, row.scim_id) for row in found] == list(zip(ours[:2], ["0", "1"], strict=True))
    assert "misses accounts that its listing contains" in job.status_details


def test_accounts_of_another_tenant_are_not_recorded_or_deleted(tenant: Tenant, database_connection: Connection) -> None:
    users(database_connection, 1)
    theirs = user("9", externalId="database|theirs", userName="theirs@example.test")
    other = TenantFactory.create(id=f"o-{uuid4().hex[:12]}", name="other", host=f"{uuid4().hex}.example.test")
    action = ActionFactory.create(tenant_id=other.pk, name="theirs", template="scim-user-provisioning")

    def answer(request: Received) -> Wire:
        if request.verb == "GET":
            return listing(*([theirs] if not request.filter or "theirs" in request.filter else []))
        return reply(201, user("1", **request.json)) if request.verb == "POST" else reply(204)

    with misbehaving_server(answer) as server:
        held = Link(other.pk, str(action.pk), server_of(server.base_url), "database|theirs", remote_id="9", birth=1, position=1)
        write_links([held.document()])
        job = work_on(start(tenant, server, deletes_missing=True))
        assert not [line for line in server.lines if line.startswith("DELETE")]
    assert "extra" not in outcomes_of(job)


def test_a_dry_run_sends_only_lookups(
    tenant: Tenant, database_connection: Connection, wrong: MisbehavingServer, directory: Directory
) -> None:
    users(database_connection, 3)
    directory.accounts = {"a": user("a", userName="user0@example.test"), "b": user("b", externalId="database|gone")}
    job = work_on(start(tenant, wrong, is_dry_run=True, deletes_missing=True))
    assert outcomes_of(job) == {"created": 2, "linked": 1, "extra": 1}
    assert {request.verb for request in wrong.received} == {"GET"}


def test_three_consecutive_refusals_stop_the_job_and_their_users_are_examined_again(
    tenant: Tenant, database_connection: Connection, server: RealServer
) -> None:
    users(database_connection, 5)
    stream = stream_to(tenant, server.base_url, SCIM_BEARER_TOKEN="wrong")
    job = work_on(service.start(tenant_id=tenant.pk, stream_id=stream.pk, plan=FAST, actor="a test"))
    assert (job.status, job.parameters["waits_for"], job.rows_done) == ("processing", "resume", 0)
    assert "3 consecutive users failed" in job.status_details
    assert "401" in job.status_details
    with pytest.raises(Conflict):
        service.confirm_deletions(tenant_id=tenant.pk, job_id=job.pk, actor="a test")

    set_secret(tenant_id=tenant.pk, action_id=stream.destination["action_id"], name="SCIM_BEARER_TOKEN", value=TOKEN)
    deploy_action(tenant_id=tenant.pk, action_id=stream.destination["action_id"])
    service.resume(tenant_id=tenant.pk, job_id=job.pk, actor="a person")
    assert (work_on(job).status, outcomes_of(job), job.status_details) == ("completed", {"created": 5}, "")


def test_the_job_waits_for_the_time_in_the_response_of_a_busy_server(
    tenant: Tenant, database_connection: Connection, wrong: MisbehavingServer, directory: Directory
) -> None:
    users(database_connection, 2)
    directory.answers = [listing(), listing(), reply(201, user("id0")), scim_error(429, **{"Retry-After": "40"})]
    job = work_on(start(tenant, wrong, match="none"))
    assert (job.status, outcomes_of(job)) == ("processing", {"created": 1})
    asked = len(wrong.received)
    assert work_on(job).status == "processing"
    assert len(wrong.received) == asked
    assert job.lease_until is not None
    assert timedelta(seconds=20) < job.lease_until - timezone.now() <= timedelta(seconds=40)
    job.parameters["pause_until"] = timezone.now().isoformat()
    job.save()
    assert (work_on(job).status, outcomes_of(job)) == ("completed", {"created": 2})


def test_the_job_continues_after_the_server_refused_one_user(
    tenant: Tenant, database_connection: Connection, wrong: MisbehavingServer, directory: Directory
) -> None:
    first, second = users(database_connection, 2)
    directory.answers = [listing(), listing(), scim_error(400, "invalidValue", "no such country")]
    job = work_on(start(tenant, wrong, match="none"))
    assert outcomes_of(job) == {"created": 1, "failed": 1}
    row = SynchronizationRow.objects.get(job=job, outcome="failed")
    assert (row.user_id, row.error_class) == (first, "DataFailure")
    assert "no such country" in row.reason
    assert [account["externalId"] for account in directory.accounts.values()] == [second]


def test_the_report_does_not_contain_the_token(
    tenant: Tenant, database_connection: Connection, wrong: MisbehavingServer, directory: Directory
) -> None:
    users(database_connection, 1)
    directory.answers = [scim_error(400, "invalidFilter", f"bad token {TOKEN}")] * 9
    job = work_on(start(tenant, wrong))
    report = b"".join(service.report_lines(job))
    assert b"***" in report
    assert TOKEN.encode() not in report


def test_a_user_that_changes_during_its_write_is_written_again(
    tenant: Tenant, database_connection: Connection, wrong: MisbehavingServer, directory: Directory
) -> None:
    (changing,) = users(database_connection, 1)
    directory.before_write = [lambda: update_user(tenant_id=tenant.pk, user_id=changing, changes={"name": "Newer"})]
    job = work_on(start(tenant, wrong))
    assert outcomes_of(job) == {"created": 1}
    assert [account["displayName"] for account in directory.accounts.values()] == ["Newer"]


def test_a_user_deleted_during_its_write_is_deleted_on_the_server(
    tenant: Tenant, database_connection: Connection, wrong: MisbehavingServer, directory: Directory
) -> None:
    (leaving,) = users(database_connection, 1)
    directory.before_write = [lambda: delete_user(tenant_id=tenant.pk, user_id=leaving)]
    job = work_on(start(tenant, wrong))
    assert (outcomes_of(job), directory.accounts) == ({"skipped": 1}, {})


def test_only_users_of_allowed_connections_are_sent(
    tenant: Tenant, database_connection: Connection, server: RealServer, settings: Any
) -> None:
    (allowed,) = users(database_connection, 1)
    staff = ConnectionFactory.create(tenant_id=tenant.pk, name="staff", strategy=settings.DATABASE_STRATEGY)
    other = make_user(connection=staff, email="boss@example.test")
    server.add(userName="boss@example.test", externalId=other.user_id)
    stream = stream_to(tenant, server.base_url, SCIM_CONNECTION_ALLOWLIST="people")
    job = work_on(service.start(tenant_id=tenant.pk, stream_id=stream.pk, plan=replace(FAST, deletes_missing=True), actor="a test"))
    # The users of the other connections exist, so their accounts are not reported as accounts without a user.
    assert outcomes_of(job) == {"created": 1}
    assert {account["externalId"] for account in server.users()} == {allowed, other.user_id}


def test_the_log_is_kept_from_the_position_at_which_the_job_will_enable_its_stream(
    tenant: Tenant, database_connection: Connection, server: RealServer
) -> None:
    users(database_connection, 3)
    stream = stream_to(tenant, server.base_url)
    job = service.start(tenant_id=tenant.pk, stream_id=stream.pk, plan=replace(FAST, enables_stream=True), actor="a test")

    def held() -> list[int]:
        return [
            hold.position
            for follower in followers()
            for hold in follower.holds(tenant.pk, through=10**9)
            if "synchronization" in hold.holder
        ]

    assert held() == [job.parameters["position"]]
    cancel_job(tenant_id=tenant.pk, job_id=job.pk, actor="a test")
    assert held() == []
    assert streams.enable_stream(tenant_id=tenant.pk, stream_id=stream.pk).status == "enabled"


def test_a_new_log_epoch_prevents_the_job_from_enabling_the_stream(
    tenant: Tenant, database_connection: Connection, server: RealServer
) -> None:
    stream = stream_to(tenant, server.base_url)
    job = service.start(tenant_id=tenant.pk, stream_id=stream.pk, plan=replace(FAST, enables_stream=True), actor="a test")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE events_head SET epoch = epoch + 1 WHERE tenant_id = %s", [tenant.pk])
    assert work_on(job).status == "failed"
    assert "Run the synchronization again" in job.status_details
    stream.refresh_from_db()
    assert stream.status == "disabled"


def test_a_stream_has_one_synchronization_at_a_time_and_invalid_plans_are_refused(tenant: Tenant, server: RealServer) -> None:
    stream = stream_to(tenant, server.base_url)
    known = {"tenant_id": tenant.pk, "stream_id": stream.pk, "actor": "a test"}
    for plan in (Plan(rate=0), Plan(match="employeeNumber"), Plan(deletion_limit="many"), Plan(is_dry_run=True, enables_stream=True)):
        with pytest.raises(Invalid):
            service.start(**known, plan=plan)
    service.start(**known, plan=FAST)
    with pytest.raises(Conflict):
        service.start(**known, plan=FAST)
    webhook = streams.create_stream(
        tenant_id=tenant.pk,
        subscriptions=["user.created"],
        destination_type="webhook",
        destination={"webhook_endpoint": "http://127.0.0.1:9/", "webhook_authorization": {"method": "bearer", "token": "x" * 32}},
    )
    with pytest.raises(NotSupported):
        service.start(tenant_id=tenant.pk, stream_id=webhook.pk, plan=FAST, actor="a test")
    with pytest.raises(NotFound):
        service.resume(tenant_id=tenant.pk, job_id="job_0000000000000000", actor="a person")


def test_a_job_that_another_process_runs_is_skipped(tenant: Tenant, database_connection: Connection, wrong: MisbehavingServer) -> None:
    users(database_connection, 1)
    job = start(tenant, wrong)
    until = (timezone.now() + timedelta(seconds=30)).isoformat()
    job.parameters |= {"holder": "somebody else", "held_until": until}
    job.save()
    assert (work_on(job).status, wrong.received) == ("processing", [])


def test_a_killed_synchronization_continues_and_creates_no_duplicates(
    tenant: Tenant, database_connection: Connection, server: RealServer
) -> None:
    users(database_connection, 60)
    stream = stream_to(tenant, server.base_url)
    command = [sys.executable, "manage.py", "provision", "synchronize", stream.pk, "--yes", "--rate", "200"]
    environment = {**os.environ, "DATABASE_URL": worker.url_of_test_database(), "DELIVERY_NUDGES_ENABLED": "0"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: Job.objects.of(tenant.pk).filter(type="stream_synchronization", summary__done__gte=20).exists(), seconds=60)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    job = Job.objects.of(tenant.pk).get(type="stream_synchronization")
    done = job.rows_done
    assert 20 <= done < 60
    # End the lease of the killed process, so that this process can run the job.
    job.parameters["held_until"] = timezone.now().isoformat()
    job.save()
    assert (work_on(job).status, job.rows_done) == ("completed", 60)
    assert set(Counter(account["externalId"] for account in server.users()).values()) == {1}
    assert len(server.users()) == 60
    assert set(outcomes_of(job)) <= {"created", "unchanged"}


@pytest.mark.parametrize("plan", [FAST, replace(FAST, is_dry_run=True), replace(FAST, only_reports=True)], ids=["write", "dry", "compare"])
def test_users_outside_the_scope_are_skipped_without_a_request(plan: Plan, tenant: Tenant, database_connection: Connection) -> None:
    for number in range(3):
        make_user(connection=database_connection, email=f"user{number}@example.test", app_metadata={"team": number})
    with misbehaving_server(by_verb(GET=listing(), POST=reply(201, user("7")))) as server:
        stream = stream_to(tenant, server.base_url, options={"scope": "app_metadata.team == `1`"})
        job = work_on(service.start(tenant_id=tenant.pk, stream_id=stream.pk, plan=plan, actor="a test"))
        sent = [f"{request.filter} {request.body!r}" for request in server.received]
    skipped = SynchronizationRow.objects.filter(job=job, outcome="skipped")
    assert [row.reason for row in skipped] == ["outside the scope"] * 2
    assert outcomes_of(job)["skipped"] == 2
    inside = User.objects.of(tenant.pk).get(email="user1@example.test")
    assert any(inside.user_id in request for request in sent)
    assert not [row for row in skipped if any(row.user_id in request for request in sent)]


def test_an_account_with_the_id_of_another_tenants_user_is_kept_even_without_a_link(
    tenant: Tenant, database_connection: Connection
) -> None:
    users(database_connection, 1)
    other = TenantFactory.create(id=f"o-{uuid4().hex[:12]}", name="other", host=f"{uuid4().hex}.example.test")
    ActionFactory.create(tenant_id=other.pk, name="theirs", template="scim-user-provisioning")
    theirs = make_user(connection=ConnectionFactory.create(tenant_id=other.pk, name="people", strategy="database"), email="t@example.test")
    account = user("9", externalId=theirs.user_id, userName="t@example.test")

    def answer(request: Received) -> Wire:
        if request.verb == "GET":
            return listing(*([account] if not request.filter else []))
        return reply(201, user("1", **request.json)) if request.verb == "POST" else reply(204)

    with misbehaving_server(answer) as server:
        job = work_on(start(tenant, server, deletes_missing=True))
        assert not [line for line in server.lines if line.startswith("DELETE")]
    assert "extra" not in outcomes_of(job)
