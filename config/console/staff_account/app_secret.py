"""The secret of an authenticator app on its way to be enrolled: kept sealed in the session, shown as a QR code."""

from __future__ import annotations

import segno
from django.conf import settings
from django.http import HttpRequest
from django.utils.safestring import SafeString, mark_safe

from foundation.secrets import totp, vault
from identity.models import Staff

_KEY = "app_secret"


def kept(request: HttpRequest, staff: Staff) -> str:
    """Return the secret of this session, a new one where there is none: a second look at the page shows the same picture."""
    sealed = request.session.get(_KEY)
    if sealed:
        try:
            return vault.unseal(sealed, place=_place(staff))
        except vault.SecretUnreadable:
            # It was another account's, or its key is gone.
            forget(request)
    secret = totp.new_secret()
    request.session[_KEY] = vault.seal(secret, place=_place(staff))
    return secret


def forget(request: HttpRequest) -> None:
    request.session.pop(_KEY, None)


def picture_of(secret: str, staff: Staff) -> SafeString:
    """Return the QR code as SVG without script and style: dark on white in every scheme, as cameras want it."""
    address = totp.enrolment_address(secret, issuer=f"Identity {settings.PLATFORM_HOST}", account=staff.email)
    drawn = segno.make(address, error="m", micro=False).svg_inline(border=4, dark="#000", light="#fff", omitsize=True)
    # Numbers of a drawing alone: nothing of the address is in it as text.
    return mark_safe(drawn)  # noqa: S308  # nosec B308 B703


def _place(staff: Staff) -> str:
    return f"staff:{staff.pk}:enrolment"
