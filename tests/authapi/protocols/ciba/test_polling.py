"""The grant at the token endpoint: pending and ended requests, the only exchange of each request, and the tokens (CIBA 10.1 and 11)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.db.models import QuerySet

from authapi.expiry import drop_ended
from authapi.failures import RequestRefused
from authapi.grants.ciba import GRANT
from authapi.login.sessions import end_session
from authapi.models import CibaRequest, Initiator
from authapi.services.api_resources import create_api_resource
from authapi.services.clients import delete_client, update_client
from authapi.tokens.ciba_requests import Approval, approve_request, deny_request
from identity.models import Tenant, User
from identity.services.tenants import create_tenant
from identity.services.users import update_user
from tests.authapi.asgi_client import ask_token, read_profile
from tests.authapi.certificates import certificate, edge_key, forwarded
from tests.authapi.forging import decoded
from tests.authapi.memory import forget_all
from tests.authapi.protocols.ciba.conftest import CallCenter, call_center
from tests.authapi.proving import Prover, settle_memory
from tests.factories.authapi import host_of
from tests.factories.sign_in import person, session_of, web_client

BANK = "https://bank.example.test"


def test_an_application_waits_until_the_user_approves_and_gets_tokens_once(center: CallCenter) -> None:
    link = center.begin(acr_values="urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport")
    assert center.error() == (400, "authorization_pending")
    center.wait(5)
    assert center.error() == (400, "authorization_pending")
    assert center.answer(link).location.endswith("/approve/done")
    answer = center.poll()
    assert answer.status == 200, answer.body
    assert answer.json().keys() == {"access_token", "id_token", "expires_in", "token_type", "scope"}
    assert read_profile(center.tenant, answer.json()["access_token"]).json()["name"] == "Ada Lovelace"
    claims = decoded(answer.json()["id_token"])[1]
    assert (claims["sub"], claims["aud"], claims["amr"]) == (center.user.user_id, center.client.client_id, ["pwd"])
    assert claims["acr"].endswith("PasswordProtectedTransport")
    assert claims["auth_time"] == int(center.row.auth_time.timestamp())  # type: ignore[union-attr]  # approved above
    assert "sid" not in claims
    assert center.lines()[-1] == "ciba_exchange_succeeded"


def test_a_second_exchange_is_refused_and_ends_the_tokens_of_the_first_exchange(center: CallCenter) -> None:
    create_api_resource(tenant_id=center.tenant.pk, identifier=BANK, settings={"allow_offline_access": True})
    asked = {"scope": "openid offline_access online_access", "audience": BANK}
    link = center.begin(**asked)
    center.answer(link)
    tokens = center.poll().json()
    assert tokens["scope"] == "openid offline_access"
    refresh = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"], **center.proof}
    assert ask_token(center.tenant, refresh).status == 200
    assert center.error() == (400, "invalid_grant")
    assert ask_token(center.tenant, refresh).json()["error"] == "invalid_grant"
    assert read_profile(center.tenant, tokens["access_token"]).status == 401
    assert center.lines()[-1] == "ciba_exchange_failed"


def test_only_one_of_two_simultaneous_polls_returns_tokens(center: CallCenter) -> None:
    center.approve()

    def exchange(_: int) -> int:
        try:
            return center.poll().status
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(exchange, range(2))) == [200, 400]


def test_an_application_that_polls_too_fast_gets_slow_down(center: CallCenter) -> None:
    center.begin()
    assert center.error() == (400, "authorization_pending")
    center.wait(1)
    answer = center.poll()
    assert (answer.status, answer.json()["error"], answer.headers["retry-after"]) == (400, "slow_down", "10")
    assert answer.json()["error_description"] == "You are polling faster than allowed. Try again in 10 seconds."
    for _ in range(14):
        center.poll()
    assert center.row.interval == 60
    center.wait(60)
    assert center.error() == (400, "authorization_pending")


def test_the_end_of_a_request_is_reported_and_its_row_is_deleted_later(center: CallCenter) -> None:
    center.approve().expire()
    assert [center.error() for _ in range(2)] == [(400, "expired_token")] * 2
    drop_ended()
    assert center.error() == (400, "expired_token")
    center.change(expires=center.row.expires - timedelta(hours=25))
    drop_ended()
    assert center.error() == (400, "invalid_grant")


def test_the_auth_req_id_is_refused_for_another_client_or_tenant(center: CallCenter) -> None:
    center.approve()
    fields: dict[str, Any] = {"grant_types": [GRANT], "token_endpoint_auth_method": "client_secret_post"}
    thief, secret = web_client(center.tenant, **fields)
    public, _ = web_client(center.tenant, grant_types=[GRANT], token_endpoint_auth_method="none")
    assert center.error(client_id=thief.client_id, client_secret=secret) == (400, "invalid_grant")
    assert center.error(client_id=public.client_id, client_secret=None) == (400, "invalid_grant")
    assert center.error(client_secret="wrong")[0] == 401
    assert center.error(auth_req_id=None) == (400, "invalid_request")
    name = f"{center.tenant.pk}-b"
    elsewhere = call_center(create_tenant(tenant_id=name, name=name, host=f"{name}.example.test"))
    elsewhere.begun = center.begun
    assert elsewhere.error() == (400, "invalid_grant")
    assert center.poll().status == 200


def test_the_secret_of_the_link_is_not_the_id_of_the_request(center: CallCenter) -> None:
    link = center.begin()
    assert center.error(auth_req_id=link.partition("=")[2]) == (400, "invalid_grant")
    assert center.browser.get(f"/approve?ticket={center.begun['auth_req_id']}").status == 404


def test_a_client_without_the_grant_type_or_without_a_secret_gets_no_tokens(center: CallCenter) -> None:
    center.approve()
    changed = {"tenant_id": center.tenant.pk, "client_id": center.client.client_id}
    update_client(**changed, changes={"grant_types": ["refresh_token"]})
    forget_all()
    assert center.error() == (403, "unauthorized_client")
    update_client(**changed, changes={"grant_types": [GRANT], "token_endpoint_auth_method": "none"})
    forget_all()
    assert center.error(client_secret=None) == (400, "invalid_grant")


def test_the_requests_of_a_deleted_client_are_deleted(center: CallCenter) -> None:
    link = center.begin()
    delete_client(tenant_id=center.tenant.pk, client_id=center.client.client_id)
    forget_all()
    assert center.browser.get(link).status == 404
    assert center.error()[0] == 401


@pytest.mark.parametrize("change", [{"blocked": True}, {"password": "Another-Horse-8-Battery"}], ids=["a block", "a new password"])
def test_an_approved_request_ends_if_the_user_is_blocked_or_changes_the_password(center: CallCenter, change: dict[str, Any]) -> None:
    center.approve()
    update_user(tenant_id=center.tenant.pk, user_id=center.user.user_id, changes=change)
    assert center.error() == (400, "access_denied")


def test_a_user_who_is_blocked_during_an_exchange_gets_no_tokens(center: CallCenter) -> None:
    center.approve()
    # Set only the column: `update_user` would also withdraw the user's approval, which is another case.
    QuerySet.update(User.objects.of(center.tenant.pk).filter(pk=center.user.pk), blocked=True)
    assert center.error() == (403, "unauthorized")
    assert center.row.used_at is None


def test_a_request_can_be_answered_once_by_its_user_with_a_valid_session(center: CallCenter) -> None:
    center.begin()
    tenant_id, key = center.tenant.pk, center.row.pk
    eve = person(center.connection, email="eve@example.test")
    foreign, ended, own = (session_of(user)[0] for user in (eve, center.user, center.user))
    end_session(ended, reason=Initiator.PASSWORD_CHANGED)
    for session, case in ((foreign, "OTHER_USER"), (ended, "REQUEST_OVER")):
        with pytest.raises(RequestRefused, match=case):
            approve_request(tenant_id, key, Approval(session, "", ("openid",), None, ""))
    with pytest.raises(RequestRefused, match="OTHER_USER"):
        deny_request(tenant_id, key, eve)
    assert center.error() == (400, "authorization_pending")
    deny_request(tenant_id, key, center.user)
    with pytest.raises(RequestRefused, match="REQUEST_OVER"):
        approve_request(tenant_id, key, Approval(own, "", ("openid",), None, ""))
    assert center.error() == (400, "access_denied")
    assert center.row.status == CibaRequest.Status.DENIED


def test_the_tokens_contain_the_details_that_the_user_approved(center: CallCenter) -> None:
    types = [{"type": "payment"}]
    create_api_resource(tenant_id=center.tenant.pk, identifier=BANK, settings={"authorization_details": types})
    wanted = '[{"type":"payment","instructedAmount":{"amount":"12.50","currency":"EUR"}}]'
    page = center.open(center.begin(audience=BANK, authorization_details=wanted))
    assert "12.50" in page.text
    center.browser.submit(page, answer="allow")
    assert center.poll(authorization_details='[{"type":"payment","instructedAmount":{"amount":"9999","currency":"EUR"}}]').status == 400
    tokens = center.poll().json()
    assert tokens["authorization_details"][0]["instructedAmount"]["amount"] == "12.50"
    assert decoded(tokens["access_token"])[1]["authorization_details"] == tokens["authorization_details"]


def test_a_proof_or_a_certificate_binds_the_tokens(tenant: Tenant) -> None:
    settle_memory()
    center = call_center(tenant)
    create_api_resource(tenant_id=tenant.pk, identifier=BANK)
    prover, address = Prover(), f"{host_of(tenant).issuer}oauth/token"
    center.approve()
    bound = prover.proven(lambda: center.poll(headers={"DPoP": prover.proof("POST", address)}))
    assert bound.json()["token_type"] == "DPoP"
    key = edge_key(tenant)
    forget_all()
    center.approve(audience=BANK)
    answer = center.poll(headers=forwarded(key, certificate()))
    assert "x5t#S256" in decoded(answer.json()["access_token"])[1]["cnf"], answer.body
