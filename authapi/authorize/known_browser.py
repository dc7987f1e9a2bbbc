"""The mark of a browser that completed a login. Such a browser has a budget of its own, apart from the one of its address.

A mark is signed and names no user. A missing mark and one that another tenant signed count as none.
"""

from __future__ import annotations

from datetime import timedelta

from django.core.signing import BadSignature, TimestampSigner
from django.http import HttpResponse

from authapi.addresses import AddressKey
from authapi.authorize.cookies import cookie_name, set_cookie
from authapi.random_secrets import new_secret

KNOWN = "known"
_LIFE = timedelta(days=30)
_LONGEST = 128
# Every cookie of a browser that we could have set fits many times over; longer headers are not searched.
_LONGEST_HEADER = 8192


def known_browser(tenant_id: str, cookies: str) -> AddressKey | None:
    """Return the key of the browser behind a `Cookie` header, None where it has completed no login at this tenant of late."""
    value = _value_of(cookies)
    mark = _mark_of(tenant_id, value) if value else None
    return AddressKey(mark) if mark else None


def remember_browser(answer: HttpResponse, tenant_id: str, cookies: str) -> None:
    """Mark the browser that gets this answer: a login was completed in it. A mark that it has stays the same."""
    mark = _mark_of(tenant_id, _value_of(cookies)) or new_secret()
    set_cookie(answer, KNOWN, _signer(tenant_id).sign(mark), seconds=int(_LIFE.total_seconds()))


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
    return TimestampSigner(salt=f"known-browser:{tenant_id}")
