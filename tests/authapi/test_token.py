"""`POST /oauth/token`, called as an ASGI application on committed data."""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime
from typing import Any

import pytest
import time_machine
from joserfc import jwt
from joserfc.jwk import KeySet

from authapi.edge import throttling
from authapi.models import AccessToken, Client
from authapi.services.api_resources import create_api_resource
from authapi.services.client_grants import create_client_grant
from authapi.services.clients import create_client, revoke_client, rotate_client_secret
from authapi.tokens.claims import TokenOrder, token_claims, token_kind
from authapi.views import HOT_ENDPOINTS
from identity.hosts import forget_hosts
from identity.models import Tenant
from identity.services.tenants import create_tenant
from tests.authapi.asgi_client import FORM, Received, ask_token, get, send
from tests.authapi.token_forms import basic, form_of
from tests.factories.authapi import Registered, global_client, granted_client

MINUTE_BEGINS = datetime(2031, 5, 1, 12, 0, tzinfo=UTC)
CANARY = "canary-secret-that-must-never-be-shown"


def claims_of(tenant: Tenant, answer: Received) -> dict[str, Any]:
    """Verify a token with the published keys and another library."""
    published = KeySet.import_key_set(get(tenant, "/.well-known/jwks.json").json())
    return jwt.decode(answer.json()["access_token"], published, algorithms=["RS256"]).claims


# --- Refusals ---------------------------------------------------------------------------------------------------------

Refusal = tuple[dict[str, Any], int, str, str]
REFUSALS: dict[str, Refusal] = {
    "no grant type": ({"grant_type": None}, 400, "invalid_request", "Missing required parameter: grant_type"),
    "unset grant type": ({"grant_type": "undefined"}, 400, "invalid_request", "Missing required parameter: grant_type"),
    "unknown grant": ({"grant_type": "telepathy"}, 400, "unsupported_grant_type", "Unsupported grant type: telepathy"),
    "grant not served": ({"grant_type": "implicit"}, 400, "unsupported_grant_type", "Unsupported grant type: implicit"),
    "no client": ({"client_id": None, "client_secret": None}, 401, "invalid_client", "Client authentication is missing."),
    "secret without client": ({"client_id": ""}, 401, "invalid_client", "Client authentication is missing."),
    "unknown client": ({"client_id": "nobody"}, 401, "access_denied", "Unauthorized"),
    "client id no client can have": ({"client_id": "a' OR 1=1 --"}, 401, "access_denied", "Unauthorized"),
    "wrong secret": ({"client_secret": "wrong"}, 401, "access_denied", "Unauthorized"),
    "no secret": ({"client_secret": None}, 401, "access_denied", "Unauthorized"),
    "unset secret": ({"client_secret": "None"}, 401, "access_denied", "Unauthorized"),
    "no audience": ({"audience": ""}, 403, "access_denied", "Non-global clients are not allowed access to APIv1"),
    "unknown audience": ({"audience": "urn:unknown"}, 403, "access_denied", "Service not enabled within domain: urn:unknown"),
    "NUL in a value": ({"audience": "urn:\x00"}, 400, "invalid_request", "A value contains a NUL character."),
}


@pytest.mark.parametrize("name", ["grant_type", "client_id", "client_secret", "audience", "scope"])
@pytest.mark.parametrize("value", [["read:users"], {"a": 1}, 7, True])
def test_a_parameter_that_is_not_text_is_refused_and_not_treated_as_missing(tenant: Tenant, name: str, value: object) -> None:
    answer = ask_token(tenant, {**form_of(tenant, global_client(tenant)), name: value}, as_json=True)

    assert (answer.status, answer.json()["error"]) == (400, "invalid_request")
    assert answer.json()["error_description"] == f"The parameter {name} must be a string."


@pytest.mark.parametrize("case", REFUSALS)
@pytest.mark.parametrize("as_json", [False, True])
def test_each_invalid_request_gets_the_expected_error(tenant: Tenant, case: str, as_json: bool) -> None:
    changes, status, error, description = REFUSALS[case]
    answer = ask_token(tenant, form_of(tenant, granted_client(tenant), **changes), as_json=as_json)
    assert (answer.status, answer.json()) == (status, {"error": error, "error_description": description})
    assert "www-authenticate" not in answer.headers
    assert answer.headers["cache-control"] == "no-store"
    # After the client is authenticated, the request counts against the limit of its tenant. A request that is refused earlier counts
    # against the limit of its IP address.
    assert answer.headers["x-ratelimit-limit"] == ("200" if status == 403 else "60")


