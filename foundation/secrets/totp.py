"""Time-based one-time passwords (RFC 6238) of authenticator apps: SHA-1, six digits, thirty seconds. Pure."""

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
_LEAST_SECRET_BYTES = 16
# RFC 6238, 5.2: codes of the step before are accepted because of network delay, and codes of the step after for devices whose clock is
# ahead.
_STEPS = (0, -1, 1)


def new_secret() -> str:
    """Return a random secret in base 32, the form that apps accept."""
    return base64.b32encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def normalized(secret: str) -> str:
    """Return a secret in the form of `new_secret`. Accepts lower case, spaces, hyphens and missing padding.

    Raises `ValueError` for text that is not base 32, and for a secret of less than 128 bits (RFC 4226, 4).
    """
    text = "".join(secret.split()).replace("-", "").upper().rstrip("=")
    padded = text + "=" * (-len(text) % 8)
    if len(base64.b32decode(padded)) < _LEAST_SECRET_BYTES:
        raise ValueError("A secret of at least 16 bytes is expected.")
    return padded


def step_at(moment: float) -> int:
    """Return the time step of a time in Unix seconds."""
    return int(moment) // PERIOD_SECONDS


def code_of(secret: str, step: int) -> str:
    """Return the code that an app shows during a step."""
    # Apps implement SHA-1, and its collisions do not affect HMAC (RFC 6238, 1.2; RFC 4226, B).
    return HOTP(_key(secret), DIGITS, SHA1(), enforce_key_length=False).generate(step).decode()  # noqa: S303  # nosec B303


def _key(secret: str) -> bytes:
    """Return the bytes of a secret. Accepts imported secrets that are short, in lower case or without padding."""
    text = secret.upper().rstrip("=")
    return base64.b32decode(text + "=" * (-len(text) % 8))


def accepted_step(secret: str, code: str, *, moment: float, last_step: int) -> int | None:
    """Return the step of this code. None for a wrong code, and for a code of `last_step` or of an earlier step."""
    found = None
    # All steps are compared, so that the duration discloses nothing.
    for distance in _STEPS:
        step = step_at(moment) + distance
        if hmac.compare_digest(code_of(secret, step).encode(), code.encode()) and step > last_step and found is None:
            found = step
    return found


def enrolment_address(secret: str, *, issuer: str, account: str) -> str:
    """Return the content of the QR code (the key URI format of authenticator apps)."""
    label = quote(f"{issuer}:{account}", safe=":@")
    query = {"secret": secret, "issuer": issuer, "algorithm": "SHA1", "digits": DIGITS, "period": PERIOD_SECONDS}
    return f"otpauth://totp/{label}?{urlencode(query, quote_via=quote)}"


def in_groups(text: str, size: int = 4) -> str:
    """Return a secret in groups, for manual entry."""
    return " ".join(text[start : start + size] for start in range(0, len(text), size))
