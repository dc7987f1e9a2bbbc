"""Keeps an entered token, sealed, in the session of the staff account while other fields of the form have errors.

The token is never shown and never used for another account, tenant or setup. It is deleted when the form is saved. A token that is older
than `KEPT_SECONDS` is not used.
"""

from __future__ import annotations

import time

from django.http import HttpRequest

from foundation.secrets import vault
from identity.admin.scope import staff_of

_NAME = "kept_token"
KEPT_SECONDS = 900


def keep(request: HttpRequest, token: str, *, tenant_id: str, setup: str) -> None:
    """Keep the token for the next time that this account sends the form of this setup."""
    place = _place(request, tenant_id, setup)
    request.session[_NAME] = {"place": place, "sealed": vault.seal(token, place=place), "at": int(time.time())}


def kept(request: HttpRequest, *, tenant_id: str, setup: str) -> str:
    """Return the kept token of this account and setup; empty if no token is kept or if the token is too old."""
    found = request.session.get(_NAME)
    place = _place(request, tenant_id, setup)
    if not isinstance(found, dict) or found.get("place") != place or time.time() - found["at"] > KEPT_SECONDS:
        return ""
    try:
        return vault.unseal(found["sealed"], place=place)
    except vault.SecretUnreadable:
        return ""


def forget(request: HttpRequest) -> None:
    """Forget the kept token."""
    request.session.pop(_NAME, None)


def _place(request: HttpRequest, tenant_id: str, setup: str) -> str:
    staff = staff_of(request)
    return f"admin:connect:{'' if staff is None else staff.pk}:{tenant_id}:{setup}"
