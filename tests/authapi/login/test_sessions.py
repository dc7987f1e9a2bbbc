"""Sessions of end users: how they are found, how long they last, and the effects of their end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection as database
from django.db import transaction
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from authapi import tasks, tenant_settings
from authapi.login.sessions import begin_session, end_session, end_sessions_of, find_session, note_client, renew_session, upstream_of
from authapi.models import LogoutNotice, RefreshToken, Session, SessionClient, TenantSettings
from identity.models import Connection, Tenant, User
from identity.services.connections import create_connection
from identity.services.relations import delete_users
from identity.services.tenants import create_tenant
from identity.services.users import create_user, delete_user, link_users, unlink_identity, update_user
from tests.factories.sign_in import people, person, session_of, web_client

NOON = datetime(2031, 5, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def user(tenant: Tenant) -> User:
    return person(people(tenant))


def rows(tenant: Tenant) -> list[str]:
    return list(Session.objects.of(tenant.pk).values_list("pk", flat=True))


# --- Finding ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cookie", ["", "unknown", "\x00", "ä" * 5000])
def test_an_unknown_cookie_finds_no_session(tenant: Tenant, cookie: str) -> None:
    assert find_session(tenant_id=tenant.pk, cookie=cookie) is None


def test_the_stored_digest_does_not_open_the_session(user: User) -> None:
    session, cookie = session_of(user)
    assert find_session(tenant_id=user.tenant_id, cookie=session.digest) is None
    assert cookie not in str(vars(Session.objects.of(user.tenant_id).get()))


def test_a_session_of_one_tenant_is_unknown_at_another_tenant(user: User) -> None:
    other = create_tenant(tenant_id=f"{user.tenant_id}-b", name="b", host=f"{user.tenant_id}-b.example.test")
    _, cookie = session_of(user)
    assert find_session(tenant_id=other.pk, cookie=cookie) is None
    assert find_session(tenant_id=user.tenant_id, cookie=cookie) is not None


def test_a_session_of_a_blocked_user_is_refused_even_after_the_block_ends(user: User) -> None:
    update_user(tenant_id=user.tenant_id, user_id=user.user_id, changes={"blocked": True})
    # A login that was in progress when the user was blocked begins this session.
    _, cookie = session_of(user)
    assert find_session(tenant_id=user.tenant_id, cookie=cookie) is None
    update_user(tenant_id=user.tenant_id, user_id=user.user_id, changes={"blocked": False})
    assert find_session(tenant_id=user.tenant_id, cookie=cookie) is None


def test_an_unused_session_ends_after_its_idle_lifetime(user: User) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        session, cookie = session_of(user)
        clock.shift(71 * HOUR)
        assert find_session(tenant_id=user.tenant_id, cookie=cookie) is not None
        clock.shift(73 * HOUR)
        # The absolute lifetime of 168 hours is far from over.
        assert session.expires_at - NOON == 168 * HOUR
        assert find_session(tenant_id=user.tenant_id, cookie=cookie) is None


def test_use_extends_the_idle_lifetime_of_a_session(user: User) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        _, cookie = session_of(user)
        for _ in range(2):
            clock.shift(71 * HOUR)
            assert find_session(tenant_id=user.tenant_id, cookie=cookie) is not None


def test_use_does_not_extend_the_absolute_lifetime_of_a_session(user: User) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        session, cookie = session_of(user)
        for _ in range(167):
            clock.shift(HOUR)
            assert find_session(tenant_id=user.tenant_id, cookie=cookie) is not None
        session.refresh_from_db()
        # The cleanup finds expired sessions by their idle expiry, so this must not be after the absolute expiry.
        assert session.idle_expires_at == session.expires_at
        clock.shift(HOUR)
        assert find_session(tenant_id=user.tenant_id, cookie=cookie) is None


def test_a_session_whose_cookie_ends_with_the_browser_has_separate_lifetimes(user: User) -> None:
    TenantSettings(tenant_id=user.tenant_id, values={"session_lifetime": 10, "idle_ephemeral_session_lifetime": 1}).save()
    tenant_settings.remembered_settings.clear()
    with time_machine.travel(NOON, tick=False):
        kept, _ = session_of(user)
        forgotten, _ = session_of(user, is_persistent=False)
    assert (kept.idle_expires_at, kept.expires_at) == (NOON + 10 * HOUR, NOON + 10 * HOUR)
    assert (forgotten.idle_expires_at, forgotten.expires_at) == (NOON + HOUR, NOON + 72 * HOUR)


def test_a_used_session_is_written_at_most_once_a_minute(user: User) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        session, cookie = session_of(user)
        clock.shift(59)
        find_session(tenant_id=user.tenant_id, cookie=cookie)
        session.refresh_from_db()
        assert session.last_interacted_at == NOON
        clock.shift(1)
        find_session(tenant_id=user.tenant_id, cookie=cookie)
        session.refresh_from_db()
        assert session.last_interacted_at == NOON + timedelta(seconds=60)


@pytest.mark.parametrize(
    ("ip", "kept"), [("192.0.2.7", "192.0.2.7"), ("", None), (None, None), ("unix:", None), ("fe80::1%eth0", "fe80::1")]
)
def test_any_user_agent_and_address_can_be_stored(user: User, ip: str | None, kept: str | None) -> None:
    session, _ = session_of(user, ip=ip, user_agent="\x00\udcff" + "x" * 1000)
    session.refresh_from_db()
    assert (session.initial_ip, session.last_ip, len(session.initial_user_agent)) == (kept, kept, 500)


# --- New proofs -------------------------------------------------------------------------------------------------------


def test_a_new_proof_changes_the_cookie_but_not_the_session_or_its_expiry(user: User) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        session, cookie = session_of(user)
        clock.shift(HOUR)
        renewed = renew_session(session, methods=["pwd"], ip="192.0.2.2", user_agent="Other")
    assert renewed is not None
    with time_machine.travel(NOON + HOUR, tick=False):
        assert find_session(tenant_id=user.tenant_id, cookie=cookie) is None
        found = find_session(tenant_id=user.tenant_id, cookie=renewed)
    assert found is not None
    assert (found.pk, found.authenticated_at, found.expires_at) == (session.pk, NOON + HOUR, NOON + 168 * HOUR)


def test_a_new_proof_does_not_revive_a_session_that_has_ended(user: User) -> None:
    session, _ = session_of(user)
    end_session(session, reason="rp-logout")
    assert renew_session(session, methods=["pwd"], ip=None, user_agent="") is None


def test_only_one_cookie_is_valid_after_two_simultaneous_proofs(user: User) -> None:
    session, _ = session_of(user)
    same = Session.objects.of(user.tenant_id).get()
    assert renew_session(session, methods=["pwd"], ip=None, user_agent="") is not None
    assert renew_session(same, methods=["pwd"], ip=None, user_agent="") is None


def test_data_for_a_federated_logout_is_stored_encrypted(user: User) -> None:
    session, _ = session_of(user, upstream='{"id_token": "canary"}')
    row = Session.objects.of(user.tenant_id).get()
    assert "canary" not in row.sealed_upstream
    assert upstream_of(row) == upstream_of(session) == '{"id_token": "canary"}'


# --- Ending -----------------------------------------------------------------------------------------------------------

ADDRESS = {"oidc_logout": {"backchannel_logout_urls": ["https://app.example.test/logged-out"]}}


def test_an_ended_session_is_refused_and_ends_once(user: User, tenant: Tenant) -> None:
    client, _ = web_client(tenant, settings=ADDRESS)
    session, cookie = session_of(user)
    note_client(session, client, protocol="oauth")
    note_client(session, client, protocol="oauth")
    assert SessionClient.objects.of(tenant.pk).count() == 1
    end_session(session, reason="rp-logout")
    end_session(session, reason="rp-logout")
    assert find_session(tenant_id=tenant.pk, cookie=cookie) is None
    assert LogoutNotice.objects.of(tenant.pk).count() == 1


def test_the_end_of_a_session_revokes_only_the_refresh_tokens_bound_to_it(user: User, tenant: Tenant) -> None:
    client, _ = web_client(tenant)
    session, _ = session_of(user)
    for scope in ("openid online_access", "openid offline_access", "not_online_access"):
        RefreshToken(tenant=tenant, user=user, application=client, token=scope, scope=scope, session=session, sid=session.pk).save()
    end_session(session, reason="rp-logout")
    left = RefreshToken.objects.of(tenant.pk).filter(revoked__isnull=True).values_list("scope", flat=True)
    assert sorted(left) == ["not_online_access", "openid offline_access"]


def test_all_sessions_of_a_user_except_the_named_session_can_be_ended(user: User, tenant: Tenant) -> None:
    ada = [session_of(user)[0] for _ in range(3)]
    eve, _ = session_of(person(user.connection, email="eve@example.test"))
    count = end_sessions_of(tenant_id=tenant.pk, user_id=user.pk, reason="password-changed", except_id=ada[1].pk)
    assert (count, sorted(rows(tenant))) == (2, sorted([ada[1].pk, eve.pk]))


def test_the_cleanup_ends_expired_sessions_and_notifies_the_clients_that_requested_a_notice(user: User, tenant: Tenant) -> None:
    asked, _ = web_client(tenant, settings={"oidc_logout": {**ADDRESS["oidc_logout"], "backchannel_logout_initiators": {"mode": "all"}}})
    plain, _ = web_client(tenant, settings=ADDRESS)
    over, _ = session_of(user)
    going_on, _ = session_of(user)
    for client in (asked, plain):
        note_client(over, client, protocol="oauth")
    Session.objects.of(tenant.pk).filter(pk=over.pk).update(idle_expires_at=timezone.now())
    tasks.end_sessions()
    assert rows(tenant) == [going_on.pk]
    assert [(notice.client_id, notice.initiator) for notice in LogoutNotice.objects.of(tenant.pk)] == [(asked.pk, "session-expired")]


def test_a_deleted_user_is_logged_out_everywhere_and_the_clients_are_notified(user: User, tenant: Tenant) -> None:
    initiators = {"mode": "custom", "selected_initiators": ["account-deleted"]}
    client, _ = web_client(tenant, settings={"oidc_logout": {**ADDRESS["oidc_logout"], "backchannel_logout_initiators": initiators}})
    session, cookie = session_of(user)
    note_client(session, client, protocol="oauth")
    delete_user(tenant_id=tenant.pk, user_id=user.user_id)
    assert find_session(tenant_id=tenant.pk, cookie=cookie) is None
    (notice,) = LogoutNotice.objects.of(tenant.pk)
    assert (notice.sid, notice.subject, notice.initiator) == (session.pk, user.user_id, "account-deleted")


def test_users_who_are_deleted_together_are_logged_out_without_a_query_per_user(tenant: Tenant) -> None:
    client, _ = web_client(tenant, settings={"oidc_logout": {**ADDRESS["oidc_logout"], "backchannel_logout_initiators": {"mode": "all"}}})
    connection = people(tenant)
    users = [person(connection, email=f"user{number}@example.test") for number in range(30)]
    sessions = [session_of(user)[0] for user in users[:2]]
    for session in sessions:
        note_client(session, client, protocol="oauth")
    with CaptureQueriesContext(database) as queries, transaction.atomic():
        delete_users(User.objects.of(tenant.pk).filter(connection=connection), 30)
    of_sessions = [query["sql"] for query in queries if query["sql"].startswith("SELECT") and 'FROM "authapi_session"' in query["sql"]]
    assert len(of_sessions) < len(users)
    assert rows(tenant) == []
    assert {notice.sid for notice in LogoutNotice.objects.of(tenant.pk)} == {session.pk for session in sessions}


def test_a_deletion_by_a_plain_query_set_ends_the_sessions_and_notifies_the_clients(user: User, tenant: Tenant) -> None:
    client, _ = web_client(tenant, settings={"oidc_logout": {**ADDRESS["oidc_logout"], "backchannel_logout_initiators": {"mode": "all"}}})
    session, _ = session_of(user)
    note_client(session, client, protocol="oauth")
    QuerySet(User).filter(pk=user.pk).delete()
    assert LogoutNotice.objects.of(tenant.pk).get().sid == session.pk


def test_a_session_can_begin_only_in_the_tenant_of_its_connection(tenant: Tenant, user: User) -> None:
    other = create_tenant(tenant_id=f"{tenant.pk}-b", name="b", host=f"{tenant.pk}-b.example.test")
    foreign: Connection = people(other)
    with pytest.raises(Exception, match="same_tenant"):
        begin_session(
            tenant_id=tenant.pk, user=user, connection=foreign, methods=["pwd"], ip=None, user_agent="", is_persistent=True
        )  # fmt: skip


def test_sessions_and_tokens_of_an_identity_end_when_the_identity_is_unlinked(user: User, tenant: Tenant) -> None:
    client, _ = web_client(tenant)
    elsewhere = create_connection(tenant_id=tenant.pk, name="elsewhere", strategy="oidc")
    second = create_user(tenant_id=tenant.pk, connection=elsewhere, identifier="ada", email="ada@elsewhere.test")
    link_users(tenant_id=tenant.pk, primary_id=user.user_id, secondary_id=second.user_id)
    own, _ = session_of(user)
    fields: dict[str, Any] = {"methods": ["federated"], "ip": "192.0.2.1", "user_agent": "Test", "is_persistent": True}
    through, _ = begin_session(tenant_id=tenant.pk, user=user, connection=elsewhere, **fields)
    for session in (own, through):
        RefreshToken(tenant=tenant, user=user, application=client, token=session.pk, session=session, sid=session.pk).save()
    provider, _, identifier = second.user_id.partition("|")
    unlink_identity(tenant_id=tenant.pk, user_id=user.user_id, provider=provider, identifier=identifier)
    assert list(Session.objects.of(tenant.pk).filter(user=user)) == [own]
    assert [row.sid for row in RefreshToken.objects.of(tenant.pk).filter(revoked__isnull=True)] == [own.pk]
