"""Signing in to the admin: e-mail and password, with failures counted per account and address, and per device that is known.

Wrong passwords count for the address that sends them, so one attacker cannot lock a person out. Many wrong passwords from many
addresses close the account to devices that have never signed in to it.
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

# Login protection is never switched off, so these are no settings of load tests.
FAILURES_PER_ACCOUNT_AND_ADDRESS = 10
FAILURES_PER_DEVICE = 10
FAILURES_PER_ADDRESS = 100
# Over all addresses: guessing from many of them ends here. Known devices are not counted and not stopped.
FAILURES_PER_ACCOUNT = 100
WINDOW_SECONDS = 900
_TOO_MANY = "Too many failed attempts. Wait a quarter of an hour and try again."


class StaffLoginForm(AdminAuthenticationForm):
    """Refuses an account at an address, and an address, after too many failures, the right password included."""

    def clean(self) -> Any:
        email = self.cleaned_data.get("username") or ""
        if is_shut_out(self.request, email):
            raise ValidationError(_TOO_MANY, code="too_many_attempts")
        try:
            return super().clean()
        except ValidationError:
            count_failure(self.request, email)
            raise

    def confirm_login_allowed(self, user: Any) -> None:
        """Refuse the admins of a suspended tenant with the sentence that everybody else gets."""
        super().confirm_login_allowed(user)
        if not may_enter(user):
            raise self.get_invalid_login_error()


def may_enter(user: Any) -> bool:
    """Tell whether an account may use the admin: active staff of no tenant or of one that is neither suspended nor on its way out."""
    if not isinstance(user, Staff) or not user.is_active:
        return False
    return user.tenant is None or user.tenant.status in (Tenant.Status.ACTIVE, Tenant.Status.DRAINING)


def is_shut_out(request: HttpRequest | None, email: str) -> bool:
    """Tell whether too many sign-ins of the account from here, from the address, or from the known device have failed of late."""
    return any(counters().read(key) >= limit for key, limit in _keys(request, email))


def count_failure(request: HttpRequest | None, email: str) -> None:
    """Count a sign-in that failed, at its password or at its factor; without an account for the address alone."""
    for key, _limit in _keys(request, email):
        counters().increase(key, seconds=WINDOW_SECONDS + 1)


def _keys(request: HttpRequest | None, email: str) -> list[tuple[str, int]]:
    """Return the counters of an attempt and their limits. An account stands there as a digest."""
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
