"""Deliveries to third-party SCIM servers: requested delays, outages, many dead letters, many deletions, and the secrecy of the token.

The numbers in the names of tests are the numbers of rows in the table in docs/reference/scim.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.db import connection
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from events.log.numbering import number_tenant
from events.models import EventStream
from identity.models import Connection, Job, Tenant, User
from identity.services.jobs import cancel_job, run_job
from identity.services.users import create_user, delete_user, update_user
from provisioning.actions.setups import draft_setup
from provisioning.dead_letters.redelivery_jobs import Selection, progress_of, start_redelivery_job
from provisioning.engine import breaker, delivering, dispatch, lanes
from provisioning.engine.deletion_guard import allow_deletions, set_guard
from provisioning.engine.streams import create_stream
from provisioning.models import Action, Attempt, DeadLetter, Delivery, Lane
from provisioning.trials.mapping_preview import mapping_preview
from tests.factories.admin import browser_of, new_staff
from tests.factories.models.identity import UserFactory
from tests.factories.models.provisioning import ActionFactory
from tests.factories.scim import HANG_UP, TOKEN, MisbehavingServer, RealServer, reply, scim_error
from tests.factories.scim_relay import Relay
from tests.management import Management

pytestmark = pytest.mark.peer

TYPES = ["user.created", "user.updated", "user.deleted"]
MakeStream = Callable[..., EventStream]


@pytest.fixture
def make_stream(tenant: Tenant) -> MakeStream:
    """Return a function that creates a stream to the server at `base_url`. The stream begins at the end of the tenant's log."""

    def make(base_url: str, **options: Any) -> EventStream:
        secrets = {"SCIM_BASE_URL": base_url, "SCIM_BEARER_TOKEN": TOKEN, "SCIM_MAX_RETRIES": "0"}
        action = ActionFactory.create(
            tenant_id=tenant.pk, name="to scim", template="scim-user-provisioning", secrets=secrets, options=options, deploy=True
        )
        bound = {"action_id": str(action.pk)}
        return create_stream(tenant_id=tenant.pk, subscriptions=TYPES, destination_type="action", destination=bound)

    return make


def deliver(stream: EventStream) -> dict[str, int]:
    """Number and dispatch the new events, and make all due deliveries. Return the number of deliveries in each state."""
    number_tenant(stream.tenant_id)
    dispatch.dispatch_tenant(stream.tenant_id)
    claim = lanes.claim_oldest(stream.pk)
    while claim is not None:
        claim = delivering.deliver_claim(claim, delivering.Turn(seconds=60)).next or lanes.claim_oldest(stream.pk)
    states = list(Delivery.objects.filter(stream_id=stream.pk).values_list("state", flat=True))
    return {state: states.count(state) for state in sorted(set(states))}


def people(tenant: Tenant, connection_of: Connection, count: int) -> list[User]:
    return [
        UserFactory.create(tenant_id=tenant.pk, connection=connection_of, email=f"user{at}@example.test", name="Old") for at in range(count)
    ]


@pytest.mark.parametrize(("asked", "least", "most"), [("1", 0, 5), ("120", 115, 150), ("soon", 0, 5), (str(10**9), 3590, 3700)])
def test_9_the_lane_pauses_for_the_requested_time_but_at_most_an_hour(
    tenant: Tenant,
    database_connection: Connection,
    make_stream: MakeStream,
    relay: Relay,
    front: MisbehavingServer,
    settings: Settings,
    asked: str,
    least: float,
    most: float,
) -> None:
    settings.DELIVERY_RETRY_DELAYS = [1.0, 1.0]
    stream = make_stream(front.base_url)
    people(tenant, database_connection, 1)
    relay.instead["POST"] = [scim_error(429, **{"Retry-After": asked})]
    assert deliver(stream) == {"todo": 1}
    pause = (Lane.objects.get(stream_id=stream.pk).not_before - timezone.now()).total_seconds()
    assert least < pause < most


