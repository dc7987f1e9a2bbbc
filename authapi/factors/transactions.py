"""Logins of applications that wait for a second factor: the application holds the `mfa_token`, the row what it asked for first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from authapi.models import Client, FactorTransaction
from foundation.secrets.random_secrets import digest_of, new_secret
from identity.factors.user_factors import OPEN_FOR
from identity.models import Connection, Organization, User

# Contract 2.11: ten minutes.
LIFE = timedelta(minutes=10)
# An access token may stand for an `mfa_token`.
_LONGEST_TOKEN = 8192


@dataclass(frozen=True)
class FirstProof:
    """A user whose first proof was accepted at a client, and what the client asked for."""

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
    """Keep a login until its second factor was proven; return the `mfa_token`, of which only the digest stays."""
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
    """Return the transaction in which an access token for second factors enrolls one: the token stands for its `mfa_token`."""
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
    """Return the row of an `mfa_token`, also one that has expired; None for an unknown or used one, and for a user who is blocked."""
    if not token or len(token) > _LONGEST_TOKEN:
        return None
    rows = FactorTransaction.objects.of(tenant_id).select_related("client", "user", "connection", "organization")
    row = rows.filter(digest=digest_of(token), used_at=None).first()
    return None if row is None or row.user.blocked or row.client.revoked_at is not None else row


def is_over(row: FactorTransaction) -> bool:
    """Tell whether the time of a transaction has ended."""
    return row.expires_at <= timezone.now()


def use_up(row: FactorTransaction) -> bool:
    """Let a transaction issue tokens no more; False where another request came first."""
    return FactorTransaction.objects.of(row.tenant_id).filter(pk=row.pk, used_at=None).update(used_at=timezone.now()) == 1
