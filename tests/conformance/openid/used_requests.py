"""Uses those members of the discovery document that are about authorization requests and their responses: one function per member.

Each function raises an error for an unknown value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from authapi.models import ClientCredential
from authapi.services.client_credentials import NewCredential, create_credential
from authapi.services.clients import update_client
from identity.services.memberships import add_connection, add_members
from identity.services.organizations import create_organization
from tests.authapi.assertions import public_pem
from tests.authapi.memory import forget_all
from tests.conformance.openid.bank import handle_of
from tests.conformance.openid.plans import Variant
from tests.conformance.openid.provider import Provider, error_of
from tests.conformance.openid.relying_party import CALLBACK, LOGGED_OUT, good_tokens, new_party, with_pkce
from tests.conformance.openid.test_request_objects import sent_with, signed

EVERYTHING = "code id_token token"
STATE = "state"


def use_issuer(provider: Provider, value: str) -> None:
    assert new_party(provider).logged_in().claims["iss"] == value


def use_authorization_endpoint(provider: Provider, value: str) -> None:
    party = new_party(provider)
    assert value == provider.metadata["authorization_endpoint"]
    assert party.complete(party.log_in(party.authorize())).claims["sub"]


def use_pushed_authorization_request_endpoint(provider: Provider, value: str) -> None:
    party = new_party(provider, method="client_secret_post")
    proof = {"client_id": party.client.client_id, "client_secret": party.secret}
    party.sent = party.request()
    handle = handle_of(provider.post(value, {**party.sent, **proof}))
    page = party.browser.get("/authorize", {"client_id": party.client.client_id, "request_uri": handle})
    assert party.complete(party.log_in(page)).claims["sub"]


def use_require_pushed_authorization_requests(provider: Provider, value: bool) -> None:
    page = new_party(provider).authorize()
    # If pushing is required, the browser is redirected to the client with a refusal. Otherwise the browser gets a login page.
    assert page.location.startswith(CALLBACK) is value


def use_end_session_endpoint(provider: Provider, value: str) -> None:
    party = new_party(provider)
    sent = {"id_token_hint": party.logged_in().id_token, "post_logout_redirect_uri": LOGGED_OUT, "state": STATE}
    page = party.browser.get(value.removeprefix(provider.issuer.rstrip("/")), sent)
    assert page.location == f"{LOGGED_OUT}?state={STATE}"
    assert party.error(party.authorize(prompt="none")) == "login_required"


def use_authorization_response_iss(provider: Provider, value: bool) -> None:
    party = new_party(provider)
    assert ("iss" in party.log_in(party.authorize()).answer) is value


def use_response_type(provider: Provider, value: str) -> None:
    party = new_party(provider, Variant(value))
    outcome = party.logged_in()
    assert not outcome.access_token or party.profile(outcome.access_token)["sub"] == provider.user.user_id


def use_response_mode(provider: Provider, value: str) -> None:
    assert value in ("query", "fragment", "form_post")
    # `answer` reads the parameters from the part of the response that the mode names.
    assert new_party(provider).logged_in(response_mode=value).claims["sub"]


def use_code_challenge_method(provider: Provider, value: str) -> None:
    assert value == "S256"
    party = new_party(provider)
    verifier, challenge = with_pkce()
    assert party.complete(party.log_in(party.authorize(**challenge)), code_verifier=verifier).claims["sub"]
    code = party.answer(party.authorize(**challenge))["code"]
    assert error_of(party.exchange(code, code_verifier="x" * 43)) == (400, "invalid_grant")


_PAGES = {"login": "/u/login", "consent": "/u/consent", "select_account": "/u/select-account", "create": "/u/signup"}


def use_prompt(provider: Provider, value: str) -> None:
    party = new_party(provider)
    if value == "none":
        assert party.error(party.authorize(prompt=value)) == "login_required"
        return
    party.logged_in()
    assert party.authorize(prompt=value).location.startswith(_PAGES[value])


def use_locale(provider: Provider, value: str) -> None:
    party = new_party(provider)
    assert f'<html lang="{value}"' in party.shown(party.authorize(ui_locales=value)).text


def use_request_parameter(provider: Provider, value: bool) -> None:
    assert value is True
    use_request_algorithm(provider, "RS256")


def use_request_algorithm(provider: Provider, value: str) -> None:
    party = new_party(provider)
    tenant_id, client_id = provider.tenant.pk, party.client.client_id
    new = NewCredential(type=ClientCredential.Type.PUBLIC_KEY, pem=public_pem("first"), algorithm=value)
    credential = create_credential(tenant_id=tenant_id, client_id=client_id, new=new)
    settings = {"signed_request_object": {"required": True, "credentials": [{"id": credential.pk}]}}
    update_client(tenant_id=tenant_id, client_id=client_id, changes={"settings": settings})
    forget_all()
    party.sent = party.request()
    page = sent_with(party, request=signed(party, party.sent, algorithm=value))
    assert party.complete(party.log_in(page)).claims["sub"]


def use_request_uri_parameter(provider: Provider, value: bool) -> None:
    assert value is False
    party = new_party(provider)
    assert party.error(party.authorize(request_uri="https://rp.example.test/request.jwt")) == "request_uri_not_supported"


def use_claims_parameter(provider: Provider, value: bool) -> None:
    party = new_party(provider)
    outcome = party.logged_in(claims=json.dumps({"userinfo": {"email": {"essential": True}}, "id_token": {"name": None}}))
    assert ("email" in party.profile(outcome.access_token)) is value
    assert ("name" in outcome.claims) is value


_OF_SCOPE = {
    "openid": "sub",
    "profile": "nickname",
    "phone": "phone_number",
    **{
        name: name
        for name in ("email", "name", "given_name", "family_name", "nickname", "picture", "email_verified", "created_at", "identities")
    },
}


def use_scope(provider: Provider, value: str) -> None:
    party = new_party(provider)
    scope = "openid" if value == "openid" else f"openid {value}"
    outcome = party.complete(party.log_in(party.authorize(scope=scope)))
    assert value in str(outcome.tokens.get("scope", scope)).split()
    if value in ("offline_access", "online_access"):
        token = outcome.tokens["refresh_token"]
        assert good_tokens(party.refresh(token))["access_token"]
        party.browser.get("/v2/logout")
        # An online token ends with the session; an offline token does not.
        assert party.refresh(token).status == (200 if value == "offline_access" else 400)
        return
    assert _OF_SCOPE[value] in party.profile(outcome.access_token)
    assert _OF_SCOPE[value] in outcome.claims


def seen_claims(provider: Provider) -> frozenset[str]:
    """Return the names of all claims of a login with every scope, in an organization with a name."""
    party = new_party(provider, Variant(EVERYTHING), settings={"oauth_standard_errors": True, "organization_usage": "require"})
    made = create_organization(tenant_id=provider.tenant.pk, name=f"acme-{party.client.client_id[:6].lower()}")
    add_connection(tenant_id=provider.tenant.pk, organization_id=made.pk, connection_id=provider.connection.pk)
    add_members(tenant_id=provider.tenant.pk, organization_id=made.pk, user_ids=[provider.user.user_id])
    scopes = " ".join(name for name in provider.metadata["scopes_supported"] if not name.endswith("_access"))
    contexts = provider.metadata.get("acr_values_supported") or [None]
    outcome = party.complete(party.log_in(party.authorize(scope=scopes, organization=made.pk, acr_values=contexts[0])))
    profile: Mapping[str, Any] = party.profile(outcome.access_token)
    return frozenset({*outcome.claims, *profile})


def use_subject_type(provider: Provider, value: str) -> None:
    assert value == "public"
    first, second = (new_party(provider).logged_in().claims["sub"] for _ in range(2))
    assert first == second == provider.user.user_id
