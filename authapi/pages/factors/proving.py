"""The contents of the pages on which a user proves a second factor, and the check of the proof.

A user proves a factor at a login, or before another factor is added.
"""

from __future__ import annotations

import json
from typing import Any

from django.utils.translation import gettext as _

from authapi.factors.challenges import (
    Proven,
    Prover,
    check_code,
    check_key,
    check_otp,
    check_recovery_code,
    has_sent,
    key_challenge,
    keys_for,
    seconds_to_wait,
)
from authapi.factors.kinds import EMAIL, RECOVERY_CODE, TOTP
from authapi.factors.relying_party import party_of
from authapi.pages.factors.shown import key_words
from authapi.pages.factors.ways import KEYS, Way, shown_address
from authapi.pages.passwordless import BETWEEN_DIGITS, seconds_text
from identity.factors import ceremonies
from identity.factors.ceremonies import ANSWER_MOST_CHARACTERS
from identity.hosts import HostMatch
from identity.models import EnrolledFactor

_SCRIPT = "theme/factor_keys.js"


def proven_by(prover: Prover, way: Way, typed: str, *, host: HostMatch) -> Proven:
    """Check the submitted form and return the proof. Raises `WrongProof` and `TooManyGuesses`."""
    if way.kind in KEYS:
        return check_key(prover, typed[:ANSWER_MOST_CHARACTERS], party_of(host), kinds=(way.kind,))
    if way.kind == RECOVERY_CODE:
        return check_recovery_code(prover, typed)
    code = typed.translate(BETWEEN_DIGITS)
    return check_otp(prover, code) if way.factor is None else check_code(prover, way.factor, code)


def message_context(prover: Prover, factor: EnrolledFactor, *, is_sent_again: bool) -> dict[str, Any]:
    """Return the context of the page for a code that is sent to a phone or an email address."""
    seconds = seconds_to_wait(prover, factor)
    return {
        "address": shown_address(factor),
        "is_email": factor.kind == EMAIL,
        "is_sent": has_sent(prover, factor),
        "is_sent_again": is_sent_again,
        "wait": seconds_text(seconds) if seconds else "",
    }


def key_context(prover: Prover, way: Way, *, host: HostMatch) -> dict[str, Any]:
    """Return the context of the page for a key, with a new challenge."""
    party = party_of(host)
    allowed = keys_for(prover, (way.kind,), relying_party=party.id)
    options = ceremonies.use_options(party, key_challenge(prover), allowed=allowed, is_passkey=False)
    return {"options": json.dumps(options), "words": key_words(), "scripts": [_SCRIPT]}


def nothing_typed(way: Way) -> str:
    """Return the error text for a form that was submitted without an answer."""
    if way.kind in KEYS:
        return _("This method needs a browser with JavaScript. Try another method.")
    if way.kind == RECOVERY_CODE:
        return _("Enter your recovery code.")
    return _("Enter the code from the app.") if way.kind == TOTP else _("Enter the code from the message.")
