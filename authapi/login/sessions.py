"""Sessions of end users. A login begins a session, and a cookie identifies it. A logout, an administrator or the expiry ends it."""

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
from foundation.tenancy import GuardedQuerySet
from identity.models import Connection, Organization, User
from identity.stopped_tenants import of_running_tenants

# The shortest time between two writes of the last use of a session.
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
    """Begin a new session. Return its row and the value of its cookie.

    `methods` name how the user logged in. `upstream` is the data that a federated logout needs. `issuer` is the issuer that clients of this
    session expect. `country` is the country that the proxy in front of the service reports; empty if unknown.
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
    session.sealed_upstream = vault.seal(upstream, place=upstream_place(session)) if upstream else ""
    session.save(force_insert=True)
    return session, secret


def renew_session(
    session: Session, *, methods: Iterable[str], ip: str | None, user_agent: str, upstream: str | None = None, country: str = ""
) -> str | None:
    """Record that the user has logged in again. Return the new cookie value, None if the session has ended in the meantime.

    The old value becomes invalid. The login extends the idle expiry of the session, but not its absolute expiry.
    """
    now = timezone.now()
    secret = new_secret()
    changes = {"sealed_upstream": vault.seal(upstream, place=upstream_place(session))} if upstream else {}
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
    """Record that the user has proven another factor. Return the new cookie value, None if the session has ended in the meantime.

    The time of the login stays unchanged: a factor alone, such as a security key that lies next to the keyboard, must not count as a new
    login. The old cookie becomes invalid, so that a cookie that an attacker planted after the first factor is useless (session fixation).
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
    """Return the session of a cookie.

    Return None if the session has ended, if its user is blocked, or if the session belongs to another tenant. Extends the idle expiry, at
    most once a minute.
    """
    if not cookie:
        return None
    now = timezone.now()
    alive = Session.objects.of(tenant_id).filter(digest=digest_of(cookie), expires_at__gt=now, idle_expires_at__gt=now)
    session = alive.select_related("user", "connection", "organization").first()
    # A blocked user must log in again. The login then reports the block.
    if session is None or session.user.blocked:
        return None
    if now - session.last_interacted_at >= _TOUCHED_EVERY:
        for name, value in (touched := _touched(session, now)).items():
            setattr(session, name, value)
        Session.objects.of(tenant_id).filter(pk=session.pk).update(**touched)
    return session


def upstream_of(session: Session) -> str | None:
    """Return the data that a federated logout needs."""
    return vault.unseal(session.sealed_upstream, place=upstream_place(session)) if session.sealed_upstream else None


def note_client(session: Session, client: Client, *, protocol: str, state: Mapping[str, Any] | None = None) -> None:
    """Record that `client` got an answer in this session, so that the protocol notifies the client when the session ends. Idempotent.

    `state` is JSON that only the protocol reads; it is in the `Participant` that `end_session` gets. A newer state replaces an older state.
    """
    row = SessionClient(tenant_id=session.tenant_id, session=session, client=client, protocol=protocol)
    rows = SessionClient.objects.of(session.tenant_id)
    if state is None:
        rows.bulk_create([row], ignore_conflicts=True)
        return
    row.sealed_state = vault.seal(orjson.dumps(dict(state)).decode(), place=participant_place(row))
    rows.bulk_create([row], update_conflicts=True, unique_fields=["session", "client", "protocol"], update_fields=["sealed_state"])


def participant(session: Session, client: Client, *, protocol: str) -> Participant | None:
    """Return the state that a protocol has stored about a client in this session.

    Return None if the client is no participant of the session.
    """
    row = SessionClient.objects.of(session.tenant_id).filter(session=session, client=client, protocol=protocol).first()
    return None if row is None else Participant(client, _participant_state(row))


def drop_client(session: Session, client: Client, *, protocol: str) -> None:
    """Remove a client from the session: the client has ended its own login, so it is not notified when the session ends."""
    SessionClient.objects.of(session.tenant_id).filter(session=session, client=client, protocol=protocol).delete()


