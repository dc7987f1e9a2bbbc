"""Refresh tokens: issues, exchanges and rotates them. A row stores the digest of its token (`token_checksum`), never the token.

During the leeway, the row of a rotated token also contains its successor, encrypted.

A family is all refresh tokens of one lineage.

Concurrent exchanges of one token, in any processes, wait for the lock of its row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import QuerySet
from django.utils import timezone

from authapi.edge.addresses import stored_address
from authapi.models import Client, RefreshToken
from authapi.tokens.minting import Issue
from authapi.tokens.refresh_policy import RefreshPolicy, refresh_policy
from authapi.tokens.user_tokens import UserIssue
from foundation.database.compiled_select import CompiledSelect
from foundation.json_values import storable
from foundation.secrets import vault
from foundation.secrets.random_secrets import digest_of, new_secret

_LONGEST_AGENT = 500


def rows_of_token(tenant_id: str, checksum: str) -> QuerySet[RefreshToken]:
    """Return a query for the row of a token with its related rows."""
    rows = RefreshToken.objects.of(tenant_id).filter(token_checksum=checksum)
    return rows.select_related("user__connection", "session", "organization").order_by()


def _locked(tenant_id: str, checksum: str) -> QuerySet[RefreshToken]:
    return rows_of_token(tenant_id, checksum).select_for_update(of=("self",), no_key=True)


_LOCKED = CompiledSelect(_locked, "tenant_id", "checksum")


@dataclass(frozen=True)
class Sender:
    """The IP address and the user agent of a request, as the row of a token stores them."""

    ip: str
    user_agent: str


@dataclass(frozen=True)
class Successor:
    """The token that replaced a rotated token, with its row locked."""

    row: RefreshToken
    text: str = field(repr=False)


def policy_of(client: Client) -> RefreshPolicy:
    return refresh_policy(client.settings.get("refresh_token"), is_public=client.is_public)


def issue_refresh_token(issue: UserIssue, *, access: Issue, until: datetime, sender: Sender) -> str:
    """Begin a family and return its first token. Runs in the transaction of the caller."""
    now = timezone.now()
    policy = policy_of(issue.client)
    row = RefreshToken(
        tenant_id=issue.host.tenant_id,
        user=issue.user,
        application=issue.client,
        token_family=issue.lineage,
        lineage=issue.lineage,
        scope=" ".join(issue.scopes),
        audience=issue.audience,
        session=issue.session,
        sid=issue.session.pk if issue.session else "",
        organization=issue.organization,
        auth_time=issue.auth_time,
        methods=list(issue.methods),
        confirmation=dict(issue.confirmation) if issue.confirmation else None,
        asked=issue.asked.state if issue.asked else None,
        is_rotating=policy.is_rotating,
        expires_at=policy.expires_at(now),
        initial_ip=stored_address(sender.ip),
        initial_user_agent=storable(sender.user_agent)[:_LONGEST_AGENT],
    )
    return _stored(row, new_secret(), access=access, until=until, policy=policy, now=now, sender=sender)


def locked_refresh_token(*, tenant_id: str, token: str) -> RefreshToken | None:
    """Return the row of a token with its related rows, locked until the transaction ends; None for an unknown token."""
    # RFC 9700, 4.14.2: a second exchange waits for the lock, and then finds that the token was rotated.
    return _LOCKED.first(tenant_id=tenant_id, checksum=digest_of(token))


def is_reused(row: RefreshToken, policy: RefreshPolicy, *, now: datetime) -> bool:
    """Tell whether the use of a rotated token indicates theft, and not a client that lost the answer.

    After the leeway, every use of a rotated token indicates theft. Within the leeway, the token may be used again if its successor was not
    rotated. If its successor was rotated, the client had received the successor, so the use indicates theft.
    """
    if not row.is_rotated or row.revoked is None:
        return False
    if now - row.revoked > policy.leeway:
        return True
    family = RefreshToken.objects.of(row.tenant_id).filter(lineage=row.lineage)
    return family.filter(is_rotated=True, pk__gt=row.pk).exists()


def has_ended(row: RefreshToken, policy: RefreshPolicy, *, now: datetime) -> bool:
    """Tell whether a token has expired, was revoked, or was issued before rotation was switched on or off for its client."""
    is_revoked = row.revoked is not None and not row.is_rotated
    is_over = any(end is not None and end <= now for end in (row.expires_at, row.idle_expires_at))
    return is_revoked or is_over or row.is_rotating != policy.is_rotating


def renew(row: RefreshToken, *, access: Issue, until: datetime, policy: RefreshPolicy, sender: Sender) -> str | None:
    """Rotate an exchanged token and return its successor. Without rotation, record the use and return None.

    The caller holds the lock of the row. The expiry of the family never changes.
    """
    now = timezone.now()
    row.last_exchanged_at = now
    if not policy.is_rotating:
        note_use(row, access=access, until=until, policy=policy, now=now, sender=sender)
        row.save(update_fields=[*USED, "last_exchanged_at"])
        return None
    text = rotated(row, policy, now=now)
    row.save(update_fields=[*ROTATED, "updated"])
    successor = RefreshToken(**{name: getattr(row, name) for name in INHERITED})
    return _stored(successor, text, access=access, until=until, policy=policy, now=now, sender=sender)


def rotated(row: RefreshToken, policy: RefreshPolicy, *, now: datetime) -> str:
    """Change the columns of `row`: its token is replaced now. The caller saves the row. Returns the text of the new token."""
    text = new_secret()
    row.revoked, row.is_rotated, row.last_exchanged_at = now, True, now
    if policy.leeway:
        row.sealed_successor, row.sealed_until = vault.seal(text, place=successor_place(row)), now + policy.leeway
    return text


def living_successor(row: RefreshToken, policy: RefreshPolicy, *, now: datetime) -> Successor | None:
    """Return the locked successor of a rotated token; None if the leeway is over, or if the successor has ended or was used.

    A client that lost an answer gets the same successor again. The caller holds the lock of the row. Locks are always taken from the
    older to the younger token of a family.
    """
    if not row.sealed_successor or row.sealed_until is None or row.sealed_until <= now:
        return None
    text = vault.unseal(row.sealed_successor, place=successor_place(row))
    successor = locked_refresh_token(tenant_id=row.tenant_id, token=text)
    if successor is None or successor.revoked is not None or has_ended(successor, policy, now=now):
        return None
    return Successor(successor, text)


def give_again(successor: Successor, *, access: Issue, until: datetime, policy: RefreshPolicy, sender: Sender) -> str:
    """Record another access token in the row of the successor of a rotated token. Return the unchanged text of the successor."""
    row, now = successor.row, timezone.now()
    # The row keeps the latest expiry of all access tokens that it issued: if the refresh token is revoked, the revocation of these access
    # tokens is stored until then.
    until = max(until, row.issued_until or until)
    note_use(row, access=access, until=until, policy=policy, now=now, sender=sender)
    row.save(update_fields=[*USED])
    return successor.text


def _stored(row: RefreshToken, text: str, *, access: Issue, until: datetime, policy: RefreshPolicy, now: datetime, sender: Sender) -> str:
    # The OAuth toolkit computes the checksum (the digest) from the text in this attribute, and stores only the checksum. The column for the
    # token stays empty.
    row._raw_token = text
    note_use(row, access=access, until=until, policy=policy, now=now, sender=sender)
    row.save(force_insert=True)
    return text


def successor_place(row: RefreshToken) -> str:
    return f"{row.tenant_id}:refresh-token:{row.wire_id}:successor"


def note_use(row: RefreshToken, *, access: Issue, until: datetime, policy: RefreshPolicy, now: datetime, sender: Sender) -> None:
    """Record an exchange in the row of the refresh token: the sender, the new access token and the idle expiry. Does not save the row."""
    row.idle_expires_at = policy.idle_expires_at(now)
    row.last_ip = stored_address(sender.ip)
    row.last_user_agent = storable(sender.user_agent)[:_LONGEST_AGENT]
    row.issued_jti, row.issued_until = access.jti, until


# The columns that a use writes, and the columns that a rotation writes.
USED = ("idle_expires_at", "last_ip", "last_user_agent", "issued_jti", "issued_until", "updated")
ROTATED = ("revoked", "is_rotated", "last_exchanged_at", "sealed_successor", "sealed_until")
# The list contains columns and no related objects, so that copying the values needs no query.
INHERITED = (
    "tenant_id", "user_id", "application_id", "token_family", "lineage", "scope", "audience", "session_id", "sid", "organization_id",
    "auth_time", "methods", "confirmation", "asked", "is_rotating", "expires_at", "last_exchanged_at", "initial_ip", "initial_user_agent",
    "metadata",
)  # fmt: skip
