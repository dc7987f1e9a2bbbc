"""The grant of devices at the token endpoint: pending and ended codes, one exchange, and bound tokens (RFC 8628, 3.4 and 3.5)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections
from django.db.models import QuerySet

from authapi.failures import RequestRefused
from authapi.grants.device_code import GRANT
from authapi.login.sessions import end_session
from authapi.models import DeviceGrant, Initiator, Session
from authapi.services.api_resources import create_api_resource
from authapi.services.clients import update_client
from authapi.tokens.device_codes import Approval, approve_device, deny_device
from identity.models import Tenant, User
from identity.services.tenants import create_tenant
from identity.services.users import update_user
from tests.authapi.asgi_client import Received, ask_token, read_profile
from tests.authapi.certificates import certificate, edge_key, forwarded
from tests.authapi.forging import decoded
from tests.authapi.memory import forget_all
from tests.authapi.protocols.device.conftest import DEVICE, Television, television
from tests.authapi.proving import Prover, settle_memory
from tests.factories.authapi import host_of
from tests.factories.sign_in import person, session_of, web_client

FILMS = "https://films.example.test"


def allowed(tv: Television, *, scopes: tuple[str, ...] = ("openid", "profile"), audience: str = "", **changes: Any) -> Television:
    """Allow the login of a device, without the hosted pages."""
    tv.begin(**changes)
    session, _ = session_of(tv.user)
    approve_device(tv.tenant.pk, tv.row.pk, Approval(session, audience, scopes, None, "192.0.2.1"))
    return tv


def test_a_device_waits_until_a_user_allows_it_and_gets_tokens_once(tv: Television) -> None:
    tv.begin()
    assert tv.error() == (403, "authorization_pending")
    tv.wait(5)
    assert tv.error() == (403, "authorization_pending")
    assert "/activate/done" in tv.allow().location
    answer = tv.poll()
    assert answer.status == 200, answer.body
    assert answer.json().keys() == {"access_token", "id_token", "expires_in", "token_type", "scope"}
    assert read_profile(tv.tenant, answer.json()["access_token"]).json()["name"] == "Ada Lovelace"
    claims = decoded(answer.json()["id_token"])[1]
    assert (claims["sub"], claims["aud"]) == (tv.user.user_id, tv.client.client_id)
    assert "sid" not in claims
    assert tv.lines()[-1] == "sede"


def test_a_second_exchange_is_refused_and_ends_the_tokens_of_the_first_exchange(tv: Television) -> None:
    create_api_resource(tenant_id=tv.tenant.pk, identifier=FILMS, settings={"allow_offline_access": True})
    tokens = allowed(tv, scopes=("openid", "offline_access"), audience=FILMS).poll().json()
    assert tv.error() == (403, "invalid_grant")
    refreshed = ask_token(tv.tenant, {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"], **tv.proof})
    assert refreshed.json()["error"] == "invalid_grant"
    assert read_profile(tv.tenant, tokens["access_token"]).status == 401
    assert tv.lines()[-1] == "fede"


def test_only_one_of_two_simultaneous_exchanges_returns_tokens(tv: Television) -> None:
    allowed(tv)

    def exchange(_: int) -> int:
        try:
            return tv.poll().status
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(exchange, range(2))) == [200, 403]


def test_each_poll_that_is_too_fast_makes_the_interval_five_seconds_longer(tv: Television) -> None:
    tv.begin()
    assert tv.error() == (403, "authorization_pending")
    tv.wait(3.9)
    answer = tv.poll()
    assert (answer.status, answer.json()["error"], answer.headers["retry-after"]) == (429, "slow_down", "10")
    tv.wait(5)
    assert tv.error() == (429, "slow_down")
    assert tv.row.interval == 15
    tv.wait(15)
    assert tv.error() == (403, "authorization_pending")


def test_polls_that_are_too_fast_make_the_interval_at_most_a_minute_long(tv: Television) -> None:
    tv.begin()
    for _ in range(14):
        tv.poll()
    assert tv.row.interval == 60


def test_polls_of_a_waiting_device_do_not_add_to_the_debt_of_its_ip_address(tv: Television, settings: Any) -> None:
    settings.FAILED_AUTHENTICATIONS_PER_MINUTE = 2
    tv.begin()
    for _ in range(4):
        assert tv.error() == (403, "authorization_pending")
        tv.wait(60)
    assert [tv.error(device_code="guess")[1] for _ in range(3)] == ["invalid_grant", "invalid_grant", "too_many_requests"]


def test_the_expiry_of_a_code_is_reported_once(tv: Television) -> None:
    tv.begin()
    tv.expire()
    assert [tv.error() for _ in range(2)] == [(403, "expired_token"), (403, "invalid_grant")]


def test_a_device_that_polls_after_the_expiry_of_an_allowed_code_gets_no_tokens(tv: Television) -> None:
    allowed(tv).expire()
    assert tv.error() == (403, "expired_token")


def test_a_device_that_a_user_refused_gets_access_denied(tv: Television) -> None:
    tv.begin()
    assert tv.browser.submit(tv.ask(), answer="deny").location.endswith("/activate/denied")
    assert tv.error() == (403, "access_denied")
    assert "fdecc" in tv.lines()


@pytest.mark.parametrize("changes", [{"device_code": None}, {"device_code": "guess"}], ids=["missing", "unknown"])
def test_a_poll_with_a_missing_or_unknown_code_is_refused(tv: Television, changes: dict[str, Any]) -> None:
    tv.begin()
    assert tv.error(**changes) == ((400, "invalid_request") if changes["device_code"] is None else (403, "invalid_grant"))


def test_the_user_code_is_not_accepted_as_device_code(tv: Television) -> None:
    code = tv.begin()
    assert tv.error(device_code=code) == (403, "invalid_grant")


def test_another_client_or_tenant_gets_no_tokens_for_a_code(tv: Television) -> None:
    allowed(tv)
    thief, _ = web_client(tv.tenant, grant_types=[GRANT], token_endpoint_auth_method="none")
    assert tv.error(client_id=thief.client_id) == (403, "invalid_grant")
    name = f"{tv.tenant.pk}-b"
    elsewhere = television(create_tenant(tenant_id=name, name=name, host=f"{name}.example.test"))
    elsewhere.codes = tv.codes
    assert elsewhere.error() == (403, "invalid_grant")
    assert tv.poll().status == 200


def test_a_client_that_lost_the_grant_gets_no_tokens(tv: Television) -> None:
    allowed(tv)
    update_client(tenant_id=tv.tenant.pk, client_id=tv.client.client_id, changes={"grant_types": ["refresh_token"]})
    forget_all()
    assert tv.error() == (403, "unauthorized_client")


@pytest.mark.parametrize("change", [{"blocked": True}, {"password": "Another-Horse-8-Battery"}], ids=["a block", "a new password"])
def test_an_allowed_code_becomes_invalid_if_the_user_is_blocked_or_changes_the_password(tv: Television, change: dict[str, Any]) -> None:
    allowed(tv)
    update_user(tenant_id=tv.tenant.pk, user_id=tv.user.user_id, changes=change)
    assert tv.error() == (403, "access_denied")


def test_a_user_who_is_blocked_during_an_exchange_gets_no_tokens(tv: Television) -> None:
    allowed(tv)
    # Set only the column: `update_user` would also withdraw the user's approval, which is another case.
    QuerySet.update(User.objects.of(tv.tenant.pk).filter(pk=tv.user.pk), blocked=True)
    assert tv.error() == (403, "unauthorized")
    assert tv.row.used_at is None


def test_an_ended_session_cannot_allow_a_device(tv: Television) -> None:
    tv.begin()
    session, _ = session_of(tv.user)
    end_session(session, reason=Initiator.PASSWORD_CHANGED)
    with pytest.raises(RequestRefused):
        approve_device(tv.tenant.pk, tv.row.pk, Approval(session, "", ("openid",), None, ""))
    assert tv.error() == (403, "authorization_pending")


def test_tokens_stay_valid_after_the_session_of_the_browser_has_ended(tv: Television) -> None:
    tv.begin()
    tv.allow()
    tv.browser.post("/u/logout", {})
    Session.objects.of(tv.tenant.pk).all().delete()
    assert tv.poll().status == 200


def test_a_scope_that_ends_with_a_session_is_not_granted_to_a_device(tv: Television) -> None:
    tv.begin(scope="openid online_access")
    tv.allow()
    assert tv.poll().json()["scope"] == "openid"


def test_a_device_gets_refresh_tokens_if_the_api_allows_them(tv: Television) -> None:
    create_api_resource(tenant_id=tv.tenant.pk, identifier=FILMS, scopes=[{"value": "watch"}], settings={"allow_offline_access": True})
    tv.begin(audience=FILMS, scope="openid watch admin offline_access")
    tv.allow()
    tokens = tv.poll().json()
    assert tokens["scope"].split() == ["openid", "watch", "offline_access"]
    assert decoded(tokens["access_token"])[1]["aud"] == [FILMS, f"{host_of(tv.tenant).issuer}userinfo"]
    refreshed = ask_token(tv.tenant, {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"], **tv.proof})
    assert refreshed.status == 200


def test_a_proof_binds_the_tokens_of_a_device(tv: Television) -> None:
    settle_memory()
    allowed(tv)
    prover = Prover()
    address = f"{host_of(tv.tenant).issuer}oauth/token"
    answer = prover.proven(lambda: tv.poll(headers={"DPoP": prover.proof("POST", address)}))
    assert answer.json()["token_type"] == "DPoP"


def test_a_code_requested_with_a_proof_is_refused_without_the_key(tv: Television) -> None:
    settle_memory()
    prover, thief = Prover(), Prover()
    issuer = host_of(tv.tenant).issuer
    started = prover.proven(lambda: tv.start(headers={"DPoP": prover.proof("POST", issuer + DEVICE.removeprefix("/"))}))
    tv.codes = started.json()
    tv.allow()

    def poll(holder: Prover) -> Received:
        return holder.proven(lambda: tv.poll(headers={"DPoP": holder.proof("POST", f"{issuer}oauth/token")}))

    assert tv.error() == (403, "invalid_grant")
    assert poll(thief).json()["error"] == "invalid_grant"
    assert poll(prover).status == 200


def test_a_certificate_binds_the_tokens_of_a_device(tenant: Tenant) -> None:
    tv = television(tenant, token_endpoint_auth_method="client_secret_post")
    create_api_resource(tenant_id=tenant.pk, identifier=FILMS)
    key = edge_key(tenant)
    forget_all()
    allowed(tv, audience=FILMS)
    answer = tv.poll(headers=forwarded(key, certificate()))
    assert answer.status == 200, answer.body
    assert "x5t#S256" in decoded(answer.json()["access_token"])[1]["cnf"]


def test_a_client_whose_tokens_must_be_bound_keeps_its_code_until_it_sends_a_proof(tv: Television) -> None:
    allowed(tv)
    update_client(tenant_id=tv.tenant.pk, client_id=tv.client.client_id, changes={"settings": {"require_proof_of_possession": True}})
    forget_all()
    assert tv.error() == (400, "invalid_request")
    assert tv.row.used_at is None


def test_a_second_answer_to_a_request_is_refused(tv: Television) -> None:
    allowed(tv)
    session, _ = session_of(person(tv.connection, email="eve@example.test"))
    late = Approval(session, "", ("openid",), None, "")
    with pytest.raises(RequestRefused, match="CODE_OVER"):
        approve_device(tv.tenant.pk, tv.row.pk, late)
    with pytest.raises(RequestRefused, match="CODE_OVER"):
        deny_device(tv.tenant.pk, tv.row.pk)
    assert (tv.row.status, tv.row.user_id) == (DeviceGrant.AUTHORIZED, tv.user.pk)


def test_a_client_with_standard_answers_gets_status_400(tenant: Tenant) -> None:
    tv = television(tenant, settings={"oauth_standard_errors": True})
    tv.begin()
    assert [tv.error() for _ in range(2)] == [(400, "authorization_pending"), (400, "slow_down")]
    tv.expire()
    assert [tv.error() for _ in range(2)] == [(400, "expired_token"), (400, "invalid_grant")]
    refused = tv.start(audience="https://nowhere.example.test")
    assert (refused.status, refused.json()["error"]) == (400, "invalid_target")
