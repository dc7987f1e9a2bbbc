"""Challenges for passkeys. The session keeps a challenge for five minutes, and each challenge is valid for one response."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from django.http import HttpRequest
from webauthn.helpers import base64url_to_bytes, bytes_to_base64url

from identity.factors import passkeys
from identity.models import Staff, StaffFactor

_KEY = "passkey_challenge"
_SECONDS = 300


class Purpose(StrEnum):
    """The purpose of a challenge. A challenge is valid for one purpose only."""

    SIGN_IN = "sign-in"
    SECOND_FACTOR = "second-factor"
    PROVE = "prove"
    ENROL = "enrol"


def asked_to_sign(request: HttpRequest, purpose: Purpose, factors: Iterable[StaffFactor] = ()) -> dict[str, Any]:
    """Return the options with which the browser signs with a passkey."""
    return passkeys.use_options(_new(request, purpose), factors)


def asked_to_enrol(request: HttpRequest, staff: Staff) -> dict[str, Any]:
    """Return the options with which the browser creates a passkey for the account."""
    return passkeys.enrolment_options(staff, _new(request, Purpose.ENROL))


def taken(request: HttpRequest, purpose: Purpose) -> bytes:
    """Return the challenge of this session and delete it. Raises `PasskeyRefused` if it is missing, expired or for another purpose."""
    kept = request.session.pop(_KEY, None)
    if not kept or kept["purpose"] != purpose or not 0 <= time.time() - kept["at"] < _SECONDS:
        raise passkeys.PasskeyRefused
    return base64url_to_bytes(kept["challenge"])


def _new(request: HttpRequest, purpose: Purpose) -> bytes:
    challenge = secrets.token_bytes(passkeys.CHALLENGE_BYTES)
    request.session[_KEY] = {"purpose": purpose.value, "challenge": bytes_to_base64url(challenge), "at": int(time.time())}
    return challenge
