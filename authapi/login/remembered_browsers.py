"""Browsers in which the second factor is skipped for a while. Each use replaces the secret in the cookie, so that a copied secret becomes
invalid.

The cookie contains one secret, so a browser is remembered for one user at a time.
"""

from __future__ import annotations

from datetime import timedelta

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from authapi.edge.addresses import stored_address
from authapi.login.browser import address_of, user_agent_of
from authapi.login.cookies import drop_cookie, read_cookie, set_cookie
from authapi.models import RememberedBrowser
from foundation.json_values import storable
from foundation.secrets.random_secrets import digest_of, new_secret
from identity.models import User

TRUSTED = "trusted"
# Maximum number of remembered browsers of a user. If a user has more, the oldest browsers require the second factor again.
MOST_BROWSERS = 20
_LONGEST_AGENT = 500


def is_remembered(request: HttpRequest, user: User) -> bool:
    """Tell whether this browser is still remembered for this user, who has proven the second factor in it."""
    secret = read_cookie(request, TRUSTED)
    if not secret:
        return False
    rows = RememberedBrowser.objects.of(user.tenant_id).filter(user=user, digest=digest_of(secret), expires_at__gt=timezone.now())
    return rows.exists()


def renew(request: HttpRequest, answer: HttpResponse, user: User) -> None:
    """Replace the secret of a remembered browser, at a login in which the second factor was skipped. The expiry stays the same.

    If two browsers have the same secret because it was copied, only the browser that logs in first stays remembered. The other browser must
    prove the factor again.
    """
    secret, now = new_secret(), timezone.now()
    rows = RememberedBrowser.objects.of(user.tenant_id).filter(
        user=user, digest=digest_of(read_cookie(request, TRUSTED)), expires_at__gt=now
    )
    ends_at = rows.values_list("expires_at", flat=True).first()
    if ends_at is not None and rows.update(digest=digest_of(secret), last_used_at=now, **_sender(request)):
        set_cookie(answer, TRUSTED, secret, seconds=max(1, int((ends_at - now).total_seconds())))


def remember(request: HttpRequest, answer: HttpResponse, user: User, *, lasting: timedelta) -> None:
    """Skip the second factor for this user in this browser for the time `lasting`."""
    secret, now = new_secret(), timezone.now()
    rows = RememberedBrowser.objects.of(user.tenant_id)
    rows.filter(digest=digest_of(read_cookie(request, TRUSTED))).delete()
    RememberedBrowser(
        tenant_id=user.tenant_id,
        user=user,
        digest=digest_of(secret),
        last_used_at=now,
        expires_at=now + lasting,
        **_sender(request),
    ).save(force_insert=True)
    kept = rows.filter(user=user).order_by("-pk").values_list("pk", flat=True)[:MOST_BROWSERS]
    rows.filter(user=user).exclude(pk__in=list(kept)).delete()
    set_cookie(answer, TRUSTED, secret, seconds=int(lasting.total_seconds()))


def browsers_of(user: User) -> list[RememberedBrowser]:
    """Return the browsers in which the second factor is skipped for a user, newest first."""
    return list(RememberedBrowser.objects.of(user.tenant_id).filter(user=user, expires_at__gt=timezone.now()).order_by("-pk"))


def forget_browser(answer: HttpResponse) -> None:
    """Delete the cookie by which this browser is remembered."""
    drop_cookie(answer, TRUSTED)


def forget_one(browser: RememberedBrowser) -> None:
    """Require the second factor in this browser from now on."""
    RememberedBrowser.objects.of(browser.tenant_id).filter(pk=browser.pk).delete()


def forget_all_browsers(user: User) -> int:
    """Require the second factor in every browser from now on; return the number of browsers that were remembered."""
    return RememberedBrowser.objects.of(user.tenant_id).filter(user=user).delete()[0]


def _sender(request: HttpRequest) -> dict[str, str | None]:
    return {"ip": stored_address(address_of(request)), "user_agent": storable(user_agent_of(request))[:_LONGEST_AGENT]}
