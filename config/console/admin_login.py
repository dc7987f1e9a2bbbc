"""Login to the admin with email address and password, and the limits of failed logins.

Wrong passwords are counted for each pair of account and IP address, so an attacker with one IP address cannot block
logins from other addresses. Many wrong passwords from many IP addresses lock the account for every device that has never logged in to it.
"""

from __future__ import annotations

import time
from typing import Any

from django.conf import settings
from django.contrib.admin.forms import AdminAuthenticationForm
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from authapi.edge.addresses import customer_of, origin_of
from authapi.edge.throttling import counters
from config.console.staff_account.known_devices import account_mark, known_device
from identity.models import Staff, Tenant

# These limits are constants and not settings: a load test must not switch login protection off.
FAILURES_PER_ACCOUNT_AND_ADDRESS = 10
FAILURES_PER_DEVICE = 10
FAILURES_PER_ADDRESS = 100
# This limit is for all IP addresses together. It limits an attacker who guesses from many IP addresses. A failed login from a known device
# does not count for this limit, and the limit does not refuse logins from known devices.
FAILURES_PER_ACCOUNT = 100
WINDOW_SECONDS = 900
_WRONG = "Wrong email address or password."
_TOO_MANY = "Too many failed attempts. Wait 15 minutes and try again."


class StaffLoginForm(AdminAuthenticationForm):
    """Refuses a login after too many failures of the account or the IP address, even with the right password."""

    def clean(self) -> Any:
        email = self.cleaned_data.get("username") or ""
        if is_shut_out(self.request, email):
            raise ValidationError(_TOO_MANY, code="too_many_attempts")
        try:
            return super().clean()
        except ValidationError:
            count_failure(self.request, email)
            raise

    def get_invalid_login_error(self) -> ValidationError:
        return ValidationError(_WRONG, code="invalid_login")

    def confirm_login_allowed(self, user: Any) -> None:
        """Refuse the admins of a suspended tenant with the message for a wrong password."""
        super().confirm_login_allowed(user)
        if not may_enter(user):
            raise self.get_invalid_login_error()


def may_enter(user: Any) -> bool:
    """Tell whether an account may use the admin: active staff of the platform or of a tenant that is active or draining."""
    if not isinstance(user, Staff) or not user.is_active:
        return False
    return user.tenant is None or user.tenant.status in (Tenant.Status.ACTIVE, Tenant.Status.DRAINING)


def is_shut_out(request: HttpRequest | None, email: str) -> bool:
    """Tell whether the recent failed logins of the account, the IP address or the known device exceed their limits."""
    return any(counters().read(key) >= limit for key, limit in _keys(request, email))


def count_failure(request: HttpRequest | None, email: str) -> None:
    """Count a failed login, at the password or at the second factor. Without an email address, count it only for the IP address."""
    for key, _limit in _keys(request, email):
        counters().increase(key, seconds=WINDOW_SECONDS + 1)


def _keys(request: HttpRequest | None, email: str) -> list[tuple[str, int]]:
    """Return the counters of a login and their limits.

    The keys of the counters contain a digest of the email address, and never the address.
    """
    window = int(time.time()) // WINDOW_SECONDS
    device = known_device(request, email) if email else None
    if device is not None:
        return [(f"staff/device/{device}/{account_mark(email)}/{window}", FAILURES_PER_DEVICE)]
    sent = request.META if request is not None else {}
    origin = origin_of(sent.get("REMOTE_ADDR") or "", sent.get("HTTP_X_FORWARDED_FOR", ""), settings.TRUSTED_PROXIES)
    found = [(f"staff/address/{key.name}/{window}", FAILURES_PER_ADDRESS * key.factor) for key in origin.keys]
    if not email:
        return found
    account = account_mark(email)
    place = customer_of(origin.keys) or "unknown"
    by_place = (f"staff/account/{account}/{place}/{window}", FAILURES_PER_ACCOUNT_AND_ADDRESS)
    return [by_place, (f"staff/account/{account}/{window}", FAILURES_PER_ACCOUNT), *found]
