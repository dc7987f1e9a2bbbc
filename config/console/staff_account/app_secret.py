"""The secret of an authenticator app during its enrollment: kept sealed in the session and shown as a QR code."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest
from django.utils.safestring import SafeString

from foundation.qr_pictures import qr_picture
from foundation.secrets import totp, vault
from identity.models import Staff

_KEY = "app_secret"


def kept(request: HttpRequest, staff: Staff) -> str:
    """Return the secret of this session, or a new secret. A reload of the page shows the same secret."""
    sealed = request.session.get(_KEY)
    if sealed:
        try:
            return vault.unseal(sealed, place=_place(staff))
        except vault.SecretUnreadable:
            # The secret was sealed for another account, or with a key that no longer exists.
            forget(request)
    secret = totp.new_secret()
    request.session[_KEY] = vault.seal(secret, place=_place(staff))
    return secret


def forget(request: HttpRequest) -> None:
    request.session.pop(_KEY, None)


def picture_of(secret: str, staff: Staff) -> SafeString:
    """Return the QR code for an authenticator app."""
    return qr_picture(totp.enrolment_address(secret, issuer=f"Identity {settings.PLATFORM_HOST}", account=staff.email))


def _place(staff: Staff) -> str:
    return f"staff:{staff.pk}:enrolment"
