"""What ends by itself: one table of the rows that go, how long after their end, and why. One task drops them.

Sessions are not in the table: they end (`end_expired_sessions`), and clients are told.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from authapi.accounts.brute_force import MEMORY
from authapi.models import (
    AccessToken,
    AccountTicket,
    AddressBlock,
    AdministrativeLine,
    AuthorizationCode,
    CibaRequest,
    ConnectionTest,
    DeviceGrant,
    FactorChallenge,
    FactorTransaction,
    InitialAccessToken,
    Invitation,
    KnownBrowser,
    LoginFailures,
    LoginTicket,
    LoginTransaction,
    LogoutTransaction,
    PasskeyCeremony,
    PasswordlessCode,
    PushedRequest,
    RefreshToken,
    RefusedMessage,
    RememberedBrowser,
    RevokedToken,
    SignIn,
    UsedAssertion,
)
from identity.factors.user_factors import OPEN_FOR
from identity.models import EnrolledFactor
from identity.models.base import TenantOwned

_BATCH = 2000
# The worker ends a task after 20 s; what is left waits for the next run.
_LONGEST_SECONDS = 15.0
# The replay of a used code ends what came of it for so long after the code's end.
_REPLAY_KNOWN = timedelta(hours=24)
# The reuse of a rotated or revoked refresh token is known for what it is for so long.
_REUSE_KNOWN = timedelta(days=30)
# A mailed link is answered as one that was used or has expired, and not as an unknown one, for so long after its end.
_LINK_KNOWN = timedelta(days=7)
# The same for a link that logs a person in: it is asked for anew, so people do not come back to it later.
_LOGIN_LINK_KNOWN = timedelta(hours=24)
# A refused message, or the answer to a test, is kept beside its line for so long.
_MESSAGE_KEPT = timedelta(days=7)
# Administrators see an address for so long after its block has ended.
_BLOCK_SHOWN = timedelta(hours=24)
# A browser that has not been used for so long is a new one.
_BROWSER_KNOWN = timedelta(days=400)
# Administrators see what became of an invitation, and its links are answered as ended ones, for so long after its end.
_INVITATION_KEPT = timedelta(days=30)


@dataclass(frozen=True)
class Ending:
    """The rows of one table that are over, of every tenant. Where columns are `emptied`, the rows themselves stay."""

    model: type[TenantOwned]
    is_over: Q
    emptied: Mapping[str, Any] | None = None

    def drop_batch(self) -> int:
        """Drop some of the rows; return how many."""
        with transaction.atomic():
            # Bound to the clock and not to a tenant. Locked rows are in use: they are left for the next run.
            over = self.model.all_tenants.filter(self.is_over).order_by("pk").select_for_update(skip_locked=True)
            keys = list(over.values_list("pk", flat=True)[:_BATCH])
            rows = self.model.all_tenants.filter(pk__in=keys)
            if self.emptied is None:
                rows.delete()
            else:
                rows.update(**self.emptied)
        return len(keys)


def drop_ended(*, seconds: float = _LONGEST_SECONDS) -> int:
    """Drop what is over, in small batches and for `seconds` at most; return how many rows went. Running it twice is harmless.

    Tables take turns, so that a long one does not keep the others waiting.
    """
    deadline = time.monotonic() + seconds
    waiting = deque(endings(timezone.now()))
    count = 0
    while waiting and time.monotonic() < deadline:
        ending = waiting.popleft()
        dropped = ending.drop_batch()
        count += dropped
        if dropped == _BATCH:
            waiting.append(ending)
    return count


def endings(now: datetime) -> tuple[Ending, ...]:
    """Return the table."""

    def over(moment: str, *, kept: timedelta = timedelta(0)) -> Q:
        return Q(**{f"{moment}__lte": now - kept})

    log_days = timedelta(days=settings.SIGN_IN_LOG_DAYS)
    return (
        # Once a token has expired, its revocation says nothing more.
        Ending(RevokedToken, over("expires_at")),
        # After this moment an assertion is refused for its age alone.
        Ending(UsedAssertion, over("expires_at")),
        Ending(AuthorizationCode, over("expires") & Q(used_at=None) | over("expires", kept=_REPLAY_KNOWN)),
        Ending(LoginTransaction, over("expires_at")),
        # A ticket that no browser has brought.
        Ending(LoginTicket, over("expires_at")),
        Ending(LogoutTransaction, over("expires_at")),
        # The answer uses it up, and a login that began with it in time may take so long.
        Ending(PushedRequest, over("expires_at", kept=timedelta(seconds=settings.AUTHORIZATION_REQUEST_SECONDS))),
        # A late question of a device or a client, and a late visit to `/activate` or to a link, are told what has become of the request.
        *(Ending(model, over("expires", kept=_REPLAY_KNOWN)) for model in (DeviceGrant, CibaRequest)),
        Ending(AccessToken, over("expires")),
        # A rotated token stays while its family may live, at least for as long as a client could still present it honestly.
        Ending(RefreshToken, over("expires_at") | over("idle_expires_at") | over("revoked", kept=_REUSE_KNOWN)),
        # The successor of a rotated token is kept for answers that were lost, for the leeway only.
        Ending(RefreshToken, over("sealed_until"), emptied={"sealed_successor": "", "sealed_until": None}),
        Ending(AccountTicket, over("expires_at", kept=_LINK_KNOWN)),
        Ending(PasswordlessCode, over("expires_at", kept=_LOGIN_LINK_KNOWN)),
        *_of_factors(now),
        Ending(Invitation, over("expires_at", kept=_INVITATION_KEPT)),
        # Administrators see for a while what became of one.
        Ending(InitialAccessToken, over("expires_at", kept=_INVITATION_KEPT)),
        *_endings_of_protection(now),
        # What a provider says of a user: long enough to mend a connection.
        Ending(RefusedMessage, over("created_at", kept=_MESSAGE_KEPT)),
        Ending(ConnectionTest, over("expires_at", kept=_MESSAGE_KEPT)),
        Ending(SignIn, over("created_at", kept=log_days)),
        Ending(AdministrativeLine, over("created_at", kept=log_days)),
    )


def _endings_of_protection(now: datetime) -> tuple[Ending, ...]:
    return (
        # Older failures count no longer, and the block that they led to has ended.
        Ending(LoginFailures, Q(last_failed_at__lte=now - MEMORY)),
        Ending(AddressBlock, Q(ends_at__lte=now - _BLOCK_SHOWN)),
        Ending(KnownBrowser, Q(last_seen_at__lte=now - _BROWSER_KNOWN)),
    )


def _of_factors(now: datetime) -> tuple[Ending, ...]:
    return (
        Ending(FactorChallenge, Q(expires_at__lte=now)),
        Ending(FactorTransaction, Q(expires_at__lte=now)),
        Ending(PasskeyCeremony, Q(expires_at__lte=now)),
        Ending(RememberedBrowser, Q(expires_at__lte=now)),
        # Enrollments that were begun and not confirmed.
        Ending(EnrolledFactor, Q(created_at__lte=now - OPEN_FOR, is_confirmed=False)),
    )
