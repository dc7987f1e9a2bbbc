"""What may have changed since a token was issued, read as states: client versions, tenant status, revoked tokens."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.db import connection

from authapi.claims import revocation_keys
from authapi.models import Client, RevokedToken
from authapi.remembered import Remembered
from identity.models import Tenant

_REMEMBERED_SECONDS = 1.0


@dataclass(frozen=True)
class StreamState:
    """The answer of `stream_state`. A client that was deleted or revoked is missing from `client_versions`."""

    client_versions: dict[str, int]
    tenant_statuses: dict[str, str]
    revoked_jtis: frozenset[str]


@dataclass(frozen=True)
class TokenState:
    """What decides now whether one token still counts."""

    client_version: int | None
    client_name: str
    is_global: bool
    is_revoked: bool


def stream_state(*, client_ids: Collection[str], tenant_ids: Collection[str], jtis: Collection[str]) -> StreamState:
    """Return the state of everything that open streams hang on, in one query.

    A stream ends when its client is missing or has another version than its token, when its tenant is missing or not
    active, or when its `jti` is revoked.
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


def _load_token_state(key: tuple[str, str, str]) -> TokenState:
    tenant_id, client_id, jti = key
    client, revoked = Client._meta.db_table, RevokedToken._meta.db_table
    query = f"""
        SELECT auth_version, name, is_global, revoked_at IS NULL,
               EXISTS (SELECT 1 FROM {revoked} WHERE jti = ANY(%s) AND tenant_id = %s)
        FROM {client} WHERE client_id = %s AND tenant_id = %s"""  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(query, [list(revocation_keys(jti)), tenant_id, client_id, tenant_id])
        row = cursor.fetchone()
    if row is None:
        return TokenState(client_version=None, client_name="", is_global=False, is_revoked=True)
    version, name, is_global, is_usable, is_revoked = row
    return TokenState(client_version=version if is_usable else None, client_name=name, is_global=is_global, is_revoked=is_revoked)


# Keyed by tenant, client id and jti.
token_states: Remembered[tuple[str, str, str], TokenState] = Remembered(_load_token_state, seconds=_REMEMBERED_SECONDS, limit=16_384)