def test_an_unregistered_host_gets_404_before_any_other_check(tenant: Tenant) -> None:
    answer = send(HOT_ENDPOINTS["/oauth/token"], "POST", host="elsewhere.example.test", chunks=(b"x" * 70_000,))
    assert (answer.status, answer.json()["error"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("status", "expected"), [("suspended", 403), ("draining", 503), ("stopped", 503), ("moved", 503), ("arriving", 503)]
)
def test_a_tenant_that_is_not_active_issues_no_tokens(tenant: Tenant, status: str, expected: int) -> None:
    registered = granted_client(tenant)
    form = form_of(tenant, registered)
    Tenant.objects.filter(pk=tenant.pk).update(status=status)
    forget_hosts()
    assert ask_token(tenant, form).status == expected


def test_a_method_other_than_post_gets_405_with_the_code_that_clients_recognize(tenant: Tenant) -> None:
    answer = get(tenant, "/oauth/token")
    assert (answer.status, answer.json()["error"], answer.headers["allow"]) == (405, "method_not_allowed", "POST")


def test_a_body_over_64_kib_is_refused_in_any_number_of_chunks(tenant: Tenant) -> None:
    chunks = tuple(b"a" * 1000 for _ in range(70))
    answer = send(HOT_ENDPOINTS["/oauth/token"], "POST", host=f"{tenant.pk}.example.test", headers={"Content-Type": FORM}, chunks=chunks)
    assert (answer.status, answer.json()["error"]) == (413, "invalid_request")


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b"{"),
        ("application/json", b"[1]"),
        ("application/json", b"[" * 60_000),
        ("text/plain", b"grant_type=client_credentials"),
        ("", b"grant_type=client_credentials"),
        (FORM, b"grant_type=client_credentials&grant_type=password"),
        (FORM, b"grant_type=%ff"),
    ],
)
def test_an_unreadable_body_is_an_invalid_request(tenant: Tenant, kind: str, body: bytes) -> None:
    answer = send(HOT_ENDPOINTS["/oauth/token"], "POST", host=f"{tenant.pk}.example.test", headers={"Content-Type": kind}, chunks=(body,))
    assert (answer.status, answer.json()["error"]) == (400, "invalid_request")


def test_a_client_of_another_tenant_is_unknown(tenant: Tenant) -> None:
    other = create_tenant(tenant_id=f"{tenant.pk}-b", name="b", host=f"{tenant.pk}-b.example.test")
    answer = ask_token(other, form_of(other, granted_client(tenant)))
    assert (answer.status, answer.json()["error_description"]) == (401, "Unauthorized")


def test_a_client_without_a_grant_for_the_api_gets_an_error_that_names_the_reason(tenant: Tenant) -> None:
    client, secret = create_client(tenant_id=tenant.pk, name="No grant")
    answer = ask_token(tenant, form_of(tenant, Registered(client, secret)))
    assert answer.status == 403
    assert 'You need to create a "client-grant"' in answer.json()["error_description"]


def test_a_client_without_the_grant_type_gets_an_error_that_names_the_reason(tenant: Tenant) -> None:
    registered = granted_client(tenant, grant_types=["authorization_code"])
    answer = ask_token(tenant, form_of(tenant, registered))
    assert (answer.status, answer.json()["error"]) == (403, "unauthorized_client")
    assert answer.json()["error_description"] == "Grant type 'client_credentials' not allowed for the client."


def test_a_public_client_cannot_get_a_token_for_itself(tenant: Tenant) -> None:
    client, secret = create_client(tenant_id=tenant.pk, name="App", token_endpoint_auth_method="none", grant_types=["authorization_code"])
    Client.all_tenants.filter(pk=client.pk).update(grant_types=["client_credentials"])
    answer = ask_token(tenant, form_of(tenant, Registered(client, secret), client_secret=None))
    assert (answer.status, answer.json()["error"]) == (403, "unauthorized_client")


def test_a_revoked_client_gets_401(tenant: Tenant) -> None:
    registered = granted_client(tenant)
    assert ask_token(tenant, form_of(tenant, registered)).status == 200
    revoke_client(tenant_id=tenant.pk, client_id=registered.client_id)
    assert ask_token(tenant, form_of(tenant, registered)).status == 401