def test_12_an_outage_holds_the_stream_without_dead_letters_and_keeps_the_order(
    tenant: Tenant,
    database_connection: Connection,
    make_stream: MakeStream,
    server: RealServer,
    relay: Relay,
    front: MisbehavingServer,
    settings: Settings,
) -> None:
    """tests/faults/test_provisioning_outage.py repeats this test with 1,000 users, real workers and real waiting times."""
    settings.DELIVERY_RETRY_DELAYS = [0.0] * 5
    settings.BREAKER_FAILURES, settings.BREAKER_USERS = 5, 3
    stream = make_stream(front.base_url)
    relay.refuses = lambda request: HANG_UP
    users = people(tenant, database_connection, 30)
    for user in users:
        update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"name": "New"})
    assert deliver(stream) == {"todo": 60}
    stream.refresh_from_db()
    assert stream.held_since is not None
    tried = Attempt.objects.filter(tenant_id=tenant.pk).count()
    assert deliver(stream) == {"todo": 60}
    delivering.probe_stream(stream.pk, tenant.pk)
    assert Attempt.objects.filter(tenant_id=tenant.pk).count() <= tried + 1

    relay.refuses = lambda request: None
    delivering.probe_stream(stream.pk, tenant.pk)
    Lane.objects.filter(stream_id=stream.pk).update(not_before=timezone.now())
    assert deliver(stream) == {"delivered": 60}
    assert {found["displayName"] for found in server.users()} == {"New"}
    assert len(server.users()) == 30
    for user in users:
        verbs = [request.verb for request in front.received if request.body and json.loads(request.body)["externalId"] == user.user_id]
        assert re.fullmatch("(POST)+PUT", "".join(verbs)), verbs


def test_13_five_hundred_dead_letters_are_redelivered_by_a_canceled_job_and_a_second_job(
    tenant: Tenant,
    database_connection: Connection,
    make_stream: MakeStream,
    server: RealServer,
    relay: Relay,
    front: MisbehavingServer,
    settings: Settings,
) -> None:
    settings.DELIVERY_RETRY_DELAYS, settings.BREAKER_FAILURES = [], 0
    stream = make_stream(front.base_url, upsert=True)
    relay.refuses = lambda request: scim_error(400, "invalidValue") if request.verb == "POST" else None
    users = people(tenant, database_connection, 500)
    assert deliver(stream) == {"dead": 500}
    relay.refuses = lambda request: None
    for user in users[:50]:
        update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"name": "Newer"})
    assert deliver(stream) == {"dead": 500, "delivered": 50}

    job = start_redelivery_job(
        tenant_id=tenant.pk, stream_id=stream.pk, selection=Selection(), actor="ada@example.test", reason="fixed", rate_per_second=20
    )
    for _ in range(6):
        run_job(job.pk)
        deliver(stream)
    cancel_job(tenant_id=tenant.pk, job_id=job.pk, actor="ada@example.test")
    run_job(job.pk)
    deliver(stream)
    half = progress_of(Job.objects.of(tenant.pk).get(pk=job.pk))
    assert (half.total, half.left, half.under_way, half.failed) == (500, 260, 0, 0)
    assert half.done + half.superseded == 240

    rest = start_redelivery_job(
        tenant_id=tenant.pk, stream_id=stream.pk, selection=Selection(), actor="bob@example.test", rate_per_second=100
    )
    for _ in range(4):
        run_job(rest.pk)
        deliver(stream)
    end = progress_of(Job.objects.of(tenant.pk).get(pk=rest.pk))
    assert (end.total, end.left, end.failed) == (260, 0, 0)
    assert half.superseded + end.superseded == 50
    # Each dead letter names the author and the reason of its redelivery, and no newer value was overwritten.
    told = DeadLetter.objects.filter(stream_id=stream.pk, state="resolved").values_list("redelivery_actor", "redelivery_reason")
    assert sorted(told) == [("ada@example.test", "fixed")] * 240 + [("bob@example.test", "")] * 260
    found = {user["externalId"]: user["displayName"] for user in server.users()}
    assert found == {user.user_id: "Newer" if at < 50 else "Old" for at, user in enumerate(users)}


