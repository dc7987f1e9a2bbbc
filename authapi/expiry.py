"""A table of the rows that expire, with the time until their deletion and the reason for this time. One task deletes these rows.

Sessions are not in the table: they are ended instead (`end_expired_sessions`), which notifies clients.
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
from identity.stopped_tenants import of_running_tenants

_BATCH = 2000
# The worker stops a task after 20 s. Remaining rows are deleted by the next run.
_LONGEST_SECONDS = 15.0
# How long after its expiry a used code is recognized. If a used code is used again, the tokens that were issued for it are revoked.
_REPLAY_KNOWN = timedelta(hours=24)
# How long the reuse of a rotated or revoked refresh token is recognized.
_REUSE_KNOWN = timedelta(days=30)
# How long after its expiry a mailed link is reported as used or expired instead of unknown.
_LINK_KNOWN = timedelta(days=7)
# How long after its expiry a login link is reported as used or expired. Shorter than for other links, because users request a new login
# link instead of opening an old one again.
_LOGIN_LINK_KNOWN = timedelta(hours=24)
# How long refused messages and results of connection tests are kept. Log lines have a separate retention.
_MESSAGE_KEPT = timedelta(days=7)
# How long administrators see an IP address after its block has ended.
_BLOCK_SHOWN = timedelta(hours=24)
# A browser that has not been used for this time becomes unknown.
_BROWSER_KNOWN = timedelta(days=400)
# How long administrators still see an expired invitation, and its links are reported as ended.
_INVITATION_KEPT = timedelta(days=30)


@dataclass(frozen=True)
class Ending:
    """The expired rows of one table, of all tenants. If `emptied` has columns, these columns are reset and the rows stay."""

    model: type[TenantOwned]
    is_over: Q
    emptied: Mapping[str, Any] | None = None

    def drop_batch(self) -> int:
        """Delete or reset a batch of rows; return the number of rows."""
        with transaction.atomic():
            # One query selects the rows of all running tenants, because expiry depends only on the time. Locked rows are in use, so they
            # are left for the next run.
            over = of_running_tenants(self.model.all_tenants.filter(self.is_over)).order_by("pk").select_for_update(skip_locked=True)
            keys = list(over.values_list("pk", flat=True)[:_BATCH])
            rows = self.model.all_tenants.filter(pk__in=keys)
            if self.emptied is None:
                rows.delete()
            else:
                rows.update(**self.emptied)
        return len(keys)


def drop_ended(*, seconds: float = _LONGEST_SECONDS) -> int:
    """Delete expired rows in small batches for at most `seconds`; return the number of rows. Idempotent.

    Deletes one batch of each table before the second batch of any table, so that a large table does not delay the others.
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
    """Return the table of expiring rows."""

    def over(moment: str, *, kept: timedelta = timedelta(0)) -> Q:
        return Q(**{f"{moment}__lte": now - kept})

    log_days = timedelta(days=settings.SIGN_IN_LOG_DAYS)
    return (
        # After a token has expired, its revocation is no longer needed.
        Ending(RevokedToken, over("expires_at")),
        # After `expires_at`, the assertion is refused because of its age, so the row is no longer needed.
        Ending(UsedAssertion, over("expires_at")),
        Ending(AuthorizationCode, over("expires") & Q(used_at=None) | over("expires", kept=_REPLAY_KNOWN)),
        Ending(LoginTransaction, over("expires_at")),
        # The use of a ticket deletes its row. The rows that expire belong to tickets that were never used.
        Ending(LoginTicket, over("expires_at")),
        Ending(LogoutTransaction, over("expires_at")),
        # The authorization response deletes the pushed request. An expired request is kept for this time, because a login that started
        # before its expiry may take this long.
        Ending(PushedRequest, over("expires_at", kept=timedelta(seconds=settings.AUTHORIZATION_REQUEST_SECONDS))),
        # These rows are kept after their expiry, so that a late request of a device or client still gets the outcome.
        *(Ending(model, over("expires", kept=_REPLAY_KNOWN)) for model in (DeviceGrant, CibaRequest)),
        Ending(AccessToken, over("expires")),
        # A rotated or revoked token is kept for `_REUSE_KNOWN`, so that its reuse is recognized. After its own expiry, it is not kept.
        Ending(RefreshToken, over("expires_at") | over("idle_expires_at") | over("revoked", kept=_REUSE_KNOWN)),
        # Until the leeway ends, the row of a rotated token contains its successor, for a client that did not receive the response.
        Ending(RefreshToken, over("sealed_until"), emptied={"sealed_successor": "", "sealed_until": None}),
        Ending(AccountTicket, over("expires_at", kept=_LINK_KNOWN)),
        Ending(PasswordlessCode, over("expires_at", kept=_LOGIN_LINK_KNOWN)),
        *_of_factors(now),
        Ending(Invitation, over("expires_at", kept=_INVITATION_KEPT)),
        # For this time after its expiry, administrators still see how often an initial access token was used.
        Ending(InitialAccessToken, over("expires_at", kept=_INVITATION_KEPT)),
        *_endings_of_protection(now),
        # A refused message contains data of a user from a provider, so it is kept only long enough to repair a connection.
        Ending(RefusedMessage, over("created_at", kept=_MESSAGE_KEPT)),
        Ending(ConnectionTest, over("expires_at", kept=_MESSAGE_KEPT)),
        Ending(SignIn, over("created_at", kept=log_days)),
        Ending(AdministrativeLine, over("created_at", kept=log_days)),
    )


def _endings_of_protection(now: datetime) -> tuple[Ending, ...]:
    return (
        # After this time, failures are no longer counted, and a block that they caused has ended.
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
        # Enrollments that were started but not confirmed.
        Ending(EnrolledFactor, Q(created_at__lte=now - OPEN_FOR, is_confirmed=False)),
    )
