"""The mark of a browser in which a login was completed: a signed cookie.

All browsers of an account share one rate limit, separate from the rate limits of IP addresses. The signed mark contains a keyed digest of
the account. If each login set a random mark instead, one account could get an unlimited number of rate limits. A mark that another tenant
signed is ignored.
"""

from __future__ import annotations

import hmac
from datetime import timedelta

from django.core.signing import BadSignature, TimestampSigner
from django.http import HttpResponse
from django.utils.crypto import salted_hmac

from authapi.edge.addresses import AddressKey
from authapi.login.cookies import cookie_name, set_cookie
from identity.models import User

KNOWN = "known"
_LIFE = timedelta(days=30)
_LONGEST = 128
# The maximum length of a `Cookie` header that is searched. All cookies of this service together are shorter.
_LONGEST_HEADER = 8192


def known_browser(tenant_id: str, cookies: str) -> AddressKey | None:
    """Return the key under which requests from the browser of this `Cookie` header are counted. Return None for an unknown browser.

    All browsers in which the same user has recently logged in have the same key.
    """
    value = _value_of(cookies)
    mark = _mark_of(tenant_id, value) if value else None
    return AddressKey(mark) if mark else None


def is_known_to(user: User, browser: AddressKey | None) -> bool:
    """Tell whether `browser`, a key from `known_browser`, belongs to a browser in which this user has completed a login."""
    return browser is not None and hmac.compare_digest(browser.name, _mark_for(user))


def remember_browser(answer: HttpResponse, user: User) -> None:
    """Mark the browser that gets this response as a browser in which the user has completed a login."""
    set_cookie(answer, KNOWN, _signer(user.tenant_id).sign(_mark_for(user)), seconds=int(_LIFE.total_seconds()))


def _mark_for(user: User) -> str:
    return salted_hmac("authapi.known-browser", f"{user.tenant_id}/{user.lasting_key}", algorithm="sha256").hexdigest()


def _value_of(cookies: str) -> str:
    name = f"{cookie_name(KNOWN)}="
    if len(cookies) > _LONGEST_HEADER or name not in cookies:
        return ""
    values = [part.strip().removeprefix(name) for part in cookies.split(";") if part.strip().startswith(name)]
    return values[0].strip('"') if len(values) == 1 and len(values[0]) <= _LONGEST else ""


def _mark_of(tenant_id: str, value: str) -> str | None:
    try:
        return _signer(tenant_id).unsign(value, max_age=_LIFE) if value else None
    except BadSignature:
        return None


def _signer(tenant_id: str) -> TimestampSigner:
    return TimestampSigner(salt=f"known-account:{tenant_id}")