def test_a_rotated_secret_replaces_the_old_secret_immediately(tenant: Tenant) -> None:
    registered = granted_client(tenant)
    assert ask_token(tenant, form_of(tenant, registered)).status == 200
    client, fresh = rotate_client_secret(tenant_id=tenant.pk, client_id=registered.client_id)
    assert ask_token(tenant, form_of(tenant, registered)).status == 401
    assert ask_token(tenant, form_of(tenant, Registered(client, fresh))).status == 200


# --- Tokens -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_json", [False, True])
def test_a_client_with_a_grant_gets_a_token_that_verifies_with_the_published_keys(tenant: Tenant, as_json: bool) -> None:
    registered = granted_client(tenant, ["read:events", "read:users"])
    answer = ask_token(tenant, form_of(tenant, registered, state="ignored"), as_json=as_json)
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    body = answer.json()
    assert {**body, "access_token": ""} == {
        "access_token": "",
        "token_type": "Bearer",
        "expires_in": 86400,
        "scope": "read:events read:users",
    }
    claims = claims_of(tenant, answer)
    issuer = f"http://{tenant.pk}.example.test/"
    assert claims | {"iat": 0, "exp": claims["exp"] - claims["iat"], "jti": ""} == {
        "iss": issuer,
        "sub": f"{registered.client_id}@clients",
        "aud": f"{issuer}api/v2/",
        "iat": 0,
        "exp": 86400,
        "jti": "",
        "scope": "read:events read:users",
        "gty": "client-credentials",
        "azp": registered.client_id,
        "client_version": 2,
    }


def test_requested_scopes_that_are_not_granted_are_dropped_silently(tenant: Tenant) -> None:
    registered = granted_client(tenant, ["read:events", "read:users"])
    answer = ask_token(tenant, form_of(tenant, registered, scope="read:users delete:users"))
    assert answer.json()["scope"] == "read:users"


@pytest.mark.parametrize("name", ["extra_credentials", "scopes", "issue", "client", "refresh_token"])
@pytest.mark.parametrize("as_json", [False, True])
def test_a_parameter_with_the_name_of_an_engine_attribute_changes_nothing(tenant: Tenant, name: str, as_json: bool) -> None:
    registered = granted_client(tenant, ["read:events"])
    answer = ask_token(tenant, form_of(tenant, registered, **{name: "admin"}), as_json=as_json)
    assert answer.status == 200
    assert {**answer.json(), "access_token": ""} == {
        "access_token": "",
        "expires_in": 86400,
        "token_type": "Bearer",
        "scope": "read:events",
    }


def test_requesting_only_scopes_that_are_not_granted_returns_a_token_without_scopes(tenant: Tenant) -> None:
    answer = ask_token(tenant, form_of(tenant, granted_client(tenant), scope="delete:users"))
    assert answer.status == 200
    assert "scope" not in answer.json()
    assert "scope" not in claims_of(tenant, answer)


def test_a_global_client_needs_no_audience_and_no_grant(tenant: Tenant) -> None:
    answer = ask_token(tenant, form_of(tenant, global_client(tenant), audience=None))
    claims = claims_of(tenant, answer)
    assert claims["aud"] == f"http://{tenant.pk}.example.test/api/v2/"
    assert {"read:events", "delete:users"} <= set(claims["scope"].split())


def test_a_global_client_still_needs_a_grant_for_other_apis(tenant: Tenant) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier="urn:orders")
    assert ask_token(tenant, form_of(tenant, global_client(tenant), audience="urn:orders")).status == 403


def test_the_dialect_with_permissions_also_lists_the_granted_scopes_as_permissions(tenant: Tenant) -> None:
    for dialect, kind in (("access_token_authz", "JWT"), ("rfc9068_profile_authz", "at+jwt")):
        order = TokenOrder(
            issuer="https://a.example.test/", subject="c@clients", audience="https://api.example.test", client_id="c", client_version=1,
            scopes=("read:orders", "write:orders"), grant="client-credentials", jti="j", seconds=60, dialect=dialect,
        )  # fmt: skip
        claims = token_claims(order, now=0)
        assert (claims["permissions"], claims["scope"]) == (["read:orders", "write:orders"], "read:orders write:orders")
        assert token_kind(order) == kind
        assert ("client_id" in claims) is dialect.startswith("rfc9068")