def test_14_the_token_is_not_in_rows_logs_pages_or_files(
    tenant: Tenant,
    database_connection: Connection,
    make_stream: MakeStream,
    relay: Relay,
    front: MisbehavingServer,
    settings: Settings,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    settings.DELIVERY_RETRY_DELAYS, settings.BREAKER_FAILURES = [], 0
    stream = make_stream(front.base_url)
    echo = {"detail": f"no right for Bearer {TOKEN}", "seen": {"Authorization": f"Bearer {TOKEN}"}}
    relay.instead["POST"] = [
        reply(401, echo, headers={"WWW-Authenticate": f'Bearer realm="{TOKEN}"'}),
        reply(400, raw=f"<html>{TOKEN}</html>".encode()),
        reply(302, headers={"Location": f"http://elsewhere.test/?t={TOKEN}"}),
        reply(201, raw=f'{{"id": "{TOKEN}'.encode()),
    ]
    people(tenant, database_connection, 6)
    assert deliver(stream) == {"dead": 4, "delivered": 2}
    assert all(request.headers["authorization"] == f"Bearer {TOKEN}" for request in front.received)
    seen = capfd.readouterr()
    assert TOKEN not in caplog.text + seen.out + seen.err
    assert rows_with(TOKEN) == []
    for text in everything_shown(tenant, stream):
        assert TOKEN not in text
        assert "***" in text or TOKEN[:12] not in text


def rows_with(secret: str) -> list[str]:
    """Return the names of the tables that contain the secret as text, or its bytes in hexadecimal digits."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        tables = [name for (name,) in cursor.fetchall()]
        patterns = [f"%{secret}%", f"%{secret.encode().hex()}%"]
        found = []
        for table in tables:
            cursor.execute(f'SELECT 1 FROM "{table}" t WHERE t::text LIKE ANY(%s) LIMIT 1', [patterns])  # noqa: S608 (its own tables)
            found += [table for _ in cursor.fetchall()]
    return found


def everything_shown(tenant: Tenant, stream: EventStream) -> list[str]:
    """Return the contents of the pages, files and responses that show deliveries, dead letters, attempts and the action."""
    browser = browser_of(new_staff(tenant))
    pages = [reverse("admin:provisioning_deadletter_changelist"), reverse("admin:provisioning_delivery_changelist")]
    models: dict[str, Any] = {
        "deadletter": DeadLetter.objects.filter(stream_id=stream.pk),
        "delivery": Delivery.objects.filter(stream_id=stream.pk),
        "attempt": Attempt.objects.filter(tenant_id=tenant.pk),
        "action": Action.objects.of(tenant.pk).all(),
    }
    for name, rows in models.items():
        pages += [reverse(f"admin:provisioning_{name}_change", args=(quote(row.pk),)) for row in rows]
    pages += [f"{pages[0]}export/?format={form}" for form in ("csv", "jsonl")]
    shown = []
    for page in pages:
        answer = browser.get(page)
        assert answer.status_code == 200, page
        shown.append(answer.getvalue().decode() if answer.streaming else answer.content.decode())
    api = Management(tenant)
    shown += [json.dumps(api.get(f"event-streams/{stream.pk}/deliveries").json)]
    shown += [
        json.dumps(api.get(f"event-streams/{stream.pk}/deliveries/{row.event_id}").json)
        for row in Delivery.objects.filter(stream_id=stream.pk)
    ]
    return shown


def test_15_fifty_deletions_wait_for_approval_and_are_then_delivered_in_order(
    tenant: Tenant, database_connection: Connection, make_stream: MakeStream, server: RealServer, relay: Relay, front: MisbehavingServer
) -> None:
    stream = make_stream(front.base_url)
    users = people(tenant, database_connection, 55)
    assert deliver(stream) == {"delivered": 55}
    set_guard(tenant_id=tenant.pk, stream_id=stream.pk, threshold=40, window_seconds=60)
    for user in users[:50]:
        update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"name": "Last"})
        delete_user(tenant_id=tenant.pk, user_id=user.user_id)
    front.received.clear()
    assert deliver(stream) == {"delivered": 55, "todo": 100}
    breaker.resume_stream(stream_id=stream.pk, tenant_id=tenant.pk)
    assert deliver(stream) == {"delivered": 55, "todo": 100}
    assert (front.received, len(server.users())) == ([], 55)

    allow_deletions(tenant_id=tenant.pk, stream_id=stream.pk)
    assert deliver(stream) == {"delivered": 155}
    assert sorted(found["externalId"] for found in server.users()) == sorted(user.user_id for user in users[50:])
    writes = [(request.verb, request.path) for request in front.received if request.verb in ("PUT", "DELETE")]
    for path in {path for _, path in writes}:
        assert [verb for verb, at in writes if at == path] == ["PUT", "DELETE"]


@pytest.mark.parametrize("mode", ["put", "patch", "patch_per_attribute"])
def test_16_the_previewed_request_equals_the_sent_request_byte_for_byte(
    tenant: Tenant, database_connection: Connection, make_stream: MakeStream, relay: Relay, front: MisbehavingServer, mode: str
) -> None:
    stream = make_stream(front.base_url, update_mode=mode, enterprise=True)
    setup = draft_setup(Action.objects.of(tenant.pk).get(pk=stream.destination["action_id"]))
    more: dict[str, Any] = {"app_metadata": {"department": "Räume & <b>"}, "user_metadata": {"phone": "+1555"}, "name": "Anna 🙂"}
    user = create_user(tenant_id=tenant.pk, connection=database_connection, email="anna@example.test", **more)
    created = mapping_preview(setup, user_id=user.user_id, operation="create")
    deliver(stream)
    update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"nickname": "änna"})
    updated = mapping_preview(setup, user_id=user.user_id, operation="update")
    assert deliver(stream) == {"delivered": 2}
    writes = [(request.verb, request.body) for request in front.received if request.verb != "GET"]
    assert writes == [(shown.method, shown.body) for shown in (created, updated)]
