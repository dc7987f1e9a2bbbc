"""Sessions of end users: begun at a login, found by their cookie, ended by a logout, an administrator or the clock."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from authapi.edge.addresses import stored_address
from authapi.models import Client, Initiator, RefreshToken, Session, SessionClient
from authapi.protocols.oauth.logout_notices import leave_notices
from authapi.tenant_settings import sign_in_settings
from foundation.database.transactions import lock_rows, unit_of_work
from foundation.json_values import storable
from foundation.secrets import vault
from foundation.secrets.random_secrets import digest_of, new_secret
from identity.models import Connection, LinkedIdentity, Organization, User

# A session that is in use is written to this often and no oftener.
_TOUCHED_EVERY = timedelta(minutes=1)
# A refresh token with this scope lives as long as its session.
_ONLINE_SCOPE = "online_access"
_LONGEST_AGENT = 500
_PRUNED_AT_ONCE = 1000
_PRUNE_SECONDS = 10.0


def begin_session(
    *,
    tenant_id: str,
    user: User,
    connection: Connection,
    methods: Iterable[str],
    ip: str | None,
    user_agent: str,
    is_persistent: bool,
    organization: Organization | None = None,
    upstream: str | None = None,
    issuer: str = "",
) -> tuple[Session, str]:
    """Begin a session that the browser has not had before; return its row and the value of its cookie.

    `methods` name how the user proved who they are, `upstream` is what a federated logout will need, and `issuer` the
    host of the browser as clients know it.
    """
    now, secret, sender = timezone.now(), new_secret(), _sender(ip, user_agent)
    session = Session(
        tenant_id=tenant_id,
        user=user,
        connection=connection,
        digest=digest_of(secret),
        is_persistent=is_persistent,
        authenticated_at=now,
        methods=_proofs(methods, now),
        organization=organization,
        last_interacted_at=now,
        initial_ip=sender["last_ip"],
        initial_user_agent=sender["last_user_agent"],
        issuer=issuer,
        **sender,
    )
    idle, whole = _lifetimes(session)
    session.expires_at = now + whole
    session.idle_expires_at = min(now + idle, session.expires_at)
    session.sealed_upstream = vault.seal(upstream, place=_upstream_place(session)) if upstream else ""
    session.save(force_insert=True)
    return session, secret


def renew_session(session: Session, *, methods: Iterable[str], ip: str | None, user_agent: str, upstream: str | None = None) -> str | None:
    """Note that the user has proven once more who they are; return the new value of the cookie, None if it has ended meanwhile.

    The old value is worth nothing from now on, and the end of the session is not moved.
    """
    now = timezone.now()
    secret = new_secret()
    changes = {"sealed_upstream": vault.seal(upstream, place=_upstream_place(session))} if upstream else {}
    renewed = Session.objects.of(session.tenant_id).filter(pk=session.pk, digest=session.digest)
    count = renewed.update(
        digest=digest_of(secret),
        authenticated_at=now,
        methods=_proofs(methods, now),
        **_sender(ip, user_agent),
        **changes,
        **_touched(session, now),
    )
    if not count:
        return None
    session.refresh_from_db()
    return secret


def find_session(*, tenant_id: str, cookie: str) -> Session | None:
    """Return the session that a cookie stands for, or None: it has ended, its user is blocked, or it is of another tenant.

    Puts off its idle end, at most once a minute.
    """
    if not cookie:
        return None
    now = timezone.now()
    alive = Session.objects.of(tenant_id).filter(digest=digest_of(cookie), expires_at__gt=now, idle_expires_at__gt=now)
    session = alive.select_related("user", "connection", "organization").first()
    # The way of a blocked user ends at the next login, which tells them so.
    if session is None or session.user.blocked:
        return None
    if now - session.last_interacted_at >= _TOUCHED_EVERY:
        for name, value in (touched := _touched(session, now)).items():
            setattr(session, name, value)
        Session.objects.of(tenant_id).filter(pk=session.pk).update(**touched)
    return session


def upstream_of(session: Session) -> str | None:
    """Return what was kept for a federated logout."""
    return vault.unseal(session.sealed_upstream, place=_upstream_place(session)) if session.sealed_upstream else None


def note_client(session: Session, client: Client) -> None:
    """Remember that `client` got tokens in this session: it is told when the session ends. Twice is once."""
    row = SessionClient(tenant_id=session.tenant_id, session=session, client=client)
    SessionClient.objects.of(session.tenant_id).bulk_create([row], ignore_conflicts=True)


@unit_of_work
def end_session(session: Session, *, reason: str) -> None:
    """Delete a session, end the refresh tokens that live with it, and leave a notice to each client that wants to be told.

    `reason` is an initiator of back-channel logouts. A session that has ended meanwhile is left alone: nobody is told twice.
    """
    lock_rows(Session, [session.pk])
    rows = Session.objects.of(session.tenant_id).filter(pk=session.pk)
    if not rows.exists():
        return
    leave_notices(session, reason=reason)
    online = RefreshToken.objects.of(session.tenant_id).filter(sid=session.pk, revoked__isnull=True)
    online.filter(scope__regex=rf"(^| ){_ONLINE_SCOPE}( |$)").update(revoked=timezone.now())
    rows.delete()


def end_sessions_of(*, tenant_id: str, user_id: int, reason: str, except_id: str | None = None) -> int:
    """End every session of a user, but the one that `except_id` names; return how many."""
    sessions = list(Session.objects.of(tenant_id).filter(user_id=user_id).exclude(pk=except_id or "").order_by("pk"))
    for session in sessions:
        end_session(session, reason=reason)
    return len(sessions)


def end_with_user(sender: type[User], instance: User, **_: Any) -> None:
    """Hear that a user is about to be deleted, inside that transaction: the rows would go anyway, but nobody would be told."""
    end_sessions_of(tenant_id=instance.tenant_id, user_id=instance.pk, reason=Initiator.ACCOUNT_DELETED)


def end_with_identity(sender: type[LinkedIdentity], instance: LinkedIdentity, **_: Any) -> None:
    """Hear that a linked identity has been taken off its user, inside that transaction: what was begun through it ends."""
    begun = Session.objects.of(instance.tenant_id).filter(user_id=instance.user_id, connection_id=instance.connection_id)
    for session in begun.select_related("user").order_by("pk"):
        offline = RefreshToken.objects.of(instance.tenant_id).filter(sid=session.pk, revoked__isnull=True)
        end_session(session, reason=Initiator.SESSION_REVOKED)
        offline.update(revoked=timezone.now(), updated=timezone.now())


def end_expired_sessions() -> int:
    """End the sessions of every tenant whose time is over, for ten seconds; return how many. The next run goes on."""
    until = time.monotonic() + _PRUNE_SECONDS
    # The idle end is never after the whole one, so one index finds them.
    over = Session.all_tenants.filter(idle_expires_at__lte=timezone.now()).order_by("idle_expires_at").select_related("user")
    count = 0
    while time.monotonic() < until and (sessions := list(over[:_PRUNED_AT_ONCE])):
        for session in sessions:
            end_session(session, reason=Initiator.SESSION_EXPIRED)
        count += len(sessions)
    return count


def _touched(session: Session, now: datetime) -> dict[str, datetime]:
    idle, _ = _lifetimes(session)
    return {"last_interacted_at": now, "idle_expires_at": min(now + idle, session.expires_at), "updated_at": now}


def _lifetimes(session: Session) -> tuple[timedelta, timedelta]:
    """Return the idle and the whole life of a session, as its tenant wants it now."""
    settings = sign_in_settings(session.tenant_id)
    if session.is_persistent:
        return settings.idle_session_lifetime, settings.session_lifetime
    return settings.idle_ephemeral_session_lifetime, settings.ephemeral_session_lifetime


def _proofs(methods: Iterable[str], now: datetime) -> list[dict[str, str]]:
    return [{"name": name, "timestamp": now.isoformat()} for name in methods]


def _sender(ip: str | None, user_agent: str) -> dict[str, Any]:
    """Return the columns that say who came last."""
    return {"last_ip": stored_address(ip), "last_user_agent": storable(user_agent)[:_LONGEST_AGENT]}


def _upstream_place(session: Session) -> str:
    return f"{session.tenant_id}:session:{session.pk}:upstream"
