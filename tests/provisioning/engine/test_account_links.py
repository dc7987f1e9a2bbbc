"""Account links in the database.

A run reads the link before it writes to a server, and stores the link with its outcome. If two streams share a server, a run also locks
the account.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.utils import timezone
from pytest_django.fixtures import Settings

from events.log.numbering import number_tenant
from events.models import EventStream
from identity.models import Connection, Tenant
from identity.services.failures import Conflict
from identity.services.users import delete_user, update_user
from provisioning.actions.pace import NoTurn
from provisioning.actions.setups import draft_setup
from provisioning.dead_letters import redelivery
from provisioning.engine import alerts, delivering, dispatch, lanes, retention
from provisioning.engine.named_deletions import TooManyNamedDeletions, allow_named_deletion
from provisioning.engine.not_found import users_not_found
from provisioning.engine.retrying import RetryLater
from provisioning.engine.streams import create_stream, delete_stream, resume_stream
from provisioning.links.links_of_the_past import learn_links_of_the_past
from provisioning.links.rows import DatabaseRows, RunLinks, accounts_of_other_tenants, head_position, write_links
from provisioning.models import AccountLink, AccountLock, Action, ActionVersion, Alert, DeadLetter, Delivery
from provisioning.runs.outcomes import Claim
from provisioning.scim.links import Link, server_of
from provisioning.scim.lookups import UnverifiableMatch
from provisioning.services.account_links import confirm_links, forget_link
from provisioning.services.actions import create_action, delete_action
from tests.deadlines import eventually
from tests.factories.links import MemoryLinks, MemoryRows
from tests.factories.models.identity import ConnectionFactory, TenantFactory, UserFactory
from tests.factories.models.provisioning import AccountLockFactory, ActionFactory
from tests.factories.scim import TOKEN, RealServer, by_verb, misbehaving_server, reply, running_scim_server, scim_error
from tests.factories.scim_runs import run_event

SERVER = server_of("https://scim.example.test/v2")
USER_EVENTS = ["user.created", "user.updated", "user.deleted"]


@pytest.fixture(scope="module")
def server_process() -> Iterator[RealServer]:
    with running_scim_server() as server:
        yield server


@pytest.fixture
def server(server_process: RealServer) -> Iterator[RealServer]:
    yield server_process
    server_process.clear()


@pytest.fixture(autouse=True)
def _settings(settings: Settings) -> None:
    settings.DELIVERY_RETRY_DELAYS = []


def stream_to(tenant: Tenant, base_url: str, name: str = "to scim", **options: Any) -> EventStream:
    secrets = {"SCIM_BASE_URL": base_url, "SCIM_BEARER_TOKEN": TOKEN, "SCIM_MAX_RETRIES": "0"}
    known: Any = {"tenant_id": tenant.pk, "name": name}
    action = create_action(**known, template="scim-user-provisioning", secrets=secrets, options=options, deploy=True)
    return create_stream(**known, subscriptions=USER_EVENTS, destination_type="action", destination={"action_id": str(action.pk)})


def deliver(tenant: Tenant, *streams: EventStream) -> list[str]:
    """Number and dispatch the new events, and try to deliver each lane once.

    Return the reason, error text or state of each delivery of the first stream, in the order of the events.
    """
    number_tenant(tenant.pk)
    dispatch.dispatch_tenant(tenant.pk)
    for stream in streams:
        for key in Delivery.objects.filter(stream_id=stream.pk).values_list("key", flat=True).distinct():
            try:
                delivering.deliver_lane(stream.pk, key)
            except RetryLater:
                continue
    rows = Delivery.objects.filter(stream_id=streams[0].pk).order_by("position")
    return [row.reason or row.error_message or row.state for row in rows]


def link(action_id: str, **more: Any) -> Link:
    return Link("acme", action_id, SERVER, "database|anna", **more)


def test_a_tenant_without_a_log_has_no_position(committed_db: None) -> None:
    assert head_position("no-such-tenant") == 0


def test_writing_no_links_changes_nothing(committed_db: None) -> None:
    assert write_links([]) == 0


def test_the_tables_and_the_implementation_in_memory_store_the_same_links(committed_db: None) -> None:
    """Random writes and doubts result in the same links in both implementations, even if a write is older than the stored link."""
    chance = random.Random(7)
    for _ in range(60):
        action_id, memory = str(uuid4()), MemoryLinks()
        stored, kept = DatabaseRows(SERVER, "database|anna"), MemoryRows(memory, SERVER, "database|anna")
        for _ in range(12):
            at = chance.randrange(1, 9)
            row = link(
                action_id,
                remote_id=chance.choice(["", "1", "2"]),
                birth=chance.randrange(0, at + 1),
                ended=chance.choice([None, None, at]),
                position=at,
                user_names=tuple(chance.sample(["a", "b", "c"], chance.randrange(3))),
                is_missing=chance.random() < 0.3,
                is_suspect=chance.random() < 0.2,
                doubt=chance.choice([None, at]),
            )
            if chance.random() < 0.5:
                stored.write(row)
                kept.write(row)
            else:
                fresh = link(action_id, birth=at, position=at, doubt=at, origin="created")
                assert [known for known in stored.begin(fresh) if known.action_id == action_id] == kept.begin(fresh)
            assert [known for known in stored.read(()) if known.action_id == action_id] == kept.read(())


def test_a_created_account_is_linked_and_the_link_ends_with_the_deletion(
    tenant: Tenant, database_connection: Connection, server: RealServer
) -> None:
    stream = stream_to(tenant, server.base_url)
    user = UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="anna@example.test")
    assert deliver(tenant, stream) == ["created"]
    row = AccountLink.objects.get(tenant_id=tenant.pk)
    made = server.user(user.user_id)
    assert made is not None
    assert (row.remote_id, row.user_id, row.user_names, row.is_keyed) == (made["id"], user.user_id, ["anna@example.test"], False)
    assert (row.origin, row.doubt, row.ended, row.server) == ("created", None, None, server_of(server.base_url + "/"))
    update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"email": "berg@example.test"})
    deliver(tenant, stream)
    row.refresh_from_db()
    assert (row.user_names, row.user_name, row.is_keyed) == (["anna@example.test", "berg@example.test"], "berg@example.test", True)
    delete_user(tenant_id=tenant.pk, user_id=user.user_id)
    assert deliver(tenant, stream)[-1] == "deleted"
    row.refresh_from_db()
    assert row.ended == Delivery.objects.filter(stream_id=stream.pk).latest("position").position


def test_the_link_is_stored_even_if_the_worker_lost_its_lease_during_the_create(tenant: Tenant, database_connection: Connection) -> None:
    def slow(request: Any) -> bytes:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE provisioning_lane SET token = gen_random_uuid() WHERE tenant_id = %s", [tenant.pk])
        connection.close()
        return reply(201, {"id": "9", "userName": "anna@example.test"})

    with misbehaving_server(by_verb(POST=slow)) as server:
        stream = stream_to(tenant, server.base_url)
        UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="anna@example.test")
        assert deliver(tenant, stream) == ["todo"]
    assert AccountLink.objects.get(tenant_id=tenant.pk).remote_id == "9"


def test_a_doubt_is_stored_before_the_create_is_sent_and_removed_after_a_refusal(tenant: Tenant, database_connection: Connection) -> None:
    seen: list[int | None] = []

    def answer(request: Any) -> bytes:
        seen.extend(AccountLink.objects.filter(tenant_id=tenant.pk).values_list("doubt", flat=True))
        connection.close()
        return scim_error(400, "invalidValue")

    with misbehaving_server(by_verb(POST=answer)) as server:
        stream = stream_to(tenant, server.base_url)
        UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="anna@example.test")
        deliver(tenant, stream)
    assert seen == [Delivery.objects.get(stream_id=stream.pk).position]
    assert AccountLink.objects.get(tenant_id=tenant.pk).doubt is None


def test_a_secret_that_the_server_returns_as_an_id_is_not_stored(tenant: Tenant, database_connection: Connection) -> None:
    with misbehaving_server(by_verb(POST=reply(201, {"id": TOKEN}))) as server:
        stream = stream_to(tenant, server.base_url)
        UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="anna@example.test")
        assert deliver(tenant, stream) == ["created"]
    rows = list(AccountLink.objects.filter(tenant_id=tenant.pk).values())
    assert rows[0]["remote_id"] == ""
    assert TOKEN not in str(rows)


def test_the_service_never_writes_to_an_account_linked_by_another_tenant(
    tenant: Tenant, database_connection: Connection, server: RealServer
) -> None:
    stream = stream_to(tenant, server.base_url)
    other = TenantFactory.create(id=f"o-{uuid4().hex[:12]}", name="other", host=f"{uuid4().hex}.example.test")
    theirs = ActionFactory.create(tenant_id=other.pk, name="theirs", template="scim-user-provisioning")
    user = UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="anna@example.test")
    account = server.add(userName="somebody@example.test", externalId=user.user_id)
    held = Link(other.pk, str(theirs.pk), server_of(server.base_url), user.user_id, remote_id=account["id"], birth=1, position=1)
    write_links([held.document()])
    deliver(tenant, stream)
    update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"name": "Anna"})
    delete_user(tenant_id=tenant.pk, user_id=user.user_id)
    deliver(tenant, stream)
    assert [found["userName"] for found in server.users()] == ["somebody@example.test"]
    assert accounts_of_other_tenants(held.server, [account["id"]], tenant_id=tenant.pk) == {account["id"]}
    assert accounts_of_other_tenants(held.server, [account["id"]], tenant_id=other.pk) == set()


def test_two_streams_with_the_same_server_write_a_user_one_after_another(
    tenant: Tenant, database_connection: Connection, server: RealServer
) -> None:
    first, second = stream_to(tenant, server.base_url), stream_to(tenant, server.base_url + "/", "the other")
    user = UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="anna@example.test")
    setup = draft_setup(Action.objects.of(tenant.pk).get(pk=first.destination["action_id"]))
    here = server_of(server.base_url)
    with RunLinks(setup, 1, shared_servers=frozenset({here})).lock(here, user.user_id, seconds=30):
        deliver(tenant, second)
        waiting = Delivery.objects.get(stream_id=second.pk)
        assert (waiting.state, waiting.attempts) == ("todo", 0)
        with pytest.raises(NoTurn), RunLinks(setup, 1, shared_servers=frozenset({here})).lock(here, user.user_id, seconds=30):
            pytest.fail("two callers got the lock")
    assert not AccountLock.objects.filter(tenant_id=tenant.pk).exists()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE provisioning_lane SET not_before = now() - interval '1 second' WHERE stream_id = %s", [second.pk])
    assert deliver(tenant, second, first) == ["created"]
    assert Delivery.objects.get(stream_id=first.pk).reason == "duplicate delivery"


def test_a_run_locks_no_account_if_no_other_stream_writes_to_its_server(tenant: Tenant, server: RealServer) -> None:
    stream = stream_to(tenant, server.base_url)
    setup = draft_setup(Action.objects.of(tenant.pk).get(pk=stream.destination["action_id"]))
    with RunLinks(setup, 1).lock(SERVER, "database|anna", seconds=30):
        assert not AccountLock.objects.filter(tenant_id=tenant.pk).exists()


def test_the_lock_that_a_killed_worker_has_on_an_account_expires(tenant: Tenant, server: RealServer) -> None:
    setup = draft_setup(Action.objects.of(tenant.pk).get(pk=stream_to(tenant, server.base_url).destination["action_id"]))
    AccountLockFactory.create(tenant_id=tenant.pk, server=SERVER, user_id="database|anna")
    with RunLinks(setup, 1, shared_servers=frozenset({SERVER})).lock(SERVER, "database|anna", seconds=30):
        assert AccountLock.objects.filter(tenant_id=tenant.pk, until__gt=timezone.now()).exists()


def test_the_sixth_deletion_proven_only_by_a_name_within_an_hour_holds_the_stream(tenant: Tenant, database_connection: Connection) -> None:
    def answer(request: Any) -> bytes:
        if request.filter.startswith("externalId"):
            return scim_error(400, "invalidFilter")
        name = request.filter.partition(" eq ")[2].strip('"')
        found = {"id": name, "userName": name}
        return reply(200, {"Resources": [found], "totalResults": 1})

    with misbehaving_server(by_verb(GET=answer, POST=scim_error(400), DELETE=reply(204))) as server:
        stream = stream_to(tenant, server.base_url)
        for number in range(6):
            user = UserFactory.create(
                tenant_id=tenant.pk, connection=database_connection, email=f"u{number}@example.test", email_verified=True
            )
            delete_user(tenant_id=tenant.pk, user_id=user.user_id)
        deliver(tenant, stream)
        assert sum(line.startswith("DELETE") for line in server.lines) == 5
        stream.refresh_from_db()
        assert "by their userName alone" in stream.held_reason
        assert not DeadLetter.objects.filter(stream_id=stream.pk, event_type="user.deleted").exists()
        resume_stream(tenant_id=tenant.pk, stream_id=stream.pk)
        deliver(tenant, stream)
        assert sum(line.startswith("DELETE") for line in server.lines) == 6


def test_the_count_of_deletions_proven_only_by_a_name_is_reset_after_an_hour(
    tenant: Tenant, stream: EventStream, settings: Settings
) -> None:
    settings.DELETIONS_BY_NAME_PER_HOUR = 1
    known = {"stream_id": stream.pk, "tenant_id": tenant.pk}
    for _ in range(3):
        allow_named_deletion("database|tried again", **known)
    with pytest.raises(TooManyNamedDeletions):
        allow_named_deletion("database|next", **known)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE provisioning_nameddeletions SET window_began_at = now() - interval '61 minutes'")
    allow_named_deletion("database|next", **known)


def test_recorded_creates_become_links_and_other_recorded_writes_become_suspects(
    tenant: Tenant, database_connection: Connection, server: RealServer
) -> None:
    stream = stream_to(tenant, server.base_url)
    users = [
        UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email=f"u{number}@example.test") for number in range(3)
    ]
    deliver(tenant, stream)
    delete_user(tenant_id=tenant.pk, user_id=users[2].user_id)
    deliver(tenant, stream)
    Delivery.objects.filter(stream_id=stream.pk, key=f"user:{users[1].user_id}").update(reason="updated")
    before = {row.user_id: row for row in AccountLink.objects.filter(tenant_id=tenant.pk)}
    AccountLink.objects.filter(tenant_id=tenant.pk).delete()
    actions, versions = Action.objects.of(tenant.pk), ActionVersion.objects.filter(action__tenant_id=tenant.pk)
    assert learn_links_of_the_past(actions, versions) == 3
    assert learn_links_of_the_past(actions, versions) == 0
    after = {row.user_id: row for row in AccountLink.objects.filter(tenant_id=tenant.pk)}
    for user_id, row in after.items():
        same = before[user_id]
        assert (row.remote_id, row.server, row.user_names, row.ended) == (same.remote_id, same.server, same.user_names, same.ended)
    assert [after[user.user_id].is_suspect for user in users] == [False, True, False]
    assert [after[user.user_id].birth for user in users] == [before[users[0].user_id].birth, 0, before[users[2].user_id].birth]


def test_links_of_another_tenant_cannot_be_confirmed_or_deleted(tenant: Tenant) -> None:
    row = replace(link(str(uuid4()), remote_id=uuid4().hex, is_suspect=True), tenant_id=tenant.pk)
    write_links([row.document()])
    stored = AccountLink.objects.get(tenant_id=tenant.pk)
    assert confirm_links(tenant_id="another", link_ids=[stored.pk]) == 0
    assert not forget_link(tenant_id="another", link_id=stored.pk)
    assert confirm_links(tenant_id=tenant.pk, link_ids=[stored.pk]) == 1
    assert confirm_links(tenant_id=tenant.pk, link_ids=[stored.pk]) == 0
    assert forget_link(tenant_id=tenant.pk, link_id=stored.pk)


def test_users_that_were_not_found_are_counted_and_raise_an_alert_above_a_percentage(
    tenant: Tenant, database_connection: Connection, settings: Settings
) -> None:
    settings.NOT_FOUND_ALERT_USERS = 3
    settings.DEAD_LETTER_ALERT_FIRST = False
    nothing = reply(200, {"Resources": [], "totalResults": 0})
    with misbehaving_server(by_verb(GET=nothing)) as server:
        stream = stream_to(tenant, server.base_url)
        users = [
            UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email=f"u{number}@example.test") for number in range(3)
        ]
        Delivery.objects.filter(stream_id=stream.pk).delete()
        number_tenant(tenant.pk)
        dispatch.dispatch_tenant(tenant.pk)
        Delivery.objects.filter(stream_id=stream.pk).delete()
        for user in users[:2]:
            delete_user(tenant_id=tenant.pk, user_id=user.user_id)
        assert deliver(tenant, stream) == ["no user to delete"] * 2
        alerts.raise_alerts()
        assert not Alert.objects.filter(stream_id=stream.pk, kind="not_found").exists()
        delete_user(tenant_id=tenant.pk, user_id=users[2].user_id)
        deliver(tenant, stream)
    assert users_not_found(stream.pk) == 3
    alerts.raise_alerts()
    raised = Alert.objects.get(stream_id=stream.pk, kind="not_found")
    assert (raised.facts["count"], raised.facts["settled"]) == (3, 3)


def test_a_claim_contains_the_position_of_its_event(tenant: Tenant, database_connection: Connection, server: RealServer) -> None:
    stream = stream_to(tenant, server.base_url)
    UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="anna@example.test")
    number_tenant(tenant.pk)
    dispatch.dispatch_tenant(tenant.pk)
    claim = lanes.claim_oldest(stream.pk)
    assert isinstance(claim, Claim)
    assert claim.position == Delivery.objects.get(stream_id=stream.pk).position > 0


def test_a_lookup_that_returns_an_id_with_a_nul_character_causes_no_error(tenant: Tenant, database_connection: Connection) -> None:
    odd = {"id": "a\0b", "externalId": "hr|1"}
    with misbehaving_server(by_verb(GET=reply(200, {"Resources": [odd], "totalResults": 1}))) as server:
        stream = stream_to(tenant, server.base_url)
        user = UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="anna@example.test")
        number_tenant(tenant.pk)
        dispatch.dispatch_tenant(tenant.pk)
        Delivery.objects.filter(stream_id=stream.pk).delete()
        update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"name": "Anna"})
        assert deliver(tenant, stream) == ["no user to update"]


def test_an_account_id_with_a_secret_is_not_stored_when_the_user_name_changes(tenant: Tenant, database_connection: Connection) -> None:
    user = UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="anna@example.test")
    echo = {"id": f"x{TOKEN}", "externalId": user.user_id, "userName": "anna@example.test"}
    with misbehaving_server(by_verb(GET=reply(200, {"Resources": [echo], "totalResults": 1}), PUT=reply(204))) as server:
        stream = stream_to(tenant, server.base_url)
        update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"email": "new@example.test"})
        deliver(tenant, stream)
    assert TOKEN not in str(list(AccountLink.objects.filter(tenant_id=tenant.pk).values()))


def test_the_accounts_of_a_deleted_action_stay_linked_to_their_users(tenant: Tenant, database_connection: Connection) -> None:
    account: dict[str, Any] = {}

    def made(request: Any) -> bytes:
        account.update({name: request.json[name] for name in ("userName", "displayName") if name in request.json}, id="7")
        return reply(201 if request.verb == "POST" else 200, account)

    def read(request: Any) -> bytes:
        if request.filter.startswith("externalId"):
            return scim_error(400, "invalidFilter")
        return reply(200, {"Resources": [account], "totalResults": 1} if request.filter else account)

    with misbehaving_server(by_verb(POST=made, PUT=made, GET=read, DELETE=reply(204))) as server:
        old = stream_to(tenant, server.base_url)
        first = UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="anna@example.test", email_verified=True)
        assert deliver(tenant, old) == ["created"]
        delete_stream(tenant_id=tenant.pk, stream_id=old.pk)
        delete_action(tenant_id=tenant.pk, action_id=old.destination["action_id"])
        new = stream_to(tenant, server.base_url, adopt_on_conflict=True)
        passwordless = ConnectionFactory.create(tenant_id=tenant.pk, name="mail", strategy="email")
        second = UserFactory.create(tenant_id=tenant.pk, connection=passwordless, email="anna@example.test", email_verified=True)
        number_tenant(tenant.pk)
        dispatch.dispatch_tenant(tenant.pk)
        Delivery.objects.filter(stream_id=new.pk).delete()
        update_user(tenant_id=tenant.pk, user_id=second.user_id, changes={"name": "Second"})
        delete_user(tenant_id=tenant.pk, user_id=second.user_id)
        assert all("belongs to another user" in end for end in deliver(tenant, new))
        update_user(tenant_id=tenant.pk, user_id=first.user_id, changes={"email": "berg@example.test"})
        assert deliver(tenant, new)[-1] == "updated"
        assert accounts_of_other_tenants(server_of(server.base_url), ["7"], tenant_id="another") == {"7"}
        delete_user(tenant_id=tenant.pk, user_id=first.user_id)
        assert deliver(tenant, new)[-1] == "deleted"
        assert accounts_of_other_tenants(server_of(server.base_url), ["7"], tenant_id="another") == set()


def redeliver_letter(tenant: Tenant, stream: EventStream) -> list[str]:
    letters = list(DeadLetter.objects.filter(stream_id=stream.pk, state="open").values_list("pk", flat=True))
    done = redelivery.redeliver_letters(tenant_id=tenant.pk, letter_ids=letters, order=redelivery.Order("ada@example.test"))
    assert done.count == len(letters) == 1
    return deliver(tenant, stream)


def test_an_event_for_an_account_with_an_unproven_key_is_delivered_after_a_confirmation(
    tenant: Tenant, database_connection: Connection, server: RealServer
) -> None:
    user = UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="anna@example.test")
    account = server.add(userName="Anna@example.test", externalId=user.user_id)
    here = server_of(server.base_url)
    other = TenantFactory.create(id=f"o-{uuid4().hex[:12]}", name="other", host=f"{uuid4().hex}.example.test")
    theirs = ActionFactory.create(tenant_id=other.pk, name="theirs", template="scim-user-provisioning")
    write_links([Link(other.pk, str(theirs.pk), here, user.user_id, remote_id="theirs", birth=1, position=1).document()])
    stream = stream_to(tenant, server.base_url)
    number_tenant(tenant.pk)
    dispatch.dispatch_tenant(tenant.pk)
    Delivery.objects.filter(stream_id=stream.pk).delete()
    update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"email": "berg@example.test"})
    assert "confirm its link under Account links, and redeliver" in deliver(tenant, stream)[-1]
    (suspect,) = AccountLink.objects.filter(tenant_id=tenant.pk, is_suspect=True)
    assert (suspect.remote_id, suspect.user_names, suspect.keys) == (account["id"], ["Anna@example.test"], [user.user_id])
    assert confirm_links(tenant_id=tenant.pk, link_ids=[suspect.pk]) == 1
    assert redeliver_letter(tenant, stream) == ["updated"]
    assert [found["userName"] for found in server.users()] == ["berg@example.test"]


@pytest.mark.parametrize("origin", ["created", "by name"])
@pytest.mark.parametrize("kind", ["user.updated", "user.deleted"])
def test_an_old_link_without_a_name_can_be_confirmed_and_its_event_redelivered(
    tenant: Tenant, database_connection: Connection, origin: str, kind: str
) -> None:
    user = UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="anna@example.test")
    account = {"id": "7", "userName": "a.berg", "meta": {"created": "2020-01-01T00:00:00Z"}}

    def read(request: Any) -> bytes:
        return scim_error(400, "invalidFilter") if request.filter else reply(200, account)

    with misbehaving_server(by_verb(GET=read, PUT=reply(204), DELETE=reply(204))) as server:
        stream = stream_to(tenant, server.base_url)
        number_tenant(tenant.pk)
        dispatch.dispatch_tenant(tenant.pk)
        Delivery.objects.filter(stream_id=stream.pk).delete()
        here, action_id = server_of(server.base_url), stream.destination["action_id"]
        known: dict[str, Any] = {"remote_id": "7", "keys": (user.user_id,), "origin": origin, "is_suspect": origin == "by name"}
        if origin == "by name":
            confirmed = Link(tenant.pk, action_id, here, user.user_id, **known)
            write_links([confirmed.document()])
            confirm_links(tenant_id=tenant.pk, link_ids=[AccountLink.objects.get(tenant_id=tenant.pk).pk])
        else:
            write_links([Link(tenant.pk, action_id, here, user.user_id, **known).document()])
        if kind == "user.updated":
            update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"name": "Anna"})
        else:
            delete_user(tenant_id=tenant.pk, user_id=user.user_id)
        ends = deliver(tenant, stream)
        if origin == "created":
            assert "confirm its link under Account links, and redeliver" in ends[-1]
            assert confirm_links(tenant_id=tenant.pk, link_ids=[AccountLink.objects.get(tenant_id=tenant.pk).pk]) == 1
            ends = redeliver_letter(tenant, stream)
        assert ends == [kind.removeprefix("user.")]
    stored = AccountLink.objects.get(tenant_id=tenant.pk)
    if kind == "user.updated":
        assert (stored.user_names, stored.created_there) == (["a.berg", "anna@example.test"], "2020-01-01T00:00:00Z")


def test_a_confirmed_link_stores_the_witnesses_of_the_account_that_is_read_next() -> None:
    answers = [{"id": "7", "userName": "a.berg"}]

    def read(request: Any) -> bytes:
        return scim_error(400, "invalidFilter") if request.filter else reply(200, answers[-1])

    links = MemoryLinks()
    with misbehaving_server(by_verb(GET=read, PUT=scim_error(400))) as server:
        here = server_of(server.base_url)
        links.write(Link("acme", "action", here, "database|anna", remote_id="7", origin="adopted"))
        assert run_event(server.base_url, "user.updated", links=links).failed.status == 400
        assert links.only().has_sent("a.berg")
        answers.append({"id": "7", "userName": "stranger"})
        assert isinstance(run_event(server.base_url, "user.deleted", links=links).failed, UnverifiableMatch)
        assert "DELETE /Users/7" not in server.lines


def test_a_link_confirmed_during_a_run_stays_confirmed(tenant: Tenant) -> None:
    row = replace(link(str(uuid4()), remote_id=uuid4().hex, is_suspect=True), tenant_id=tenant.pk)
    write_links([row.document()])
    confirm_links(tenant_id=tenant.pk, link_ids=AccountLink.objects.filter(tenant_id=tenant.pk).values_list("pk", flat=True))
    write_links([replace(row, position=9).document()])
    assert not AccountLink.objects.get(tenant_id=tenant.pk).is_suspect


def test_a_suspect_whose_account_is_linked_to_another_user_cannot_be_confirmed(tenant: Tenant) -> None:
    suspect = replace(link(str(uuid4()), remote_id=uuid4().hex, is_suspect=True), tenant_id=tenant.pk)
    write_links([suspect.document(), replace(suspect, user_id="database|bob", is_suspect=False).document()])
    with pytest.raises(Conflict):
        confirm_links(tenant_id=tenant.pk, link_ids=[AccountLink.objects.get(tenant_id=tenant.pk, is_suspect=True).pk])


def two_suspects(tenant: Tenant) -> list[int]:
    suspect = replace(link(str(uuid4()), remote_id=uuid4().hex, is_suspect=True), tenant_id=tenant.pk)
    write_links([suspect.document(), replace(suspect, user_id="database|bob").document()])
    return list(AccountLink.objects.filter(tenant_id=tenant.pk).order_by("pk").values_list("pk", flat=True))


def test_two_suspects_of_one_account_cannot_be_confirmed_in_one_call(tenant: Tenant) -> None:
    suspects = two_suspects(tenant)
    with pytest.raises(Conflict):
        confirm_links(tenant_id=tenant.pk, link_ids=suspects)
    assert AccountLink.objects.filter(tenant_id=tenant.pk, is_suspect=True).count() == 2
    assert confirm_links(tenant_id=tenant.pk, link_ids=suspects[:1]) == 1
    with pytest.raises(Conflict):
        confirm_links(tenant_id=tenant.pk, link_ids=suspects[1:])


def test_two_concurrent_confirmations_of_one_account_confirm_one_suspect(tenant: Tenant) -> None:
    first, second = two_suspects(tenant)

    def confirm_second() -> int:
        try:
            return confirm_links(tenant_id=tenant.pk, link_ids=[second])
        finally:
            connection.close()

    def waits() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))")
            return bool(cursor.fetchone()[0])

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            assert confirm_links(tenant_id=tenant.pk, link_ids=[first]) == 1
            later = pool.submit(confirm_second)
            eventually(lambda: waits() or later.done())
        with pytest.raises(Conflict):
            later.result(20)
    assert list(AccountLink.objects.filter(tenant_id=tenant.pk, is_suspect=True).values_list("pk", flat=True)) == [second]


def test_ended_links_are_deleted_if_their_user_has_no_dead_letter(tenant: Tenant, settings: Settings) -> None:
    rows = [replace(link(str(uuid4()), remote_id=name, ended=ended), tenant_id=tenant.pk) for name, ended in (("open", None), ("over", 4))]
    write_links([row.document() for row in rows])
    with connection.cursor() as cursor:
        cursor.execute("UPDATE provisioning_accountlink SET updated_at = now() - interval '1 year' WHERE tenant_id = %s", [tenant.pk])
    retention.prune()
    assert list(AccountLink.objects.filter(tenant_id=tenant.pk).values_list("remote_id", flat=True)) == ["open"]
