"""The query that streams run once a second. One statement returns the current state of all given tokens."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db import connection
from django.test.utils import CaptureQueriesContext

from authapi.services.clients import delete_client, revoke_client, rotate_client_secret
from authapi.tokens.revocation import revoke_access_token
from authapi.tokens.token_state import StreamState, _load_token_states, stream_state, token_states
from identity.models import Tenant
from tests.factories.admin import new_tenant
from tests.factories.authapi import granted_client


def test_one_query_returns_the_versions_of_clients_the_statuses_of_tenants_and_the_revoked_tokens(tenant: Tenant) -> None:
    kept, rotated, revoked, deleted = (granted_client(tenant) for _ in range(4))
    rotate_client_secret(tenant_id=tenant.pk, client_id=rotated.client_id)
    revoke_client(tenant_id=tenant.pk, client_id=revoked.client_id)
    delete_client(tenant_id=tenant.pk, client_id=deleted.client_id)
    revoke_access_token(tenant_id=tenant.pk, jti="gone", expires_at=datetime.now(UTC) + timedelta(hours=1))
    with CaptureQueriesContext(connection) as queries:
        state = stream_state(
            client_ids=[kept.client_id, rotated.client_id, revoked.client_id, deleted.client_id, "nobody"],
            tenant_ids=[tenant.pk, "nowhere"],
            jtis=["gone", "good"],
        )
    assert len(queries) == 1
    assert state == StreamState(
        client_versions={kept.client_id: 2, rotated.client_id: 3},
        tenant_statuses={tenant.pk: "active"},
        revoked_jtis=frozenset({"gone"}),
    )


def test_an_empty_request_returns_an_empty_state(committed_db: None) -> None:
    assert stream_state(client_ids=[], tenant_ids=[], jtis=[]) == StreamState({}, {}, frozenset())


def test_one_query_returns_the_states_of_many_tokens_of_different_tenants(tenant: Tenant) -> None:
    other_tenant = new_tenant()
    used, gone, elsewhere = granted_client(tenant), granted_client(tenant), granted_client(other_tenant)
    until = datetime.now(UTC) + timedelta(hours=1)
    revoke_access_token(tenant_id=tenant.pk, jti="lineage", expires_at=until)
    revoke_access_token(tenant_id=other_tenant.pk, jti="elsewhere", expires_at=until)
    revoke_client(tenant_id=tenant.pk, client_id=gone.client_id)
    asked = [
        (tenant.pk, used.client_id, "good"),
        (tenant.pk, used.client_id, "lineage.2"),
        (tenant.pk, used.client_id, "elsewhere"),
        (tenant.pk, gone.client_id, "good"),
        (tenant.pk, elsewhere.client_id, "good"),
        (tenant.pk, "nobody", "good"),
    ]
    with CaptureQueriesContext(connection) as queries:
        states = token_states.load_many(asked, _load_token_states)
    assert len(queries) == 1
    assert [states[key].is_revoked for key in asked] == [False, True, False, False, True, True]
    assert [states[key].client_version for key in asked] == [2, 2, 2, None, None, None]
    assert [token_states.get(key) for key in asked] == list(states.values())
    token_states.clear()
    assert [token_states.get(key) for key in asked] == list(states.values())
