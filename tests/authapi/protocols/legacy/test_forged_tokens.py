"""Tokens that an attacker has changed or created, and bound tokens that were stolen without their key. Every old endpoint refuses them."""

from __future__ import annotations

from typing import Any

import pytest

from authapi.models import AccessToken
from authapi.services.api_resources import create_api_resource
from authapi.services.clients import rotate_client_secret
from authapi.tokens.id_tokens import id_token
from tests.authapi.asgi_client import Received, ask_token
from tests.authapi.forging import decoded, encoded, signed
from tests.authapi.protocols.legacy.conftest import OldClient, refusal
from tests.authapi.protocols.legacy.test_account_links import INVALID as INVALID_ACCESS_TOKEN
from tests.authapi.protocols.legacy.test_account_links import NOT_LINKED, begin, logged_in, told
from tests.authapi.protocols.legacy.test_delegation import INVALID, delegate, token_of
from tests.authapi.proving import Prover, settle_memory
from tests.factories.authapi import Registered, host_of
from tests.factories.logins import code_form, code_of, login_of

API = "https://bank.example.test"


def asked(old: OldClient, token: str) -> tuple[Received, Received]:
    """Send an id token to `/tokeninfo` and `/delegation`, the two endpoints that accept id tokens."""
    return old.ask("/tokeninfo", {"id_token": token}), delegate(old, id_token=token)


def test_a_token_with_a_changed_user_is_refused(old: OldClient, second: OldClient) -> None:
    token = token_of(old)
    header, claims, signature = token.split(".")
    other = encoded({**decoded(token)[1], "sub": second.user.user_id})
    for forged in (f"{header}.{other}.{signature}", f"{header}.{claims}.", f"{encoded({'alg': 'none'})}.{other}."):
        assert [refusal(answer) for answer in asked(old, forged)] == [INVALID, INVALID]


def test_a_token_for_this_tenant_that_another_tenant_signed_is_refused(old: OldClient, second: OldClient) -> None:
    # The token of the other tenant contains this issuer, client and user. It is signed with the key of the other tenant, and its header
    # contains the id of this tenant's key.
    token = token_of(old)
    own_kid = decoded(token)[0]["kid"]
    for header in ({}, {"kid": own_kid}):
        forged = signed(second.tenant, token, header=header)
        assert [refusal(answer) for answer in asked(old, forged)] == [INVALID, INVALID]


def test_a_token_of_another_issuer_is_refused_even_with_our_key(old: OldClient, second: OldClient) -> None:
    forged = signed(old.tenant, token_of(old), claims={"iss": second.issuer})
    assert [refusal(answer) for answer in asked(old, forged)] == [INVALID, INVALID]
    assert [answer.status for answer in asked(old, signed(old.tenant, token_of(old)))] == [200, 200]


def test_a_token_for_an_organization_cannot_be_delegated(old: OldClient) -> None:
    login = login_of(old.tenant, Registered(old.client, ""), old.user, scope="openid")
    forged = signed(old.tenant, id_token(login), claims={"org_id": "org_x"})
    assert refusal(delegate(old, id_token=forged)) == INVALID


# --- Bound access tokens ------------------------------------------------------------------------------------------------------


def bound_token(old: OldClient, *, audience: str | None = None) -> str:
    """Return an access token of the user. The token is bound to a key, which is not returned."""
    settle_memory()
    client, secret = rotate_client_secret(tenant_id=old.tenant.pk, client_id=old.client.client_id)
    registered, prover = Registered(client, secret), Prover()
    login = login_of(old.tenant, registered, old.user, scope="openid profile", audience=audience)
    address = f"{host_of(old.tenant).issuer}oauth/token"
    form: dict[str, Any] = code_form(registered, code_of(login))
    answer = prover.proven(lambda: ask_token(old.tenant, form, headers={"DPoP": prover.proof("POST", address)}))
    assert (answer.status, answer.json()["token_type"]) == (200, "DPoP"), answer.body
    return str(answer.json()["access_token"])


@pytest.mark.parametrize("audience", [None, API])
def test_a_bound_access_token_cannot_link_or_unlink_accounts(old: OldClient, audience: str | None) -> None:
    create_api_resource(tenant_id=old.tenant.pk, identifier=API, scopes=[{"value": "read", "description": ""}])
    token = bound_token(old, audience=audience)
    assert (token.count(".") == 2) is (audience is not None)
    assert refusal(old.ask("/login/unlink", {"access_token": token, "user_id": "auth0|x"})) == INVALID_ACCESS_TOKEN
    assert told(begin(old, logged_in(old), token)) == INVALID_ACCESS_TOKEN[1:]
    if audience is None:
        # The binding is the reason for the refusal: without the binding, the token is accepted.
        AccessToken.objects.of(old.tenant.pk).update(confirmation=None)
        assert refusal(old.ask("/login/unlink", {"access_token": token, "user_id": "auth0|x"})) == NOT_LINKED
