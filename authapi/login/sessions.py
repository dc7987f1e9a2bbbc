"""Sessions of end users: begun at a login, found by their cookie, ended by a logout, an administrator or the clock."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.utils import timezone

from authapi.edge.addresses import stored_address
from authapi.login.protocol import Participant, RoundTrip, SessionEnd, protocols
from authapi.models import Client, Initiator, Session, SessionClient
from authapi.tenant_settings import sign_in_settings
from foundation.database.transactions import lock_rows, unit_of_work
from foundation.json_values import storable
from foundation.secrets import vault
from foundation.secrets.random_secrets import digest_of, new_secret
from identity.models import Connection, Organization, User

# A session that is in use is written to this often and no oftener.
_TOUCHED_EVERY = timedelta(minutes=1)
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
    country: str = "",
) -> tuple[Session, str]:
    """Begin a session that the browser has not had before; return its row and the value of its cookie.

    `methods` name how the user proved who they are, `upstream` is what a federated logout will need, `issuer` the host of the
    browser as clients know it, and `country` where the edge saw the browser, empty where it has not told.
    """
    now, secret, sender = timezone.now(), new_secret(), _sender(ip, user_agent, country)
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
    session.expires_at, session.idle_expires_at = now + whole, now + min(idle, whole)
    session.sealed_upstream = vault.seal(upstream, place=_upstream_place(session)) if upstream else ""
    session.save(force_insert=True)
    return session, secret


def renew_session(
    session: Session, *, methods: Iterable[str], ip: str | None, user_agent: str, upstream: str | None = None, country: str = ""
) -> str | None:
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
        **_sender(ip, user_agent, country),
        **changes,
        **_touched(session, now),
    )
    if not count:
        return None
    session.refresh_from_db()
    return secret


def add_proof(session: Session, methods: Iterable[str]) -> str | None:
    """Note that the user has proven a further factor; return the new value of the cookie, None if the session has ended meanwhile.

    The time of the login stays: a factor alone, which may lie beside the keyboard, renews nothing. The old cookie is worth nothing from
    now on, so that one that was planted between the two steps opens nothing (session fixation).
    """
    secret, now = new_secret(), timezone.now()
    present = list(session.methods)
    named = {str(method["name"]) for method in present}
    session_rows = Session.objects.of(session.tenant_id).filter(pk=session.pk, digest=session.digest)
    added = [*present, *(proof for proof in _proofs(methods, now) if proof["name"] not in named)]
    if not session_rows.update(digest=digest_of(secret), methods=added, **_touched(session, now)):
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


def note_client(session: Session, client: Client, *, protocol: str, state: Mapping[str, Any] | None = None) -> None:
    """Remember that `client` was answered in this session: its protocol tells it when the session ends. Twice is once.

    `state` is JSON of the protocol's own, which `end_session` gives back; a newer one takes the place of an older one.
    """
    row = SessionClient(tenant_id=session.tenant_id, session=session, client=client, protocol=protocol)
    rows = SessionClient.objects.of(session.tenant_id)
    if state is None:
        rows.bulk_create([row], ignore_conflicts=True)
        return
    row.sealed_state = vault.seal(orjson.dumps(dict(state)).decode(), place=_participant_place(row))
    rows.bulk_create([row], update_conflicts=True, unique_fields=["session", "client", "protocol"], update_fields=["sealed_state"])


def participant(session: Session, client: Client, *, protocol: str) -> Participant | None:
    """Return what a protocol has noted about a client in this session, None where the client does not take part."""
    row = SessionClient.objects.of(session.tenant_id).filter(session=session, client=client, protocol=protocol).first()
    return None if row is None else Participant(client, _participant_state(row))


def drop_client(session: Session, client: Client, *, protocol: str) -> None:
    """Forget that a client takes part by this protocol: it has ended its own login, and is not told of the end."""
    SessionClient.objects.of(session.tenant_id).filter(session=session, client=client, protocol=protocol).delete()


@unit_of_work
def end_session(session: Session, *, reason: str, browser_handle: str = "") -> list[RoundTrip]:
    """Delete a session, and have each protocol tell its participants; return those that only the browser can tell.

    `reason` is an initiator of logouts, and `browser_handle` what a participant sends the browser back with, where there is one. A
    session that has ended meanwhile is left alone, so that no participant is told twice.
    """
    lock_rows(Session, [session.pk])
    rows = Session.objects.of(session.tenant_id).filter(pk=session.pk)
    if not rows.exists():
        return []
    participants = _participants(session)
    round_trips: list[RoundTrip] = []
    for protocol in protocols():
        ending = SessionEnd(session, participants.get(protocol.name, []), reason, browser_handle)
        round_trips.extend(protocol.end_session(ending))
    rows.delete()
    return round_trips


def end_sessions_of(*, tenant_id: str, user_id: int, reason: str, except_id: str | None = None) -> int:
    """End every session of a user, but the one that `except_id` names; return how many."""
    sessions = list(Session.objects.of(tenant_id).filter(user_id=user_id).exclude(pk=except_id or "").order_by("pk"))
    for session in sessions:
        end_session(session, reason=reason)
    return len(sessions)


def end_with_user(sender: type[User], instance: User, **_: Any) -> None:
    """Hear that a user is about to be deleted, inside that transaction: the rows would go anyway, but no participant would be told."""
    end_sessions_of(tenant_id=instance.tenant_id, user_id=instance.pk, reason=Initiator.ACCOUNT_DELETED)


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


def _sender(ip: str | None, user_agent: str, country: str) -> dict[str, Any]:
    """Return the columns that say who came last."""
    return {"last_ip": stored_address(ip), "last_user_agent": storable(user_agent)[:_LONGEST_AGENT], "last_country": country}


def _upstream_place(session: Session) -> str:
    return f"{session.tenant_id}:session:{session.pk}:upstream"


def _participants(session: Session) -> dict[str, list[Participant]]:
    """Return the participants of a session by the name of their protocol, in the order in which they came."""
    found: dict[str, list[Participant]] = {}
    for row in session.session_clients.select_related("client"):
        found.setdefault(row.protocol, []).append(Participant(row.client, _participant_state(row)))
    return found


def _participant_state(row: SessionClient) -> dict[str, Any]:
    state: dict[str, Any] = orjson.loads(vault.unseal(row.sealed_state, place=_participant_place(row))) if row.sealed_state else {}
    return state


def _participant_place(row: SessionClient) -> str:
    return f"{row.tenant_id}:session:{row.session_id}:participant:{row.client_id}:{row.protocol}"
