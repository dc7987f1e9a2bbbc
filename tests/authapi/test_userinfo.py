"""`/userinfo` returns the current profile, only for a token that has the required scope."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from authapi.models import AccessToken
from authapi.services.api_resources import create_api_resource
from authapi.services.clients import delete_client, revoke_client
from authapi.tokens.claims import TokenOrder, new_jti
from authapi.tokens.minting import mint
from foundation.timestamps import wire_time
from identity.models import Tenant
from identity.services.tenants import create_tenant
from identity.services.users import delete_user, update_user
from tests.authapi.asgi_client import FORM, Received, ask_token, read_profile
from tests.authapi.forging import decoded, signed
from tests.authapi.memory import forget_all
from tests.factories.authapi import Registered, access_token, global_client, host_of
from tests.factories.logins import code_form, code_of, login_of, some_user, web_client

API = "urn:orders"
INVALID = {"error": "invalid_token", "error_description": "Unauthorized"}


def tokens_of(tenant: Tenant, registered: Registered, user: Any = None, **login: Any) -> dict[str, Any]:
    issue = login_of(tenant, registered, user or some_user(tenant), **login)
    answer: dict[str, Any] = ask_token(tenant, code_form(registered, code_of(issue))).json()
    return answer


def refused(answer: Received) -> bool:
    challenge = answer.headers.get("www-authenticate", "")
    is_challenge = challenge.startswith('Bearer realm="userinfo", error="invalid_token"')
    return answer.status == 401 and answer.json() == INVALID and is_challenge and answer.headers["cache-control"] == "no-store"


# --- Refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Basic dXNlcjpwYXNz"}, {"Authorization": "Bearer"}, {"Authorization": "Bearer  "}]
)
def test_the_challenge_to_a_request_without_a_token_contains_no_error(tenant: Tenant, headers: dict[str, str]) -> None:
    answer = read_profile(tenant, None, headers=headers)
    assert (answer.status, answer.json()) == (401, INVALID)
    # RFC 6750, 3.1.
    assert answer.headers["www-authenticate"] == 'Bearer realm="userinfo"'


@pytest.mark.parametrize("token", ["x", "a.b.c", "é", "a" * 20_000, "..", "None"])
def test_a_malformed_token_is_refused(tenant: Tenant, token: str) -> None:
    assert refused(read_profile(tenant, token.encode().decode("latin-1")))


def test_the_token_of_a_machine_is_refused(tenant: Tenant) -> None:
    assert refused(read_profile(tenant, access_token(tenant, global_client(tenant))))


def test_a_token_that_is_only_for_an_api_is_refused(tenant: Tenant) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API)
    registered = web_client(tenant)
    assert refused(read_profile(tenant, tokens_of(tenant, registered, scope="profile", audience=API)["access_token"]))


def test_an_opaque_token_without_openid_gets_insufficient_scope(tenant: Tenant) -> None:
    answer = read_profile(tenant, tokens_of(tenant, web_client(tenant), scope="profile")["access_token"])
    assert (answer.status, answer.json()["error"]) == (403, "insufficient_scope")
    assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]


def test_a_token_that_is_sent_twice_is_an_invalid_request(tenant: Tenant) -> None:
    token = tokens_of(tenant, web_client(tenant))["access_token"]
    answer = read_profile(tenant, token, method="POST", headers={"Content-Type": FORM}, body=f"access_token={token}".encode())
    assert (answer.status, answer.json()["error"]) == (400, "invalid_request")


def test_an_id_token_is_not_accepted_as_an_access_token(tenant: Tenant) -> None:
    assert refused(read_profile(tenant, tokens_of(tenant, web_client(tenant))["id_token"]))


@pytest.mark.parametrize("with_audience", [False, True])
def test_a_token_of_another_tenant_is_unknown(tenant: Tenant, with_audience: bool) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API)
    other = create_tenant(tenant_id=f"{tenant.pk}-b", name="b", host=f"{tenant.pk}-b.example.test")
    token = tokens_of(tenant, web_client(tenant), audience=API if with_audience else None)["access_token"]
    assert refused(read_profile(other, token))
    assert read_profile(tenant, token).status == 200


def test_a_token_for_the_userinfo_of_another_tenant_is_refused(tenant: Tenant) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API)
    token = tokens_of(tenant, web_client(tenant), audience=API)["access_token"]
    for audience in (
        "http://elsewhere.example.test/userinfo",
        [API],
        [f"{host_of(tenant).issuer}userinfo/"],
        [f"{host_of(tenant).issuer}"],
    ):
        assert refused(read_profile(tenant, signed(tenant, token, claims={"aud": audience})))


@pytest.mark.parametrize(
    "header", [{"alg": "none"}, {"alg": "HS256"}, {"alg": "PS256"}, {"typ": "JOSE"}, {"jku": "https://attacker.example.test"}]
)
def test_a_token_with_another_algorithm_or_key_is_refused(tenant: Tenant, header: dict[str, Any]) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API)
    token = tokens_of(tenant, web_client(tenant), audience=API)["access_token"]
    assert refused(read_profile(tenant, signed(tenant, token, header=header)))


def test_expired_tokens_are_refused(tenant: Tenant) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API)
    registered = web_client(tenant)
    jwt, opaque = (tokens_of(tenant, registered, audience=audience)["access_token"] for audience in (API, None))
    assert refused(read_profile(tenant, signed(tenant, jwt, claims={"exp": int(time.time()) - 1})))
    AccessToken.objects.of(tenant.pk).update(expires=timezone.now() - timedelta(seconds=1))
    assert refused(read_profile(tenant, opaque))


@pytest.mark.parametrize("end", [revoke_client, delete_client])
@pytest.mark.parametrize("audience", [None, API])
def test_tokens_of_a_deleted_or_revoked_client_are_refused(tenant: Tenant, audience: str | None, end: Any) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API)
    registered = web_client(tenant)
    token = tokens_of(tenant, registered, audience=audience)["access_token"]
    end(tenant_id=tenant.pk, client_id=registered.client_id)
    forget_all()
    assert refused(read_profile(tenant, token))


@pytest.mark.parametrize("audience", [None, API])
def test_tokens_of_a_blocked_or_deleted_user_are_refused(tenant: Tenant, audience: str | None) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API)
    user = some_user(tenant)
    token = tokens_of(tenant, web_client(tenant), user, audience=audience)["access_token"]
    update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"blocked": True})
    assert refused(read_profile(tenant, token))
    update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"blocked": False})
    assert read_profile(tenant, token).status == 200
    delete_user(tenant_id=tenant.pk, user_id=user.user_id)
    assert refused(read_profile(tenant, token))


def test_a_token_bound_to_a_certificate_is_refused_without_the_certificate(tenant: Tenant) -> None:
    user, registered = some_user(tenant), web_client(tenant)
    order = TokenOrder(
        issuer=host_of(tenant).issuer,
        subject=user.user_id,
        audience=f"{host_of(tenant).issuer}userinfo",
        client_id=registered.client_id,
        client_version=registered.client.auth_version,
        scopes=("openid",),
        grant="",
        jti=new_jti(),
        seconds=60,
        dialect="access_token",
        confirmation={"x5t#S256": "A" * 43},
    )
    token = mint(order, tenant_id=tenant.pk)
    # Headers with a certificate are ignored if the secret of a TLS proxy is missing.
    forged = {"client-certificate": "x", "client-certificate-ca-verified": "SUCCESS"}
    for headers in ({}, forged):
        answer = read_profile(tenant, token, headers=headers)
        assert (answer.status, answer.json()["error"]) == (401, "invalid_token")
        assert answer.headers["www-authenticate"].startswith('Bearer error="invalid_token"')
    assert read_profile(tenant, signed(tenant, token, claims={"cnf": None})).status == 200


def test_other_methods_get_405(tenant: Tenant) -> None:
    answer = read_profile(tenant, "x", method="DELETE")
    assert (answer.status, answer.json()["error"], answer.headers["allow"]) == (405, "method_not_allowed", "GET, POST")


# --- Profiles ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("audience", [None, API])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_profile_contains_the_claims_of_the_granted_scopes(tenant: Tenant, audience: str | None, method: str) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API)
    user = some_user(
        tenant, email="a@example.test", given_name="Ada", family_name="Lovelace", phone_number="+44123", picture="https://p.test/a.png"
    )
    registered = web_client(tenant)
    told = {
        scope: read_profile(
            tenant, tokens_of(tenant, registered, user, scope=scope, audience=audience)["access_token"], method=method
        ).json()
        for scope in ("openid", "openid email", "openid phone", "openid profile", "openid given_name identities")
    }
    assert told["openid"] == {"sub": user.user_id}
    assert told["openid email"] == {"sub": user.user_id, "email": "a@example.test", "email_verified": False}
    assert told["openid phone"] == {"sub": user.user_id, "phone_number": "+44123", "phone_number_verified": False}
    profile = told["openid profile"]
    # OpenID Connect Core 1.0, 5.1: the time is a number.
    assert profile.pop("updated_at") == int(user.updated_at.timestamp())
    assert profile == {
        "sub": user.user_id,
        "name": "a@example.test",
        "nickname": "a",
        "given_name": "Ada",
        "family_name": "Lovelace",
        "picture": "https://p.test/a.png",
    }
    few = told["openid given_name identities"]
    assert few.keys() == {"sub", "given_name", "identities"}
    assert few["identities"][0]["connection"] == "people"


def test_the_profile_is_the_current_profile_and_not_the_profile_at_the_login(tenant: Tenant) -> None:
    user = some_user(tenant)
    token = tokens_of(tenant, web_client(tenant), user, scope="openid profile")["access_token"]
    update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"given_name": "Changed"})
    assert read_profile(tenant, token).json()["given_name"] == "Changed"


def test_the_token_can_be_sent_in_a_form(tenant: Tenant) -> None:
    token = tokens_of(tenant, web_client(tenant))["access_token"]
    answer = read_profile(tenant, None, method="POST", headers={"Content-Type": FORM}, body=f"access_token={token}".encode())
    assert answer.status == 200


def test_answers_are_not_cached_and_scripts_can_read_them(tenant: Tenant) -> None:
    answer = read_profile(tenant, tokens_of(tenant, web_client(tenant))["access_token"])
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["x-ratelimit-limit"] == "200"


def test_the_profile_has_the_same_subject_as_the_id_token(tenant: Tenant) -> None:
    # OpenID Connect Core 1.0, 5.3.2: the client compares the two subjects.
    members = tokens_of(tenant, web_client(tenant))
    assert read_profile(tenant, members["access_token"]).json()["sub"] == decoded(members["id_token"])[1]["sub"]


# --- Times ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("audience", [None, API])
def test_a_client_can_request_the_update_time_as_text(tenant: Tenant, audience: str | None) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API)
    user = some_user(tenant)
    for settings, is_text in (
        ({"updated_at_as_text": True}, True),
        ({"updated_at_as_text": False}, False),
    ):
        members = tokens_of(tenant, web_client(tenant, settings=settings), user, scope="openid profile", audience=audience)
        expected = wire_time(user.updated_at) if is_text else int(user.updated_at.timestamp())
        assert read_profile(tenant, members["access_token"]).json()["updated_at"] == expected
        assert decoded(members["id_token"])[1]["updated_at"] == expected


# --- Tokens in the URL ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("audience", [None, API])
def test_a_token_in_the_url_is_accepted(tenant: Tenant, audience: str | None) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API)
    user = some_user(tenant)
    token = tokens_of(tenant, web_client(tenant), user, audience=audience)["access_token"]
    answer = read_profile(tenant, None, query=f"access_token={token}&schema=openid")
    assert (answer.status, answer.json()["sub"]) == (200, user.user_id)
    assert (answer.headers["cache-control"], answer.headers["referrer-policy"]) == ("no-store", "no-referrer")


def test_a_token_in_the_url_is_checked_like_any_other_token(tenant: Tenant, caplog: pytest.LogCaptureFixture) -> None:
    token = tokens_of(tenant, web_client(tenant))["access_token"]
    form = {"method": "POST", "headers": {"Content-Type": FORM}, "body": f"access_token={token}".encode()}
    for answer in (
        read_profile(tenant, token, query=f"access_token={token}"),
        read_profile(tenant, None, query=f"access_token={token}&access_token={token}"),
        read_profile(tenant, None, query=f"access_token={token}", **form),  # type: ignore[arg-type]  # names of arguments
        read_profile(tenant, None, query=f"access_token={token}%ff"),
    ):
        assert (answer.status, answer.json()["error"]) == (400, "invalid_request")
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert token not in answer.body.decode() + str(answer.headers)
    assert refused(read_profile(tenant, None, query=f"access_token={token}x"))
    assert read_profile(tenant, None, query="access_token=").headers["www-authenticate"] == 'Bearer realm="userinfo"'
    assert token not in caplog.text
