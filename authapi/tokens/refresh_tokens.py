"""Refresh tokens: issued, exchanged and rotated. Only checksums are kept; a family is everything of one lineage.

Two exchanges of one token at once, in any processes, wait for each other at its row.
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
    """Return the row of a token with all that hangs on it, as a query."""
    rows = RefreshToken.objects.of(tenant_id).filter(token_checksum=checksum)
    return rows.select_related("user__connection", "session", "organization").order_by()


def _locked(tenant_id: str, checksum: str) -> QuerySet[RefreshToken]:
    return rows_of_token(tenant_id, checksum).select_for_update(of=("self",), no_key=True)


_LOCKED = CompiledSelect(_locked, "tenant_id", "checksum")


@dataclass(frozen=True)
class Sender:
    """Where a request came from, as it is noted with the token."""

    ip: str
    user_agent: str


@dataclass(frozen=True)
class Successor:
    """The token that replaced a rotated one, with its row locked."""

    row: RefreshToken
    text: str = field(repr=False)


def policy_of(client: Client) -> RefreshPolicy:
    return refresh_policy(client.settings.get("refresh_token"), is_public=client.is_public)


def issue_refresh_token(issue: UserIssue, *, access: Issue, until: datetime, sender: Sender) -> str:
    """Begin a family; return its first token. Joins the transaction of the caller."""
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
    """Return the row of a token with all that hangs on it, locked until the transaction ends; None for one nobody made."""
    # RFC 9700, 4.14.2: whoever comes second waits here, and then sees that the token was rotated.
    return _LOCKED.first(tenant_id=tenant_id, checksum=digest_of(token))


def is_reused(row: RefreshToken, policy: RefreshPolicy, *, now: datetime) -> bool:
    """Tell whether a rotated token is presented once more, and not by a client that merely lost the answer.

    The leeway lets only the previous token through: its successor was received once that was rotated too.
    """
    if not row.is_rotated or row.revoked is None:
        return False
    if now - row.revoked > policy.leeway:
        return True
    family = RefreshToken.objects.of(row.tenant_id).filter(lineage=row.lineage)
    return family.filter(is_rotated=True, pk__gt=row.pk).exists()


def has_ended(row: RefreshToken, policy: RefreshPolicy, *, now: datetime) -> bool:
    """Tell whether a token has expired, was revoked, or was issued under the other mode of rotation."""
    is_revoked = row.revoked is not None and not row.is_rotated
    is_over = any(end is not None and end <= now for end in (row.expires_at, row.idle_expires_at))
    return is_revoked or is_over or row.is_rotating != policy.is_rotating


def renew(row: RefreshToken, *, access: Issue, until: datetime, policy: RefreshPolicy, sender: Sender) -> str | None:
    """Rotate an exchanged token and return its successor, or note its use and return None where it stays.

    For the holder of the row's lock. The end of the family is never moved.
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
    """Note in a row, not stored yet, that the token is replaced now; return the text of its successor."""
    text = new_secret()
    row.revoked, row.is_rotated, row.last_exchanged_at = now, True, now
    if policy.leeway:
        row.sealed_successor, row.sealed_until = vault.seal(text, place=_successor_place(row)), now + policy.leeway
    return text


def living_successor(row: RefreshToken, policy: RefreshPolicy, *, now: datetime) -> Successor | None:
    """Return what replaced a rotated token, locked, while it is kept for answers that were lost; None if it has ended or was used.

    For the holder of the row's lock. Locks go from the older to the younger token, as everywhere in a family.
    """
    if not row.sealed_successor or row.sealed_until is None or row.sealed_until <= now:
        return None
    text = vault.unseal(row.sealed_successor, place=_successor_place(row))
    successor = locked_refresh_token(tenant_id=row.tenant_id, token=text)
    if successor is None or successor.revoked is not None or has_ended(successor, policy, now=now):
        return None
    return Successor(successor, text)


def give_again(successor: Successor, *, access: Issue, until: datetime, policy: RefreshPolicy, sender: Sender) -> str:
    """Note one more access token at the successor of a rotated token; return its text, the same as the first time."""
    row, now = successor.row, timezone.now()
    # Of the access tokens that were issued with it, the last one to expire decides how long a revocation is remembered.
    until = max(until, row.issued_until or until)
    note_use(row, access=access, until=until, policy=policy, now=now, sender=sender)
    row.save(update_fields=[*USED])
    return successor.text


def _stored(row: RefreshToken, text: str, *, access: Issue, until: datetime, policy: RefreshPolicy, now: datetime, sender: Sender) -> str:
    # The toolkit keeps the checksum of what stands here, and leaves the column of the token empty.
    row._raw_token = text
    note_use(row, access=access, until=until, policy=policy, now=now, sender=sender)
    row.save(force_insert=True)
    return text


def _successor_place(row: RefreshToken) -> str:
    return f"{row.tenant_id}:refresh-token:{row.wire_id}:successor"


def note_use(row: RefreshToken, *, access: Issue, until: datetime, policy: RefreshPolicy, now: datetime, sender: Sender) -> None:
    """Note in a row, not stored yet, by whom and for which access token it is used."""
    row.idle_expires_at = policy.idle_expires_at(now)
    row.last_ip = stored_address(sender.ip)
    row.last_user_agent = storable(sender.user_agent)[:_LONGEST_AGENT]
    row.issued_jti, row.issued_until = access.jti, until


# What a use writes into the row of the token, and what a rotation does.
USED = ("idle_expires_at", "last_ip", "last_user_agent", "issued_jti", "issued_until", "updated")
ROTATED = ("revoked", "is_rotated", "last_exchanged_at", "sealed_successor", "sealed_until")
# Columns and not rows: nothing is read for them.
INHERITED = (
    "tenant_id", "user_id", "application_id", "token_family", "lineage", "scope", "audience", "session_id", "sid", "organization_id",
    "auth_time", "methods", "confirmation", "asked", "is_rotating", "expires_at", "last_exchanged_at", "initial_ip", "initial_user_agent",
    "metadata",
)  # fmt: skip
