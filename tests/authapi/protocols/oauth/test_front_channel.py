"""Parameters of authorization responses that are sent through the browser, for each set of response types."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from typing import Any

import pytest

from authapi.models import AuthorizationCode, RefreshToken
from authapi.protocols.oauth.front_channel import front_channel
from authapi.services.api_resources import create_api_resource
from authapi.tokens.user_tokens import CodeParameters
from identity.models import Tenant
from tests.authapi.asgi_client import ask_token, read_profile
from tests.authapi.forging import decoded
from tests.authapi.memory import forget_all
from tests.factories.logins import CALLBACK, code_form, login_of, some_user, web_client

API = "urn:orders"
PARAMETERS = CodeParameters(redirect_uri=CALLBACK, is_redirect_uri_given=True)
ACCESS = {"access_token", "token_type", "expires_in", "scope"}


def half_hash(value: str) -> str:
    """Return the left half of the digest, independently of the code under test (OpenID Connect Core 1.0, 3.3.2.11)."""
    return base64.urlsafe_b64encode(hashlib.sha256(value.encode("ascii")).digest()[:16]).decode().rstrip("=")


def respond(tenant: Tenant, *types: str, **login: Any) -> tuple[Any, dict[str, Any]]:
    registered = web_client(tenant)
    issue = login_of(tenant, registered, some_user(tenant), nonce="n-1", **login)
    parameters = PARAMETERS if "code" in types else None
    return registered, front_channel(issue, response_types=frozenset(types), code_parameters=parameters, state="s-1")


@pytest.mark.parametrize(
    ("types", "members", "hashes"),
    [
        (("code",), {"code"}, None),
        (("token",), ACCESS, None),
        (("id_token",), {"id_token"}, set()),
        (("token", "id_token"), ACCESS | {"id_token"}, {"at_hash"}),
        (("code", "token"), ACCESS | {"code"}, None),
        (("code", "id_token"), {"code", "id_token"}, {"c_hash", "s_hash"}),
        (("code", "token", "id_token"), ACCESS | {"code", "id_token"}, {"at_hash", "c_hash", "s_hash"}),
    ],
)
def test_each_set_of_response_types_returns_its_own_parameters(
    tenant: Tenant, types: tuple[str, ...], members: set[str], hashes: set[str] | None
) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API)
    registered, response = respond(tenant, *types, audience=API)
    assert response.keys() == members
    if hashes is not None:
        claims = decoded(response["id_token"])[1]
        values = {"at_hash": response.get("access_token", ""), "c_hash": response.get("code", ""), "s_hash": "s-1"}
        assert {name: claims[name] for name in claims if name.endswith("_hash")} == {name: half_hash(values[name]) for name in hashes}
        assert (claims["nonce"], claims["aud"]) == ("n-1", registered.client_id)
    if "token" in types:
        # A token sent through a browser is valid for two hours.
        assert (response["token_type"], response["expires_in"]) == ("Bearer", 7200)
        assert read_profile(tenant, response["access_token"]).status == 200


def test_a_response_through_the_browser_never_contains_a_refresh_token(tenant: Tenant) -> None:
    _, response = respond(tenant, "code", "token", "id_token", scope="openid offline_access")
    assert "refresh_token" not in response
    assert not RefreshToken.objects.of(tenant.pk).exists()


def test_the_api_sets_the_lifetime_of_tokens_sent_through_the_browser(tenant: Tenant) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API, token_lifetime=5000, settings={"token_lifetime_for_web": 99})
    _, response = respond(tenant, "token", audience=API)
    claims = decoded(response["access_token"])[1]
    assert (response["expires_in"], claims["exp"] - claims["iat"]) == (99, 99)


def test_replaying_a_code_revokes_the_access_token_of_the_same_response(tenant: Tenant) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API)
    registered, response = respond(tenant, "code", "token", audience=API)
    form = code_form(registered, response["code"])
    assert ask_token(tenant, form).status == 200
    assert read_profile(tenant, response["access_token"]).status == 200
    assert ask_token(tenant, form).status == 403
    forget_all()
    assert read_profile(tenant, response["access_token"]).status == 401


def test_a_code_without_code_parameters_raises_value_error(tenant: Tenant) -> None:
    issue = login_of(tenant, web_client(tenant), some_user(tenant))
    with pytest.raises(ValueError, match="parameters"):
        front_channel(issue, response_types=frozenset({"code"}), code_parameters=None, state=None)
    assert not AuthorizationCode.objects.of(tenant.pk).exists()


def test_an_id_token_has_no_s_hash_without_a_state(tenant: Tenant) -> None:
    issue = replace(login_of(tenant, web_client(tenant), some_user(tenant)), nonce="n-1")
    response = front_channel(issue, response_types=frozenset({"code", "id_token"}), code_parameters=PARAMETERS, state=None)
    assert "s_hash" not in decoded(response["id_token"])[1]
