"""Logins that wait for a second factor at the token endpoint. The application gets the `mfa_token`; the row stores the original request of
the application.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from authapi.models import Client, FactorTransaction
from foundation.secrets.random_secrets import digest_of, new_secret
from identity.factors.user_factors import OPEN_FOR
from identity.models import Connection, Organization, User

# Lifetime of a transaction, as in the contract, 2.11: ten minutes.
LIFE = timedelta(minutes=10)
# The maximum length of an `mfa_token`. An access token can be sent in its place, and is longer than the tokens that this module creates.
_LONGEST_TOKEN = 8192


@dataclass(frozen=True)
class FirstProof:
    """A user whose first proof was accepted at a client, and the request of the client."""

    client: Client
    user: User
    connection: Connection
    organization: Organization | None
    methods: tuple[str, ...]
    grant: str
    audience: str | None
    scope: str | None
    key: str = ""
    ip: str = ""


def begin_transaction(proof: FirstProof, *, may_enroll: bool) -> str:
    """Store a login until its second factor is proven. Return the `mfa_token`; only its digest is stored."""
    token = new_secret()
    FactorTransaction(
        tenant_id=proof.client.tenant_id,
        digest=digest_of(token),
        client=proof.client,
        user=proof.user,
        connection=proof.connection,
        organization=proof.organization,
        methods=list(proof.methods),
        grant=proof.grant,
        audience=proof.audience or "",
        scope=proof.scope,
        key=proof.key,
        may_enroll=may_enroll,
        ip=proof.ip,
        expires_at=timezone.now() + LIFE,
    ).save(force_insert=True)
    return token


def transaction_of_access_token(proof: FirstProof, token: str, *, expires_at: datetime) -> FactorTransaction:
    """Return the transaction in which a client enrolls a second factor with an access token. The access token replaces the `mfa_token`."""
    values = {
        "client": proof.client,
        "user": proof.user,
        "connection": proof.connection,
        "methods": list(proof.methods),
        "grant": proof.grant,
        "audience": proof.audience or "",
        "scope": proof.scope,
        "key": proof.key,
        "may_enroll": True,
        "ip": proof.ip,
        "expires_at": min(expires_at, timezone.now() + OPEN_FOR),
        "used_at": None,
    }
    rows = FactorTransaction.objects.of(proof.client.tenant_id)
    row, _ = rows.update_or_create(digest=digest_of(token), tenant_id=proof.client.tenant_id, defaults=values)
    return row


def find_transaction(tenant_id: str, token: str) -> FactorTransaction | None:
    """Return the row of an `mfa_token`, even if expired. None for an unknown or used token, a blocked user or a revoked client."""
    if not token or len(token) > _LONGEST_TOKEN:
        return None
    rows = FactorTransaction.objects.of(tenant_id).select_related("client", "user", "connection", "organization")
    row = rows.filter(digest=digest_of(token), used_at=None).first()
    return None if row is None or row.user.blocked or row.client.revoked_at is not None else row


def is_over(row: FactorTransaction) -> bool:
    """Tell whether a transaction has expired."""
    return row.expires_at <= timezone.now()


def use_up(row: FactorTransaction) -> bool:
    """Mark a transaction as used, so that it issues no more tokens. Return False if another request has already used the transaction."""
    return FactorTransaction.objects.of(row.tenant_id).filter(pk=row.pk, used_at=None).update(used_at=timezone.now()) == 1
