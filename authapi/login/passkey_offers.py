"""Decides whether to offer a passkey to a user who has just logged in with a password.

The offer is made once per login. If the user presses "Do not ask in this browser for 30 days", no offer is made there during this time.
"""

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

# Keys in the progress of a login. The first key means that the browser supports passkeys. The second key means that the user has answered
# the offer.
CAN_MAKE, ANSWERED = "can_make_passkeys", "has_answered_passkey"
# Name of the form field in which a script reports that the browser supports passkeys.
FIELD = "can_make_passkeys"
DECLINED = "no_passkey"
# An offer is made only within this time after the login, because another person may be using an older session.
FRESH = timedelta(minutes=10)
_SILENT_FOR = timedelta(days=30)


def offers_passkey(request: HttpRequest, host: HostMatch, session: Session, progress: Mapping[str, Any]) -> bool:
    """Tell whether to offer a passkey. `progress` has the results of the pages for this session."""
    if not (progress.get("has_logged_in") and progress.get(CAN_MAKE)) or progress.get(ANSWERED) or read_cookie(request, DECLINED):
        return False
    is_fresh = timezone.now() - session.authenticated_at <= FRESH and "pwd" in names_of(session.methods)
    return is_fresh and offers_after_login(session.connection) and _has_room(session, party_of(host).id)


def decline_for_a_while(answer: HttpResponse) -> None:
    """Make no offer in this browser for thirty days."""
    set_cookie(answer, DECLINED, "1", seconds=int(_SILENT_FOR.total_seconds()))


def _has_room(session: Session, relying_party: str) -> bool:
    """Tell whether the user has no passkey for this domain and may add a factor."""
    if any(one.relying_party == relying_party for one in factors_of(session.user, (PASSKEY,))):
        return False
    return EnrolledFactor.objects.of(session.tenant_id).filter(user=session.user).count() < MOST_FACTORS
