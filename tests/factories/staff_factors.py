"""Second factors of staff accounts for tests, and the codes that their apps show."""

from __future__ import annotations

import time

from foundation.secrets import totp
from identity.factors.staff_factors import add_totp
from identity.models import Staff, StaffFactor


def add_app(staff: Staff, name: str = "App") -> StaffFactor:
    """Enroll an authenticator app. The enrollment used a code of some steps ago, so every current code is still unused."""
    secret = totp.new_secret()
    before = time.time() - 10 * totp.PERIOD_SECONDS
    code = totp.code_of(secret, totp.step_at(before))
    return add_totp(staff_id=staff.pk, name=name, secret=secret, code=code, moment=before).factor


def code_now(app: StaffFactor, *, later: int = 0) -> str:
    """Return the code of the app for the current step or for a later step."""
    return totp.code_of(app.secret(), totp.step_at(time.time()) + later)
