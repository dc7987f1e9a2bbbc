"""`POST /oauth/revoke`: a client revokes its own tokens, and gets no information about other tokens (RFC 7009)."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from oauthlib.oauth2 import UnsupportedTokenTypeError

from authapi.models import RefreshToken, RevokedToken
from authapi.protocols.oauth.engine import Server, Validator
from authapi.services.api_resources import create_api_resource
from authapi.token_request import TokenRequest
from authapi.tokens.verifying import InvalidToken, verify_access_token
from authapi.views import HOT_ENDPOINTS
from identity.models import Tenant
from identity.services.tenants import create_tenant
from tests.authapi.asgi_client import ask_revocation, ask_token, read_profile, send
from tests.authapi.forging import decoded
from tests.factories.authapi import Registered, access_token, global_client, host_of
from tests.factories.logins import code_form, code_of, login_of, public_client, refresh_form, some_user, web_client

API = "urn:orders"


def revoke_form(registered: Registered, token: str | None, **changes: Any) -> dict[str, Any]:
    fields = {"client_id": registered.client_id, "client_secret": registered.secret or None, "token": token}
    return {name: value for name, value in (fields | changes).items() if value is not None}


def tokens_of(tenant: Tenant, registered: Registered) -> dict[str, Any]:
    code = code_of(login_of(tenant, registered, some_user(tenant), scope="openid offline_access"))
    answer: dict[str, Any] = ask_token(tenant, code_form(registered, code)).json()
    return answer


# --- Refusals ---------------------------------------------------------------------------------------------------------


def test_the_refusal_names_a_missing_token(tenant: Tenant) -> None:
    answer = ask_revocation(tenant, revoke_form(web_client(tenant), None))
    assert (answer.status, answer.json()) == (400, {"error": "invalid_request", "error_description": "Missing required parameter: token"})
    assert "www-authenticate" not in answer.headers


@pytest.mark.parametrize("changes", [{"client_secret": "wrong"}, {"client_secret": None}, {"client_id": "nobody"}])
def test_a_client_without_valid_authentication_gets_invalid_client(tenant: Tenant, changes: dict[str, Any]) -> None:
    registered = web_client(tenant)
    members = tokens_of(tenant, registered)
    answer = ask_revocation(tenant, revoke_form(registered, members["refresh_token"], **changes))
    assert (answer.status, answer.json()["error"]) == (401, "invalid_client")
    assert "www-authenticate" not in answer.headers
    assert ask_token(tenant, refresh_form(registered, members["refresh_token"])).status == 200


def test_a_request_that_names_no_client_gets_an_error_about_missing_authentication(tenant: Tenant) -> None:
    answer = ask_revocation(tenant, {"token": "x"})
    assert (answer.status, answer.json()["error"]) == (401, "invalid_client")


def test_the_client_is_checked_before_the_token(tenant: Tenant) -> None:
    answer = ask_revocation(tenant, {})
    assert (answer.status, answer.json()["error"]) == (401, "invalid_client")


def test_a_token_that_is_not_a_text_is_refused(tenant: Tenant) -> None:
    answer = ask_revocation(tenant, revoke_form(web_client(tenant), None) | {"token": ["a"]}, as_json=True)
    assert (answer.status, answer.json()["error_description"]) == (400, "The parameter token must be a string.")


def test_a_token_type_that_the_oauth_engine_does_not_support_raises_an_error(tenant: Tenant) -> None:
    registered = web_client(tenant)
    form = revoke_form(registered, "made-up", token_type_hint="access_token")
    strict = Server(Validator())
    strict.supported_token_types = ("refresh_token",)
    with pytest.raises(UnsupportedTokenTypeError):
        strict.revoke(TokenRequest(host=host_of(tenant), address="192.0.2.1", headers={}, form=form))


def test_a_get_request_is_refused_with_405(tenant: Tenant) -> None:
    answer = send(HOT_ENDPOINTS["/oauth/revoke"], "GET", host=f"{tenant.pk}.example.test")
    assert (answer.status, answer.headers["allow"]) == (405, "POST")


# --- Tokens of other clients ------------------------------------------------------------------------------------------


def test_an_unknown_token_gets_the_answer_of_a_revoked_token(tenant: Tenant) -> None:
    answer = ask_revocation(tenant, revoke_form(web_client(tenant), "made-up"))
    assert (answer.status, answer.body, answer.headers["content-type"]) == (200, b"", "application/json")


def test_a_token_of_another_client_stays_valid(tenant: Tenant) -> None:
    own, other = web_client(tenant), web_client(tenant)
    members = tokens_of(tenant, own)
    assert ask_revocation(tenant, revoke_form(other, members["refresh_token"])).status == 200
    assert ask_token(tenant, refresh_form(own, members["refresh_token"])).status == 200


def test_a_token_of_another_tenant_stays_valid(tenant: Tenant) -> None:
    other = create_tenant(tenant_id=f"{tenant.pk}-b", name="b", host=f"{tenant.pk}-b.example.test")
    own = web_client(tenant)
    members = tokens_of(tenant, own)
    assert ask_revocation(other, revoke_form(web_client(other), members["refresh_token"])).status == 200
    assert ask_token(tenant, refresh_form(own, members["refresh_token"])).status == 200


@pytest.mark.parametrize("hint", ["banana", [1]])
def test_an_unknown_token_type_hint_is_ignored(tenant: Tenant, hint: Any) -> None:
    answer = ask_revocation(tenant, revoke_form(web_client(tenant), "made-up") | {"token_type_hint": hint}, as_json=True)
    assert (answer.status, answer.body) == (200, b"")


# --- Own tokens -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("make", [web_client, public_client])
def test_revoking_a_refresh_token_ends_its_family_and_the_access_tokens_of_the_family(tenant: Tenant, make: Any, as_json: bool) -> None:
    registered = make(tenant, settings={"refresh_token": {"rotation_type": "rotating", "expiration_type": "expiring"}})
    first = tokens_of(tenant, registered)
    second = ask_token(tenant, refresh_form(registered, first["refresh_token"])).json()
    bystander = tokens_of(tenant, registered)
    form = revoke_form(registered, second["refresh_token"], token_type_hint="refresh_token")
    answer = ask_revocation(tenant, form, as_json=as_json)
    assert (answer.status, answer.body) == (200, b"")
    assert ask_token(tenant, refresh_form(registered, second["refresh_token"])).status == 403
    assert [read_profile(tenant, members["access_token"]).status for members in (first, second)] == [401, 401]
    assert read_profile(tenant, bystander["access_token"]).status == 200
    assert RefreshToken.objects.of(tenant.pk).filter(revoked=None).count() == 1


def test_a_second_revocation_gets_the_same_answer(tenant: Tenant) -> None:
    registered = web_client(tenant)
    form = revoke_form(registered, tokens_of(tenant, registered)["refresh_token"])
    assert [ask_revocation(tenant, form).status for _ in range(2)] == [200, 200]


# --- Rate limits ------------------------------------------------------------------------------------------------------


def test_revocations_use_the_rate_of_the_tenant_unless_a_public_client_sends_a_foreign_token(tenant: Tenant, settings: Any) -> None:
    confidential, public, other = web_client(tenant), public_client(tenant), public_client(tenant)
    own = [tokens_of(tenant, public)[name] for name in ("refresh_token", "access_token")]
    foreign = tokens_of(tenant, other)["refresh_token"]

    def paid_by_tenant(registered: Registered, token: str) -> bool:
        answer = ask_revocation(tenant, revoke_form(registered, token))
        assert answer.status == 200
        return bool(int(answer.headers["x-ratelimit-limit"]) == settings.RATE_LIMIT_BURST)

    assert settings.RATE_LIMIT_BURST != settings.FAILED_AUTHENTICATIONS_PER_MINUTE
    assert [paid_by_tenant(confidential, token) for token in ("made-up", "a.b.c", foreign)] == [True] * 3
    assert [paid_by_tenant(public, token) for token in (own[1], own[0])] == [True] * 2
    assert [paid_by_tenant(public, token) for token in ("made-up", "a.b.c", foreign)] == [False] * 3


# --- Access tokens ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("audience", [None, API])
def test_a_revoked_access_token_ends_immediately_without_affecting_other_tokens(tenant: Tenant, audience: str | None) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API, settings={"allow_offline_access": True})
    registered = web_client(tenant)
    login = login_of(tenant, registered, some_user(tenant), scope="openid offline_access", audience=audience)
    members = ask_token(tenant, code_form(registered, code_of(login))).json()
    fresh = ask_token(tenant, refresh_form(registered, members["refresh_token"])).json()
    assert read_profile(tenant, members["access_token"]).status == 200
    for _ in range(2):
        assert ask_revocation(tenant, revoke_form(registered, members["access_token"], token_type_hint="refresh_token")).status == 200
    assert read_profile(tenant, members["access_token"]).status == 401
    assert read_profile(tenant, fresh["access_token"]).status == 200
    assert ask_token(tenant, refresh_form(registered, members["refresh_token"])).status == 200


@pytest.mark.parametrize("audience", [None, API])
def test_an_access_token_of_another_client_or_tenant_stays_valid(tenant: Tenant, audience: str | None) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API)
    elsewhere = create_tenant(tenant_id=f"{tenant.pk}-b", name="b", host=f"{tenant.pk}-b.example.test")
    own = web_client(tenant)
    token = ask_token(tenant, code_form(own, code_of(login_of(tenant, own, some_user(tenant), audience=audience)))).json()["access_token"]
    assert ask_revocation(tenant, revoke_form(web_client(tenant), token)).status == 200
    assert ask_revocation(tenant, revoke_form(public_client(tenant), token)).status == 200
    assert ask_revocation(elsewhere, revoke_form(web_client(elsewhere), token)).status == 200
    assert read_profile(tenant, token).status == 200
    assert not RevokedToken.all_tenants.filter(tenant_id__in=[tenant.pk, elsewhere.pk]).exists()


@pytest.mark.parametrize("token", ["a.b.c", "..", "e30.e30.e30", "é.é.é"])
def test_a_text_that_resembles_an_access_token_gets_the_answer_of_an_unknown_token(tenant: Tenant, token: str) -> None:
    assert ask_revocation(tenant, revoke_form(web_client(tenant), token)).status == 200
    assert not RevokedToken.objects.of(tenant.pk).exists()


def test_a_forged_token_revokes_nothing(tenant: Tenant) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API)
    own, other = web_client(tenant), web_client(tenant)
    token = ask_token(tenant, code_form(own, code_of(login_of(tenant, own, some_user(tenant), audience=API)))).json()["access_token"]
    # The header and the signature are those of a valid token. The changed claims name the caller as the client of the token.
    head, _, signature = token.split(".")
    claims = decoded(token)[1] | {"azp": other.client_id}
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    assert ask_revocation(tenant, revoke_form(other, f"{head}.{payload}.{signature}")).status == 200
    assert read_profile(tenant, token).status == 200


def test_the_management_interface_refuses_the_revoked_token_of_a_machine(tenant: Tenant) -> None:
    registered = global_client(tenant)
    token = access_token(tenant, registered)
    assert verify_access_token(token, host=host_of(tenant)).client_id == registered.client_id
    assert ask_revocation(tenant, revoke_form(registered, token)).status == 200
    with pytest.raises(InvalidToken):
        verify_access_token(token, host=host_of(tenant))
