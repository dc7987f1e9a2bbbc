"""Browsers in which staff have logged in before. In these browsers, staff can still log in after many wrong passwords from other browsers.

The cookie is signed and grants no access: it only selects the counter of failed logins.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.conf import settings
from django.core.signing import BadSignature, TimestampSigner
from django.http import HttpRequest, HttpResponse

from identity.models.staff import canonical_email

_LIFE = timedelta(days=90)
_LONGEST = 512
# The cookie names several accounts, because one person can have an account of the platform and accounts of tenants.
_MOST_ACCOUNTS = 4
_SIGNER = TimestampSigner(salt="staff-device")


def cookie_name() -> str:
    """Return the name of the cookie. The `__Host-` prefix stops other hosts of the domain from setting it."""
    return "staff_device" if settings.INSECURE_HTTP else "__Host-staff_device"


def account_mark(email: str) -> str:
    """Return the digest that identifies an account in counters and cookies, in place of the email address, which is private."""
    return hashlib.sha256(canonical_email(email).encode("utf-8", "replace")).hexdigest()[:32]


def known_device(request: HttpRequest | None, email: str) -> str | None:
    """Return the name of the device if the account has logged in with it in the last 90 days, otherwise None."""
    device, accounts = _read(request)
    return device if device and account_mark(email) in accounts else None


def remembered(answer: HttpResponse, request: HttpRequest, email: str) -> HttpResponse:
    """Set the cookie of a device with which the account has just logged in."""
    device, accounts = _read(request)
    mark = account_mark(email)
    kept = [mark, *(account for account in accounts if account != mark)][:_MOST_ACCOUNTS]
    answer.set_cookie(
        cookie_name(),
        _SIGNER.sign(".".join([device or secrets.token_hex(16), *kept])),
        max_age=_LIFE,
        secure=not settings.INSECURE_HTTP,
        httponly=True,
        samesite="Lax",
    )
    return answer


def _read(request: HttpRequest | None) -> tuple[str, list[str]]:
    value = request.COOKIES.get(cookie_name(), "") if request is not None else ""
    if not value or len(value) > _LONGEST:
        return "", []
    try:
        device, *accounts = _SIGNER.unsign(value, max_age=_LIFE).split(".")
    except BadSignature:
        return "", []
    return device, accounts
