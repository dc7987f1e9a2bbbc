"""Browsers that are spared the second factor for a while. Each use gives the browser another secret, and ends that of a copy.

A cookie holds one secret, so a browser is remembered for one user at a time.
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
# The newest ones stay; an old browser that is not among them asks once more.
MOST_BROWSERS = 20
_LONGEST_AGENT = 500


def is_remembered(request: HttpRequest, user: User) -> bool:
    """Tell whether this user has passed the second factor in this browser, and it is still remembered."""
    secret = read_cookie(request, TRUSTED)
    if not secret:
        return False
    rows = RememberedBrowser.objects.of(user.tenant_id).filter(user=user, digest=digest_of(secret), expires_at__gt=timezone.now())
    return rows.exists()


def renew(request: HttpRequest, answer: HttpResponse, user: User) -> None:
    """Give a remembered browser another secret, at a login that it was spared a factor in. The end does not move.

    Of two copies of a secret the first one that logs in keeps its standing; the other browser is asked for the factor.
    """
    secret, now = new_secret(), timezone.now()
    rows = RememberedBrowser.objects.of(user.tenant_id).filter(
        user=user, digest=digest_of(read_cookie(request, TRUSTED)), expires_at__gt=now
    )
    ends_at = rows.values_list("expires_at", flat=True).first()
    if ends_at is not None and rows.update(digest=digest_of(secret), last_used_at=now, **_sender(request)):
        set_cookie(answer, TRUSTED, secret, seconds=max(1, int((ends_at - now).total_seconds())))


def remember(request: HttpRequest, answer: HttpResponse, user: User, *, lasting: timedelta) -> None:
    """Spare this user the second factor in this browser from now on, for so long."""
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
    """Return the browsers in which a user is spared the second factor, the newest first."""
    return list(RememberedBrowser.objects.of(user.tenant_id).filter(user=user, expires_at__gt=timezone.now()).order_by("-pk"))


def forget_browser(answer: HttpResponse) -> None:
    """Make this browser forget that it was remembered."""
    drop_cookie(answer, TRUSTED)


def forget_one(browser: RememberedBrowser) -> None:
    """Ask for the second factor in this browser from now on."""
    RememberedBrowser.objects.of(browser.tenant_id).filter(pk=browser.pk).delete()


def forget_all_browsers(user: User) -> int:
    """Ask for the second factor in every browser from now on; return how many were remembered."""
    return RememberedBrowser.objects.of(user.tenant_id).filter(user=user).delete()[0]


def _sender(request: HttpRequest) -> dict[str, str | None]:
    return {"ip": stored_address(address_of(request)), "user_agent": storable(user_agent_of(request))[:_LONGEST_AGENT]}
