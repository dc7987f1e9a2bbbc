"""Browsers in which users have logged in, and the mail about a login with another one (docs/adr/0117).

Each browser has a cookie of its own with a random value. A row holds the digest of that value and of the user, so the cookie of another
user proves nothing here. A new password forgets every browser of its user.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.db import models
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from authapi.login.browser_words import browser_in
from authapi.login.cookies import BROWSER, read_cookie, set_cookie
from authapi.models import Client, KnownBrowser
from authapi.services import sign_in_log
from authapi.services.security_mail_jobs import start_new_device_mail
from authapi.tenant_settings import sign_in_settings
from foundation.database.transactions import unit_of_work
from foundation.secrets.random_secrets import digest_of, new_secret
from identity.models import Connection, User

DEVICE = "device"
# As long as browsers keep a cookie at most.
LIFE = timedelta(days=400)
_SEEN_EVERY = timedelta(days=1)
# Programs log in without a cookie again and again; older rows of such a user go.
_MOST_BROWSERS = 100
# An attacker who knows the password could fill the mailbox. After ten warnings in a day another one warns of nothing new.
_MOST_MAILS, _MAILS_WITHIN = 10, timedelta(days=1)
_NEW_BROWSER = "new_device"
# Connections whose logins this service proves itself, beside databases.
_OWN = ("email", "sms")


@dataclass(frozen=True)
class BrowserLogin:
    """A user who has just logged in, and with what: `address` and `user_agent` of the browser, `country` where the edge told it."""

    user: User
    connection: Connection
    client: Client
    address: str
    user_agent: str
    country: str
    issuer: str
    # The browser has shown a session of this user: it has logged in before.
    has_session: bool = False


def browser_secret(request: HttpRequest) -> str:
    """Return the value of the cookie of this browser, a new one where it has none.

    A new one follows from the mark of the browser that began the login, where there is one: a form that is sent twice is one browser.
    """
    mark = read_cookie(request, BROWSER)
    return read_cookie(request, DEVICE) or (digest_of(f"device:{mark}") if mark else new_secret())


def keep_secret(answer: HttpResponse, secret: str) -> None:
    """Have the browser keep its value."""
    set_cookie(answer, DEVICE, secret, seconds=int(LIFE.total_seconds()))


@unit_of_work
def meet(login: BrowserLogin, secret: str) -> bool:
    """Remember the browser of a login; return whether the user is told of it by mail.

    The first login of an account is not told, nor one whose browser is known. Two requests at once with one value are told once.
    """
    user, now = login.user, timezone.now()
    digest = digest_of(f"{secret}:{user.pk}")
    row, is_new = KnownBrowser.objects.of(user.tenant_id).get_or_create(
        user=user, digest=digest, defaults={"tenant_id": user.tenant_id, "created_at": now, "last_seen_at": now}
    )
    if not is_new:
        if now - row.last_seen_at >= _SEEN_EVERY:
            _rows(user).filter(pk=row.pk).update(last_seen_at=now)
        return False
    _drop_oldest(user)
    if not _is_told(login):
        return False
    _rows(user).filter(pk=row.pk).update(told_at=now)
    _tell(login)
    return True


def forget_browsers(user: User) -> None:
    """Know no browser of the user any more."""
    _rows(user).delete()


def forget_browser(row: KnownBrowser) -> None:
    """Know one browser no more. Twice is harmless."""
    KnownBrowser.objects.of(row.tenant_id).filter(pk=row.pk).delete()


def _is_told(login: BrowserLogin) -> bool:
    user = login.user
    wanted = sign_in_settings(user.tenant_id).new_device_mails
    is_own = login.connection.is_database or login.connection.strategy in _OWN
    if wanted == "off" or (wanted == "own" and not is_own):
        return False
    if not user.email or user.logins_count <= 1 or login.has_session:
        return False
    return _rows(user).filter(told_at__gt=timezone.now() - _MAILS_WITHIN).count() < _MOST_MAILS


def _tell(login: BrowserLogin) -> None:
    told: Mapping[str, str] = {"country": login.country, **browser_in(login.user_agent)}
    sign_in_log.note(
        tenant_id=login.user.tenant_id,
        type=_NEW_BROWSER,
        is_success=True,
        description="The user is told of the login by mail.",
        user=login.user,
        client=login.client,
        connection=login.connection.name,
        ip=login.address,
        user_agent=login.user_agent,
        details={name: value for name, value in told.items() if value},
    )
    start_new_device_mail(user=login.user, client=login.client, ip=login.address, address=login.issuer.rstrip("/"), login=told)


def _drop_oldest(user: User) -> None:
    kept = _rows(user).order_by("-last_seen_at", "-pk").values_list("pk", flat=True)
    surplus = list(kept[_MOST_BROWSERS : 2 * _MOST_BROWSERS])
    if surplus:
        _rows(user).filter(pk__in=surplus).delete()


def _rows(user: User) -> models.QuerySet[KnownBrowser]:
    return KnownBrowser.objects.of(user.tenant_id).filter(user=user)