def test_an_api_with_the_rfc_9068_dialect_has_its_own_claims_and_lifetime(tenant: Tenant) -> None:
    client, secret = create_client(tenant_id=tenant.pk, name="Orders")
    api = create_api_resource(
        tenant_id=tenant.pk,
        identifier="urn:orders",
        scopes=[{"value": "read:orders", "description": "Read orders"}],
        token_lifetime=600,
        token_dialect="rfc9068_profile",
    )
    create_client_grant(tenant_id=tenant.pk, client_id=client.client_id, api_resource=api, scopes=["read:orders"])
    answer = ask_token(tenant, form_of(tenant, Registered(client, secret), audience="urn:orders"))
    assert answer.json()["expires_in"] == 600
    header = jwt.decode(
        answer.json()["access_token"], KeySet.import_key_set(get(tenant, "/.well-known/jwks.json").json()), algorithms=["RS256"]
    )
    assert header.header["typ"] == "at+jwt"
    assert header.claims["client_id"] == client.client_id
    assert not {"gty", "azp"} & header.claims.keys()
    assert header.claims["exp"] - header.claims["iat"] == 600


def test_a_jwt_access_token_is_not_stored(tenant: Tenant) -> None:
    assert ask_token(tenant, form_of(tenant, granted_client(tenant))).status == 200
    assert not AccessToken.objects.of(tenant.pk).exists()


def test_each_token_has_its_own_id(tenant: Tenant) -> None:
    registered = granted_client(tenant)
    ids = {claims_of(tenant, ask_token(tenant, form_of(tenant, registered)))["jti"] for _ in range(3)}
    assert len(ids) == 3


def test_the_issuer_keeps_the_port_that_the_client_used(tenant: Tenant) -> None:
    registered = granted_client(tenant)
    answer = ask_token(tenant, form_of(tenant, registered), host=f"{tenant.pk}.example.test:8443")
    assert claims_of(tenant, answer)["iss"] == f"http://{tenant.pk}.example.test:8443/"


# --- Preflights, rates and secrets ------------------------------------------------------------------------------------


def test_a_preflight_allows_scripts_of_every_origin(tenant: Tenant) -> None:
    answer = send(HOT_ENDPOINTS["/oauth/token"], "OPTIONS", host=f"{tenant.pk}.example.test")
    assert answer.status == 204
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "DPoP" in answer.headers["access-control-allow-headers"]


def test_a_request_over_the_rate_gets_429_with_the_documented_text(tenant: Tenant, settings: Any) -> None:
    settings.RATE_LIMIT_BURST, settings.RATE_LIMIT_PER_SECOND = 2, 1
    registered = granted_client(tenant)
    answers = [ask_token(tenant, form_of(tenant, registered)) for _ in range(8)]
    refused = next(answer for answer in answers if answer.status == 429)
    assert refused.json() == {
        "error": "too_many_requests",
        "error_description": "Too many requests. Check the X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset headers.",
    }
    assert refused.headers["x-ratelimit-remaining"] == "0"
    assert int(refused.headers["x-ratelimit-reset"]) >= int(time.time())
    assert int(refused.headers["retry-after"]) >= 1
    assert answers[0].headers["x-ratelimit-remaining"] == "1"


def test_tokens_are_issued_and_failures_counted_while_redis_is_down(tenant: Tenant, settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    settings.FAILED_AUTHENTICATIONS_PER_MINUTE = 2
    throttling.counters.cache_clear()
    registered = granted_client(tenant)
    wrong, right = form_of(tenant, registered, client_secret="wrong"), form_of(tenant, registered)
    with time_machine.travel(MINUTE_BEGINS):
        answer = ask_token(tenant, right)
        statuses = [ask_token(tenant, wrong).status for _ in range(3)]
    assert (answer.status, answer.headers["x-ratelimit-remaining"]) == (200, "199")
    assert statuses == [401, 401, 429]


def test_secrets_are_not_in_logs_or_errors(tenant: Tenant, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    client, _ = create_client(tenant_id=tenant.pk, name="Canary")
    client.set_secret(CANARY)
    client.save()
    registered = Registered(client, CANARY)
    answers = [
        ask_token(tenant, form_of(tenant, registered)),
        ask_token(tenant, form_of(tenant, registered, client_secret=CANARY + "x")),
        ask_token(tenant, form_of(tenant, registered, audience=f"urn:{client.pk}"), as_json=True),
        ask_token(tenant, form_of(tenant, registered, client_secret=None), headers=basic(client.client_id, CANARY)),
    ]
    assert not [answer for answer in answers if CANARY in answer.body.decode()]
    assert CANARY not in caplog.text
    assert CANARY not in repr(client)
