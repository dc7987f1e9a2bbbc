"""The only verifier of access tokens: its refusals, their texts, and how soon a change takes effect."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext

from authapi.expiry import drop_ended
from authapi.services.api_resources import create_api_resource
from authapi.services.client_grants import change_client_grant, create_client_grant, delete_client_grant
from authapi.services.clients import create_client, delete_client, revoke_client, rotate_client_secret
from authapi.tokens.keys import trust
from authapi.tokens.revocation import revoke_access_token
from authapi.tokens.token_state import token_states
from authapi.tokens.verifying import (
    ClientNotGlobal,
    InsufficientScope,
    InvalidSignature,
    InvalidToken,
    TokenExpired,
    require_scope,
    verify_access_token,
    verify_access_token_async,
    verify_profile_token,
)
from identity.models import CustomDomain, Tenant
from tests.authapi.forging import decoded, signed
from tests.factories.authapi import Registered, access_token, global_client, granted_client, host_of

# --- Accepted tokens -------------------------------------------------------------------------------------------------


def test_a_token_of_a_client_grant_is_accepted_and_names_its_client(tenant: Tenant) -> None:
    registered = granted_client(tenant)
    verified = verify_access_token(access_token(tenant, registered), host=host_of(tenant))
    assert (verified.client_id, verified.client_name) == (registered.client_id, "Reader")
    assert verified.scopes == {"read:events"}
    require_scope(verified, "read:events")


def test_a_token_of_a_global_client_is_accepted(tenant: Tenant) -> None:
    verified = verify_access_token(access_token(tenant, global_client(tenant)), host=host_of(tenant))
    require_scope(verified, "read:events")


def test_a_user_token_of_a_global_client_is_accepted(tenant: Tenant) -> None:
    token = signed(tenant, access_token(tenant, global_client(tenant)), claims={"sub": "auth|someone"})
    assert not verify_access_token(token, host=host_of(tenant)).is_machine


def test_a_token_of_the_rfc_9068_dialect_is_accepted(tenant: Tenant) -> None:
    registered = granted_client(tenant)
    token = signed(
        tenant,
        access_token(tenant, registered),
        header={"typ": "at+jwt"},
        claims={"azp": None, "gty": None, "client_id": registered.client_id},
    )
    assert verify_access_token(token, host=host_of(tenant)).client_id == registered.client_id


def test_a_token_for_another_api_is_refused(tenant: Tenant) -> None:
    client, secret = create_client(tenant_id=tenant.pk, name="Orders")
    api = create_api_resource(tenant_id=tenant.pk, identifier="urn:orders", scopes=[{"value": "read:events", "description": ""}])
    create_client_grant(tenant_id=tenant.pk, client_id=client.client_id, api_resource=api, scopes=["read:events"])
    token = access_token(tenant, Registered(client, secret), audience="urn:orders")
    with pytest.raises(ClientNotGlobal, match=r"^Client is not global\.$"):
        verify_access_token(token, host=host_of(tenant))


def test_only_a_token_for_the_userinfo_address_is_valid_for_a_profile(tenant: Tenant) -> None:
    registered, address = granted_client(tenant), f"{host_of(tenant).issuer}userinfo"
    token = signed(tenant, access_token(tenant, registered), claims={"aud": ["urn:orders", address]})
    claims, _ = verify_profile_token(token, host=host_of(tenant))
    assert claims.client_id == registered.client_id
    with pytest.raises(InvalidToken):
        verify_profile_token(access_token(tenant, registered), host=host_of(tenant))


def test_a_missing_scope_gets_403_with_the_documented_text(tenant: Tenant) -> None:
    verified = verify_access_token(access_token(tenant, granted_client(tenant, ["read:users"])), host=host_of(tenant))
    with pytest.raises(InsufficientScope) as refused:
        require_scope(verified, "read:events")
    assert (refused.value.status, refused.value.error_code) == (403, "insufficient_scope")
    assert refused.value.message == "Insufficient scope, expected any of: read:events"


def test_a_token_of_one_domain_verifies_on_every_domain_of_its_tenant(tenant: Tenant) -> None:
    registered = granted_client(tenant)
    custom = f"login-{tenant.pk}.example.test"
    CustomDomain.objects.of(tenant.pk).model(tenant=tenant, host=custom, verified_at=datetime.now(UTC)).save()
    for audience in (f"http://{custom}/api/v2/", f"http://{tenant.pk}.example.test/api/v2/"):
        token = access_token(tenant, registered, audience=audience)
        assert verify_access_token(token, host=host_of(tenant)).audiences == (audience,)


# --- Changes after the token was issued -------------------------------------------------------------------------------


def _revoke(tenant: Tenant, registered: Registered, _token: str) -> None:
    revoke_client(tenant_id=tenant.pk, client_id=registered.client_id)


def _delete(tenant: Tenant, registered: Registered, _token: str) -> None:
    delete_client(tenant_id=tenant.pk, client_id=registered.client_id)


def _rotate(tenant: Tenant, registered: Registered, _token: str) -> None:
    rotate_client_secret(tenant_id=tenant.pk, client_id=registered.client_id)


def _narrow(tenant: Tenant, registered: Registered, _token: str) -> None:
    change_client_grant(tenant_id=tenant.pk, grant_id=registered.client.client_grants.get().pk, changes={"scopes": ["read:users"]})


def _take_grant(tenant: Tenant, registered: Registered, _token: str) -> None:
    delete_client_grant(tenant_id=tenant.pk, grant_id=registered.client.client_grants.get().pk)


def _revoke_token(tenant: Tenant, _registered: Registered, token: str) -> None:
    revoke_access_token(tenant_id=tenant.pk, jti=decoded(token)[1]["jti"], expires_at=datetime.now(UTC) + timedelta(hours=1))


@pytest.mark.parametrize("change", [_revoke, _delete, _rotate, _narrow, _take_grant, _revoke_token])
def test_a_token_ends_when_its_client_or_grant_changes_and_when_it_is_revoked(
    tenant: Tenant, change: Callable[[Tenant, Registered, str], None]
) -> None:
    registered = granted_client(tenant)
    token = access_token(tenant, registered)
    verify_access_token(token, host=host_of(tenant))
    change(tenant, registered, token)
    deadline = time.monotonic() + 2
    while True:
        try:
            verify_access_token(token, host=host_of(tenant))
        except InvalidToken:
            return
        assert time.monotonic() < deadline, "still accepted after two seconds"
        time.sleep(0.02)


def test_revoking_one_token_does_not_revoke_other_tokens_of_its_client(tenant: Tenant) -> None:
    registered = granted_client(tenant)
    first, second = access_token(tenant, registered), access_token(tenant, registered)
    _revoke_token(tenant, registered, first)
    _revoke_token(tenant, registered, first)
    with pytest.raises(InvalidToken):
        verify_access_token(first, host=host_of(tenant))
    verify_access_token(second, host=host_of(tenant))


def test_pruning_deletes_only_records_of_expired_tokens(tenant: Tenant) -> None:
    registered = granted_client(tenant)
    token = access_token(tenant, registered)
    _revoke_token(tenant, registered, token)
    revoke_access_token(tenant_id=tenant.pk, jti="long-gone", expires_at=datetime.now(UTC) - timedelta(seconds=1))
    assert drop_ended() >= 1
    with pytest.raises(InvalidToken):
        verify_access_token(token, host=host_of(tenant))


def test_a_token_expires_at_its_exact_second(tenant: Tenant) -> None:
    token = access_token(tenant, granted_client(tenant))
    expires_at = decoded(token)[1]["exp"]
    with time_machine.travel(expires_at - 1, tick=False):
        verify_access_token(token, host=host_of(tenant))
    with time_machine.travel(expires_at, tick=False), pytest.raises(TokenExpired):
        verify_access_token(token, host=host_of(tenant))


# --- Cost -------------------------------------------------------------------------------------------------------------


def test_a_process_with_warm_caches_verifies_tokens_without_the_database(tenant: Tenant) -> None:
    token, host = access_token(tenant, granted_client(tenant)), host_of(tenant)
    with time_machine.travel(datetime.now(UTC), tick=False):
        verify_access_token(token, host=host)
        with CaptureQueriesContext(connection) as queries:
            verify_access_token(token, host=host)
            # Django would refuse a query on the event loop.
            asyncio.run(verify_access_token_async(token, host=host))
    assert len(queries) == 0


def test_a_process_with_empty_caches_verifies_tokens_on_the_event_loop_too(tenant: Tenant) -> None:
    token, host = access_token(tenant, granted_client(tenant)), host_of(tenant)
    trust.clear()
    token_states.clear()
    assert asyncio.run(verify_access_token_async(token, host=host)).tenant_id == tenant.pk


def test_a_bound_token_is_refused_on_the_event_loop_unless_the_caller_accepts_bound_tokens(tenant: Tenant) -> None:
    token = signed(tenant, access_token(tenant, granted_client(tenant)), claims={"cnf": {"x5t#S256": "A" * 43}})
    with pytest.raises(InvalidToken):
        asyncio.run(verify_access_token_async(token, host=host_of(tenant)))
    verified = asyncio.run(verify_access_token_async(token, host=host_of(tenant), takes_bound=True))
    assert verified.confirmation == {"x5t#S256": "A" * 43}


def test_a_refusal_on_the_event_loop_equals_a_refusal_in_a_thread(tenant: Tenant) -> None:
    token, host = access_token(tenant, granted_client(tenant)), host_of(tenant)
    with pytest.raises(InvalidSignature):
        asyncio.run(verify_access_token_async(token[:-8] + "AAAAAAAA", host=host))
