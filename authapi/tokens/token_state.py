"""Reads the state that may have changed since a token was issued: client versions, tenant status, revoked tokens."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson
from django.db import connection

from authapi.models import Client, RevokedToken
from authapi.tokens.claims import revocation_keys
from authapi.tokens.profile_claims import ProfileSwitches, profile_switches
from foundation.memory import executor
from foundation.memory.batching import Gathering
from foundation.memory.ttl_cache import Remembered
from identity.models import Tenant

_REMEMBERED_SECONDS = 1.0


@dataclass(frozen=True)
class StreamState:
    """The result of `stream_state`. `client_versions` omits a client that was deleted or revoked."""

    client_versions: dict[str, int]
    tenant_statuses: dict[str, str]
    revoked_jtis: frozenset[str]


@dataclass(frozen=True)
class TokenState:
    """Whether one token is valid now, and those settings of its client that change the answers to requests with the token."""

    client_version: int | None
    client_name: str
    client_metadata: Mapping[str, Any]
    client_switches: ProfileSwitches
    is_global: bool
    is_revoked: bool


def stream_state(*, client_ids: Collection[str], tenant_ids: Collection[str], jtis: Collection[str]) -> StreamState:
    """Return the state on which open streams depend, in one query.

    A stream ends if the client of its token is missing or has another version, if the tenant is missing or not active, or if the `jti` of
    the token is revoked.
    """
    client, tenant, revoked = (model._meta.db_table for model in (Client, Tenant, RevokedToken))
    # Table names come from the models.
    query = f"""
        SELECT 'client', client_id, auth_version::text FROM {client} WHERE client_id = ANY(%s) AND revoked_at IS NULL
        UNION ALL SELECT 'tenant', id, status FROM {tenant} WHERE id = ANY(%s)
        UNION ALL SELECT 'jti', jti, '' FROM {revoked} WHERE jti = ANY(%s)"""  # noqa: S608
    found: dict[str, dict[str, str]] = {"client": {}, "tenant": {}, "jti": {}}
    keys = {key for jti in jtis for key in revocation_keys(jti)}
    with connection.cursor() as cursor:
        cursor.execute(query, [list(client_ids), list(tenant_ids), list(keys)])
        for kind, key, value in cursor.fetchall():
            found[kind][key] = value
    return StreamState(
        client_versions={key: int(value) for key, value in found["client"].items()},
        tenant_statuses=found["tenant"],
        revoked_jtis=frozenset(jti for jti in jtis if not found["jti"].keys().isdisjoint(revocation_keys(jti))),
    )


TokenKey = tuple[str, str, str]
_UNKNOWN = TokenState(
    client_version=None, client_name="", client_metadata={}, client_switches=ProfileSwitches(), is_global=False, is_revoked=True
)
# Select single members of the settings, because the whole settings may be long.
_SWITCHES = "jsonb_build_object('updated_at_as_text', settings->'updated_at_as_text', 'compliance_level', settings->'compliance_level')"


def _load_token_states(asked: Collection[TokenKey]) -> dict[TokenKey, TokenState]:
    """Return the state of each token in one query. A deleted client makes all of its tokens invalid."""
    client, revoked = Client._meta.db_table, RevokedToken._meta.db_table
    query = f"""
        SELECT tenant_id, client_id, auth_version, name, metadata::text, ({_SWITCHES})::text, is_global, revoked_at IS NULL, false
        FROM {client} WHERE client_id = ANY(%s)
        UNION ALL SELECT tenant_id, jti, NULL, NULL, NULL, NULL, NULL, NULL, true FROM {revoked} WHERE jti = ANY(%s)"""  # noqa: S608
    clients: dict[tuple[str, str], TokenState] = {}
    ended: set[tuple[str, str]] = set()
    with connection.cursor() as cursor:
        cursor.execute(query, [[key[1] for key in asked], [name for key in asked for name in revocation_keys(key[2])]])
        for tenant_id, name, version, client_name, metadata, settings, is_global, is_usable, is_revocation in cursor.fetchall():
            if is_revocation:
                ended.add((tenant_id, name))
                continue
            clients[tenant_id, name] = TokenState(
                client_version=version if is_usable else None,
                client_name=client_name,
                client_metadata=orjson.loads(metadata),
                client_switches=profile_switches(orjson.loads(settings)),
                is_global=is_global,
                is_revoked=False,
            )
    states = {}
    for tenant_id, client_id, jti in asked:
        state = clients.get((tenant_id, client_id), _UNKNOWN)
        is_revoked = any((tenant_id, name) in ended for name in revocation_keys(jti))
        states[tenant_id, client_id, jti] = replace(state, is_revoked=True) if is_revoked else state
    return states


# The cache key is the tenant, the client id and the `jti`.
token_states: Remembered[TokenKey, TokenState] = Remembered(
    lambda key: _load_token_states([key])[key], seconds=_REMEMBERED_SECONDS, limit=16_384
)


async def _remember_token_states(asked: Sequence[TokenKey]) -> dict[TokenKey, TokenState]:
    return await executor.run(lambda: token_states.load_many(asked, _load_token_states))


# After an outage, many streams begin at the same time. The states of their tokens are read together.
gathered_token_states: Gathering[TokenKey, TokenState] = Gathering(_remember_token_states)
