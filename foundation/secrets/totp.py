"""Time-based one-time passwords (RFC 6238) as every authenticator app makes them: SHA-1, six digits, thirty seconds. Pure."""

from __future__ import annotations

import base64
import hmac
import secrets
from urllib.parse import quote, urlencode

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.hotp import HOTP

DIGITS = 6
PERIOD_SECONDS = 30
# RFC 4226, 4: 160 bits are recommended.
_SECRET_BYTES = 20
# RFC 6238, 5.2: one step for the time that a code is on its way, and one for a clock that is ahead.
_STEPS = (0, -1, 1)


def new_secret() -> str:
    """Return a random secret in base 32, as apps take it."""
    return base64.b32encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def step_at(moment: float) -> int:
    """Return the time step of a moment in Unix seconds."""
    return int(moment) // PERIOD_SECONDS


def code_of(secret: str, step: int) -> str:
    """Return the code that an app shows during a step."""
    # SHA-1 is what apps implement, and its collisions are of no use against an HMAC (RFC 6238, 1.2; RFC 4226, B).
    return HOTP(base64.b32decode(secret), DIGITS, SHA1()).generate(step).decode()  # noqa: S303  # nosec B303


def accepted_step(secret: str, code: str, *, moment: float, last_step: int) -> int | None:
    """Return the step whose code this is, None for a wrong code and for one of `last_step` or before."""
    found = None
    # All are compared, so that the time it takes says nothing.
    for distance in _STEPS:
        step = step_at(moment) + distance
        if hmac.compare_digest(code_of(secret, step).encode(), code.encode()) and step > last_step and found is None:
            found = step
    return found


def enrolment_address(secret: str, *, issuer: str, account: str) -> str:
    """Return what the QR code holds (the key URI format that apps share)."""
    label = quote(f"{issuer}:{account}", safe=":@")
    query = {"secret": secret, "issuer": issuer, "algorithm": "SHA1", "digits": DIGITS, "period": PERIOD_SECONDS}
    return f"otpauth://totp/{label}?{urlencode(query, quote_via=quote)}"


def in_groups(text: str, size: int = 4) -> str:
    """Return a secret in groups, for whoever types it."""
    return " ".join(text[start : start + size] for start in range(0, len(text), size))
