"""Notices of logouts to clients, sent to a real server that fails in several ways."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs

import pytest
from django.utils import timezone
from joserfc import jwt
from joserfc.jwk import KeySet, OctKey

from authapi import tasks
from authapi.login.sessions import end_session, note_client
from authapi.models import Client, LogoutNotice, SignIn
from authapi.protocols.oauth.logout_notices import claim_notice, due_notices, logout_addresses
from authapi.services.clients import revoke_client, update_client
from authapi.tokens.keys import published_keys
from foundation.hooks import work_waits
from identity.models import Tenant
from tests.factories.scim import misbehaving_server, reply, sequence
from tests.factories.sign_in import people, person, session_of, web_client

DEAD = "http://127.0.0.1:1/logout"
ISSUER = "https://login.example.test/"


def ended(tenant: Tenant, *urls: str, **changes: Any) -> Client:
    """End a session with a client that has these logout URLs, and return the client."""
    client, _ = web_client(tenant, settings={"oidc_logout": {"backchannel_logout_urls": list(urls)}}, **changes)
    session, _ = session_of(person(people(tenant)), issuer=ISSUER)
    note_client(session, client, protocol="oauth")
    end_session(session, reason="rp-logout")
    return client


def notices(tenant: Tenant) -> list[LogoutNotice]:
    return list(LogoutNotice.objects.of(tenant.pk))


def send(notice: LogoutNotice) -> None:
    tasks.send_logout_notice(str(notice.pk))


@pytest.mark.parametrize("status", [500, 503, 429, 302])
def test_a_temporary_error_delays_the_notice(tenant: Tenant, status: int) -> None:
    with misbehaving_server(sequence(reply(status))) as server:
        ended(tenant, f"http://127.0.0.1:{server.port}/out")
        send(notices(tenant)[0])
    (notice,) = notices(tenant)
    assert notice.attempts == 1
    assert timedelta(seconds=1) < notice.due_at - timezone.now() <= timedelta(seconds=5)


def test_a_client_that_refuses_the_logout_token_gets_no_second_notice(tenant: Tenant) -> None:
    with misbehaving_server(sequence(reply(400))) as server:
        client = ended(tenant, f"http://127.0.0.1:{server.port}/out")
        send(notices(tenant)[0])
    assert notices(tenant) == []
    line = SignIn.objects.of(tenant.pk).get(type="flo")
    assert (line.client_id, line.description) == (client.client_id, "The client was not notified of the logout: it answered 400.")


def test_a_client_whose_secret_is_not_stored_gets_no_notice(tenant: Tenant) -> None:
    client = ended(tenant, DEAD)
    update_client(tenant_id=tenant.pk, client_id=client.client_id, changes={"algorithm": "HS256"})
    send(notices(tenant)[0])
    assert notices(tenant) == []
    assert "its secret, which was not kept" in SignIn.objects.of(tenant.pk).get(type="flo").description


def test_an_unavailable_client_gets_no_notice_after_the_last_attempt(tenant: Tenant, settings: Any) -> None:
    settings.LOGOUT_RETRY_DELAYS = (0.0, 0.0)
    ended(tenant, DEAD)
    (notice,) = notices(tenant)
    for attempts in (1, 2):
        send(notice)
        assert notices(tenant)[0].attempts == attempts
    send(notice)
    assert notices(tenant) == []
    assert SignIn.objects.of(tenant.pk).get(type="flo").details["attempts"] == 3


def test_an_internal_address_gets_no_request(tenant: Tenant, settings: Any) -> None:
    settings.OUTBOUND_PRIVATE_NETWORKS = []
    with misbehaving_server(sequence(reply(200))) as server:
        ended(tenant, f"http://127.0.0.1:{server.port}/out")
        send(notices(tenant)[0])
    assert server.received == []
    assert notices(tenant)[0].attempts == 1


def test_two_workers_that_receive_the_same_message_send_one_notice(tenant: Tenant) -> None:
    ended(tenant, DEAD)
    (notice,) = notices(tenant)
    assert claim_notice(notice.pk) is not None
    assert claim_notice(notice.pk) is None


def test_a_notice_is_due_until_a_worker_claims_it(tenant: Tenant) -> None:
    ended(tenant, DEAD)
    (notice,) = notices(tenant)
    assert notice.pk in due_notices()
    claim_notice(notice.pk)
    assert notice.pk not in due_notices()


def test_a_revoked_client_gets_no_notice(tenant: Tenant) -> None:
    client, _ = web_client(tenant, settings={"oidc_logout": {"backchannel_logout_urls": [DEAD]}})
    session, _ = session_of(person(people(tenant)))
    note_client(session, client, protocol="oauth")
    revoke_client(tenant_id=tenant.pk, client_id=client.client_id)
    end_session(session, reason="rp-logout")
    assert notices(tenant) == []


@pytest.mark.parametrize(
    ("initiators", "reason", "is_told"),
    [
        (None, "rp-logout", True),
        (None, "idp-logout", True),
        (None, "session-expired", False),
        ({"mode": "custom", "selected_initiators": ["session-expired"]}, "session-expired", True),
        ({"mode": "custom", "selected_initiators": ["session-expired"]}, "password-changed", False),
        ({"mode": "all"}, "password-changed", True),
    ],
)
def test_clients_are_notified_of_logouts_and_of_the_other_events_that_they_selected(initiators: Any, reason: str, is_told: bool) -> None:
    client = Client(settings={"oidc_logout": {"backchannel_logout_urls": [DEAD], "backchannel_logout_initiators": initiators}})
    assert logout_addresses(client, reason) == ((DEAD,) if is_told else ())


@pytest.mark.parametrize("algorithm", ["", "PS256", "RS512", "HS256"])
def test_the_client_can_verify_the_logout_token(tenant: Tenant, algorithm: str) -> None:
    with misbehaving_server(sequence(reply(200))) as server:
        client = ended(tenant, f"http://127.0.0.1:{server.port}/out?tenant=1", algorithm=algorithm)
        (notice,) = notices(tenant)
        send(notice)
        send(notice)
    (request,) = server.received
    assert (request.verb, request.target) == ("POST", "/out?tenant=1")
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"
    (token,) = parse_qs(request.body.decode())["logout_token"]
    key: Any = (
        OctKey.import_key(client.client_secret)
        if algorithm == "HS256"
        else KeySet.import_key_set({"keys": list(published_keys(tenant.pk))})
    )
    read = jwt.decode(token, key, algorithms=[algorithm or "RS256"])
    assert (read.header["typ"], read.header["alg"]) == ("logout+jwt", algorithm or "RS256")
    claims = read.claims
    assert claims.pop("exp") - claims.pop("iat") == 120
    assert len(claims.pop("jti")) == 24
    assert claims == {
        "iss": ISSUER,
        "sub": notice.subject,
        "aud": client.client_id,
        "sid": notice.sid,
        "events": {"http://schemas.openid.net/event/backchannel-logout": {}},
    }
    assert notices(tenant) == []


def test_the_worker_is_notified_after_the_commit(tenant: Tenant) -> None:
    heard: list[Any] = []

    def hear(task: str, arguments: tuple[str, ...], **_: Any) -> None:
        heard.append((task, arguments))

    work_waits.connect(hear)
    try:
        ended(tenant, DEAD)
    finally:
        work_waits.disconnect(hear)
    assert heard == [("authapi.send_logout_notice", (str(notices(tenant)[0].pk),))]