@unit_of_work
def end_session(session: Session, *, reason: str, browser_handle: str = "") -> list[RoundTrip]:
    """Delete a session and have each protocol notify its participants. Return the participants that the browser must visit.

    `reason` says what ended the session: a value of `Initiator`. `browser_handle` is the handle with which participants send a browser
    back, empty without a browser. Does nothing for a session that has already ended, so that no participant is notified twice.
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
    """End every session of a user except the session `except_id`. Return the number of ended sessions."""
    sessions = list(Session.objects.of(tenant_id).filter(user_id=user_id).exclude(pk=except_id or "").order_by("pk"))
    for session in sessions:
        end_session(session, reason=reason)
    return len(sessions)


def end_with_user(sender: type[User], instance: User, origin: Any = None, **_: Any) -> None:
    """End the sessions of a user in the transaction that deletes the user. A cascade would notify no participant."""
    if isinstance(origin, GuardedQuerySet) and origin.model is User:
        # `end_with_users` has ended the sessions of all users of this query set.
        return
    end_sessions_of(tenant_id=instance.tenant_id, user_id=instance.pk, reason=Initiator.ACCOUNT_DELETED)


def end_with_users(sender: type[User], rows: Iterable[User], **_: Any) -> None:
    """End the sessions of users that are deleted together, with one query per tenant that finds the sessions."""
    users: dict[str, list[int]] = {}
    for user in rows:
        users.setdefault(user.tenant_id, []).append(user.pk)
    for tenant_id, keys in users.items():
        for session in Session.objects.of(tenant_id).filter(user__in=keys).order_by("pk"):
            end_session(session, reason=Initiator.ACCOUNT_DELETED)


def end_expired_sessions() -> int:
    """End expired sessions of all tenants, for at most ten seconds; the next run continues. Return the number of ended sessions."""
    until = time.monotonic() + _PRUNE_SECONDS
    # The idle expiry is never after the absolute expiry, so this condition on the idle expiry finds all expired sessions.
    over = of_running_tenants(Session.all_tenants.filter(idle_expires_at__lte=timezone.now()))
    over = over.order_by("idle_expires_at").select_related("user")
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
    """Return the idle and the absolute lifetime of a session by the current settings of its tenant."""
    settings = sign_in_settings(session.tenant_id)
    if session.is_persistent:
        return settings.idle_session_lifetime, settings.session_lifetime
    return settings.idle_ephemeral_session_lifetime, settings.ephemeral_session_lifetime


def _proofs(methods: Iterable[str], now: datetime) -> list[dict[str, str]]:
    return [{"name": name, "timestamp": now.isoformat()} for name in methods]


def _sender(ip: str | None, user_agent: str, country: str) -> dict[str, Any]:
    """Return the columns that describe the last login in the session: IP address, user agent and country."""
    return {"last_ip": stored_address(ip), "last_user_agent": storable(user_agent)[:_LONGEST_AGENT], "last_country": country}


def upstream_place(session: Session) -> str:
    return f"{session.tenant_id}:session:{session.pk}:upstream"


def _participants(session: Session) -> dict[str, list[Participant]]:
    """Return the participants of a session, grouped by the name of their protocol, in the order of their first answers."""
    found: dict[str, list[Participant]] = {}
    for row in session.session_clients.select_related("client"):
        found.setdefault(row.protocol, []).append(Participant(row.client, _participant_state(row)))
    return found


def _participant_state(row: SessionClient) -> dict[str, Any]:
    state: dict[str, Any] = orjson.loads(vault.unseal(row.sealed_state, place=participant_place(row))) if row.sealed_state else {}
    return state


def participant_place(row: SessionClient) -> str:
    return f"{row.tenant_id}:session:{row.session_id}:participant:{row.client_id}:{row.protocol}"
