"""Whether a person who has just logged in with a password is asked to make a passkey: once in a login, and not against their wish."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from authapi.factors.kinds import PASSKEY
from authapi.factors.passkey_options import offers_after_login
from authapi.factors.relying_party import party_of
from authapi.login.cookies import read_cookie, set_cookie
from authapi.models import Session
from authapi.tokens.contexts import names_of
from identity.factors.user_factors import MOST_FACTORS, factors_of
from identity.hosts import HostMatch
from identity.models import EnrolledFactor

# In the progress of a login: what the browser says it can, and that the person has answered.
CAN_MAKE, ANSWERED = "can_make_passkeys", "has_answered_passkey"
# The form of a login says so in a field that only a script fills in.
FIELD = "can_make_passkeys"
DECLINED = "no_passkey"
# Within so long after the login: an older session may lie open beside another person.
FRESH = timedelta(minutes=10)
_SILENT_FOR = timedelta(days=30)


def offers_passkey(request: HttpRequest, host: HostMatch, session: Session, progress: Mapping[str, Any]) -> bool:
    """Tell whether the offer is due. `progress` is what the pages have found out for this very session."""
    if not (progress.get("has_logged_in") and progress.get(CAN_MAKE)) or progress.get(ANSWERED) or read_cookie(request, DECLINED):
        return False
    is_fresh = timezone.now() - session.authenticated_at <= FRESH and "pwd" in names_of(session.methods)
    return is_fresh and offers_after_login(session.connection) and _has_room(session, party_of(host).id)


def decline_for_a_while(answer: HttpResponse) -> None:
    """Ask in this browser no more, for thirty days."""
    set_cookie(answer, DECLINED, "1", seconds=int(_SILENT_FOR.total_seconds()))


def _has_room(session: Session, relying_party: str) -> bool:
    """Tell whether the user has no passkey for this domain, and may have one more factor."""
    if any(one.relying_party == relying_party for one in factors_of(session.user, (PASSKEY,))):
        return False
    return EnrolledFactor.objects.of(session.tenant_id).filter(user=session.user).count() < MOST_FACTORS
