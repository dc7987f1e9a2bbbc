"""Challenges for passkeys: made when the browser asks for one, kept in the session for minutes, each good for one answer."""

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
    """What an answer will be taken for; a challenge for one thing is worth nothing for another."""

    SIGN_IN = "sign-in"
    SECOND_FACTOR = "second-factor"
    PROVE = "prove"
    ENROL = "enrol"


def asked_to_sign(request: HttpRequest, purpose: Purpose, factors: Iterable[StaffFactor] = ()) -> dict[str, Any]:
    """Return what the browser needs to sign with a passkey."""
    return passkeys.use_options(_new(request, purpose), factors)


def asked_to_enrol(request: HttpRequest, staff: Staff) -> dict[str, Any]:
    """Return what the browser needs to make a passkey for the account."""
    return passkeys.enrolment_options(staff, _new(request, Purpose.ENROL))


def taken(request: HttpRequest, purpose: Purpose) -> bytes:
    """Return the challenge of this session and forget it. Raises `PasskeyRefused` when there is none, or one that is old."""
    kept = request.session.pop(_KEY, None)
    if not kept or kept["purpose"] != purpose or not 0 <= time.time() - kept["at"] < _SECONDS:
        raise passkeys.PasskeyRefused
    return base64url_to_bytes(kept["challenge"])


def _new(request: HttpRequest, purpose: Purpose) -> bytes:
    challenge = secrets.token_bytes(passkeys.CHALLENGE_BYTES)
    request.session[_KEY] = {"purpose": purpose.value, "challenge": bytes_to_base64url(challenge), "at": int(time.time())}
    return challenge
