"""Taking back single access tokens, and dropping what has expired by itself."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from authapi.models import (
    AccessToken,
    AccountTicket,
    AdministrativeLine,
    AuthorizationCode,
    ConnectionTest,
    DeviceGrant,
    LoginFailures,
    LoginTransaction,
    LogoutTransaction,
    RefreshToken,
    RefusedMessage,
    RevokedToken,
    SignIn,
    UsedAssertion,
)
from authapi.models.base import UnrecordedOwned

_BATCH = 2000
# The worker ends a task after 20 s; what is left waits for the next run.
_LONGEST_SECONDS = 15.0
# A used code is known for so long after its end, so that its replay still ends what came of it.
_REPLAY_KNOWN = timedelta(hours=24)
# So long after it was rotated or revoked, the reuse of a refresh token is still known for what it is.
_REUSE_KNOWN = timedelta(days=30)
# Contract, 9.8: failures count no longer, and a block ends.
_FAILURES_COUNT = timedelta(days=30)


def revoke_access_token(*, tenant_id: str, jti: str, expires_at: datetime) -> None:
    """End one access token; doing it twice is harmless."""
    RevokedToken.all_tenants.get_or_create(tenant_id=tenant_id, jti=jti, defaults={"expires_at": expires_at})


def forget_successors() -> int:
    """Drop the successors of every tenant that are kept no longer; return how many."""
    over = RefreshToken.all_tenants.filter(sealed_until__lte=timezone.now())
    return over.update(sealed_successor="", sealed_until=None)


def prune_expired(*, seconds: float = _LONGEST_SECONDS) -> int:
    """Drop what says nothing any more, of every tenant, in small batches and for `seconds` at most; return how many rows went.

    Sessions are not among it: they end (`end_expired_sessions`), and clients are told.
    """
    deadline = time.monotonic() + seconds
    count = 0
    for model, is_over in _over(timezone.now()).items():
        while time.monotonic() < deadline:
            dropped = _drop_batch(model, is_over)
            count += dropped
            if dropped < _BATCH:
                break
    return count


def _over(now: datetime) -> dict[type[UnrecordedOwned], Q]:
    """Return which rows of each table are over. Bound to the clock and not to a tenant."""
    is_ended = Q(expires_at__lt=now) | Q(idle_expires_at__lt=now) | Q(revoked__lt=now - _REUSE_KNOWN)
    return {
        RevokedToken: Q(expires_at__lt=now),
        UsedAssertion: Q(expires_at__lt=now),
        AuthorizationCode: Q(expires__lt=now - _REPLAY_KNOWN) | Q(expires__lt=now, used_at=None),
        LoginTransaction: Q(expires_at__lt=now),
        LogoutTransaction: Q(expires_at__lt=now),
        DeviceGrant: Q(expires__lt=now),
        AccessToken: Q(expires__lt=now),
        # A rotated one stays while its family may live, at least for as long as anybody could still present it honestly.
        RefreshToken: is_ended,
        AccountTicket: Q(expires_at__lt=now),
        LoginFailures: Q(last_failed_at__lt=now - _FAILURES_COUNT),
        SignIn: Q(created_at__lt=now - timedelta(days=settings.SIGN_IN_LOG_DAYS)),
        # What a provider says of a user: long enough to mend a connection.
        RefusedMessage: Q(created_at__lt=now - timedelta(days=7)),
        ConnectionTest: Q(expires_at__lt=now - timedelta(days=7)),
        AdministrativeLine: Q(created_at__lt=now - timedelta(days=settings.SIGN_IN_LOG_DAYS)),
    }


def _drop_batch(model: type[UnrecordedOwned], is_over: Q) -> int:
    with transaction.atomic():
        # Locked rows are in use: they are left for the next run.
        rows = model.all_tenants.filter(is_over).order_by("pk").select_for_update(skip_locked=True)[:_BATCH]
        return model.all_tenants.filter(pk__in=list(rows.values_list("pk", flat=True))).delete()[0]
