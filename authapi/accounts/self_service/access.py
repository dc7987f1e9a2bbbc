"""Shows a user's sessions and the applications with the user's consent, and lets the user end sessions and withdraw consents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.utils import timezone

from authapi.accounts.access import revoke_session, withdraw_consent
from authapi.accounts.self_service.own_act import OwnAct, own_act
from authapi.models import Client, Consent, RefreshToken, Session
from authapi.tokens.revocation import revoke_refresh_tokens
from identity.models import User

MOST_SHOWN = 100
_LOGGED_OUT = "slo"


@dataclass
class AllowedApplication:
    """An application with the consents that the user has given it, one for each API."""

    client: Client
    consents: list[Consent] = field(default_factory=list)
    last_used_at: datetime | None = None


def sessions_of(user: User) -> Sequence[Session]:
    """Return at most `MOST_SHOWN` active sessions of the user. The most recently used session is first."""
    now = timezone.now()
    alive = Session.objects.of(user.tenant_id).filter(user=user, expires_at__gt=now, idle_expires_at__gt=now)
    return list(alive.select_related("connection").order_by("-last_interacted_at", "pk")[:MOST_SHOWN])


@own_act("Logged out another browser")
def end_own_session(own: OwnAct, user: User, *, session_id: str) -> bool:
    """End another session of the user, and revoke its refresh tokens. Return False for the present session and for an unknown id."""
    session = Session.objects.of(user.tenant_id).filter(user=user, pk=session_id).exclude(pk=own.session.pk).select_related("user").first()
    if session is None:
        return False
    _end(own, session)
    return True


@own_act("Logged out everywhere else")
def end_other_sessions(own: OwnAct, user: User) -> int:
    """End all other sessions, and revoke all refresh tokens issued outside this session. Return the number of ended sessions."""
    others = list(Session.objects.of(user.tenant_id).filter(user=user).exclude(pk=own.session.pk).select_related("user").order_by("pk"))
    for session in others:
        _end(own, session)
    tokens = RefreshToken.objects.of(user.tenant_id).filter(user=user, revoked=None).exclude(sid=own.session.pk)
    revoke_refresh_tokens(tenant_id=user.tenant_id, ids=list(tokens.values_list("wire_id", flat=True)))
    if not others:
        own.record("Logged out everywhere else")
    return len(others)


def _end(own: OwnAct, session: Session) -> None:
    revoke_session(session)
    own.note(_LOGGED_OUT, sid=session.pk)
    own.record("Logged out another browser", session=session.pk)


def applications_of(user: User) -> list[AllowedApplication]:
    """Return the user's consents grouped by application, in the order of the first consent."""
    found: dict[int, AllowedApplication] = {}
    rows = Consent.objects.of(user.tenant_id).filter(user=user).select_related("client").order_by("pk")
    for consent in rows[:MOST_SHOWN]:
        found.setdefault(consent.client_id, AllowedApplication(consent.client)).consents.append(consent)
    tokens = RefreshToken.objects.of(user.tenant_id).filter(user=user, revoked=None, application_id__in=list(found))
    for client_id, used_at, created in tokens.values_list("application_id", "last_exchanged_at", "created"):
        one, moment = found[client_id], used_at or created
        one.last_used_at = max(one.last_used_at or moment, moment)
    return list(found.values())


@own_act("Withdrew the consents to an application")
def take_back(own: OwnAct, user: User, *, client_id: str) -> bool:
    """Withdraw every consent to a client and revoke all refresh tokens of the client for this user.

    Return False if the user has given the client no consent.
    """
    rows = Consent.objects.of(user.tenant_id).filter(user=user, client__client_id=client_id).select_related("client", "user")
    consents = list(rows.order_by("pk"))
    for consent in consents:
        withdraw_consent(consent)
    if consents:
        # This also revokes the client's refresh tokens for APIs for which no consent is stored. For example, a consent may have been
        # withdrawn earlier.
        revoke_refresh_tokens(tenant_id=user.tenant_id, user_id=user.pk, client_id=client_id)
        own.record("Withdrew the consents to an application", client=client_id)
    return bool(consents)
