"""Records the browsers in which users have logged in, and mails the user about a login with a new browser (docs/adr/0117).

Each browser has a cookie with a random value. A row contains the user and the digest of that value, so the cookie of another user proves
nothing. After a change of the password, the service forgets all browsers of the user.
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
# The longest time for which browsers keep a cookie.
LIFE = timedelta(days=400)
_SEEN_EVERY = timedelta(days=1)
# The maximum number of rows of a user. A browser that stores no cookies causes a row for each login, so the oldest rows are deleted.
_MOST_BROWSERS = 100
# An attacker who knows the password could flood the mailbox. More than ten warnings a day do not help the user.
_MOST_MAILS, _MAILS_WITHIN = 10, timedelta(days=1)
_NEW_BROWSER = "new_device"
# Strategies of connections, in addition to databases, whose logins this service verifies itself.
_OWN = ("email", "sms")


@dataclass(frozen=True)
class BrowserLogin:
    """A login and its browser: IP address (`address`), `user_agent`, and `country` as the proxy in front of the service reports it."""

    user: User
    connection: Connection
    client: Client
    address: str
    user_agent: str
    country: str
    issuer: str
    # Whether the browser presented a session of this user. A browser with such a session is not new.
    has_session: bool = False


def browser_secret(request: HttpRequest) -> str:
    """Return the cookie value of this browser, or a new value for a browser without the cookie.

    If the browser has the cookie of the login that it began, the new value is derived from this cookie. So a form that is sent twice gets
    the same value both times and is recorded as one browser.
    """
    mark = read_cookie(request, BROWSER)
    return read_cookie(request, DEVICE) or (digest_of(f"device:{mark}") if mark else new_secret())


def keep_secret(answer: HttpResponse, secret: str) -> None:
    """Set the cookie that contains the value of the browser."""
    set_cookie(answer, DEVICE, secret, seconds=int(LIFE.total_seconds()))


@unit_of_work
def meet(login: BrowserLogin, secret: str) -> bool:
    """Record the browser of a login. Return whether a mail notifies the user of the login.

    No mail is sent in these cases: the browser is known or has a session of the user; it is the first login of the account; the account has
    no email address; the user got `_MOST_MAILS` such mails within a day; or the tenant has switched off the mails for this kind of login.
    Two concurrent requests from one browser cause one mail.
    """
    user, now = login.user, timezone.now()
    digest = digest_of(f"{secret}:{user.lasting_key}")
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
    """Forget all browsers of the user."""
    _rows(user).delete()


def forget_browser(row: KnownBrowser) -> None:
    """Forget one browser. Idempotent."""
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
        description="A mail notifies the user of the login.",
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
