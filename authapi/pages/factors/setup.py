"""The contents of pages that set up a factor.

For an authenticator app: QR code and secret. For codes: the phone number or email address. For a key: the options with which the browser
creates it.
"""

from __future__ import annotations

import json
from typing import Any

from authapi.factors.challenges import ENROLL, Prover, key_challenge, seconds_to_wait
from authapi.factors.kinds import EMAIL, PASSKEY, WEBAUTHN_PLATFORM, WEBAUTHN_ROAMING
from authapi.pages.factors.shown import code_field, key_words
from authapi.pages.factors.ways import KEYS
from authapi.pages.passwordless import left_to_right, seconds_text
from authapi.tenant_settings import sign_in_settings
from foundation.qr_pictures import qr_picture
from foundation.secrets import totp
from identity.factors import ceremonies
from identity.factors.ceremonies import Account, RelyingParty
from identity.factors.user_factors import credentials_of, user_handle
from identity.models import EnrolledFactor, User

_ATTACHMENTS = {WEBAUTHN_PLATFORM: "platform", WEBAUTHN_ROAMING: "cross-platform"}
_SCRIPT = "theme/factor_keys.js"


def app_context(user: User, factor: EnrolledFactor) -> dict[str, Any]:
    """Return the context for an authenticator app: the QR code, the secret in groups, and the field for the first code."""
    secret = factor.secret()
    issuer = sign_in_settings(user.tenant_id).friendly_name or user.tenant_id
    address = totp.enrolment_address(secret, issuer=issuer, account=_name_of(user))
    return {"picture": qr_picture(address), "secret": totp.in_groups(secret), "fields": [code_field(is_sent=False)]}


def address_context(prover: Prover, factor: EnrolledFactor) -> dict[str, Any]:
    """Return the context for a phone or an email address to which a code was sent."""
    seconds = seconds_to_wait(prover, factor)
    # The address is not masked: the user typed it or it comes from the profile, and the user must be able to see a wrong digit.
    shown = factor.address if factor.kind == EMAIL else left_to_right(factor.address)
    return {"address": shown, "wait": seconds_text(seconds) if seconds else "", "fields": [code_field(is_sent=True)]}


def key_context(prover: Prover, party: RelyingParty, kind: str, *, purpose: str = ENROLL) -> dict[str, Any]:
    """Return the context for a key or a passkey, with a new challenge.

    The existing keys are listed, so that the browser creates no second key on the same device.
    """
    user = prover.user
    options = ceremonies.registration_options(
        party,
        Account(user_handle(user), _name_of(user), user.name or ""),
        key_challenge(prover, purpose=purpose),
        existing=credentials_of(user, (*KEYS, PASSKEY), relying_party=party.id),
        attachment=_ATTACHMENTS.get(kind, ""),
        is_passkey=kind == PASSKEY,
    )
    return {"options": json.dumps(options), "words": key_words(), "scripts": [_SCRIPT]}


def _name_of(user: User) -> str:
    return user.email or user.username or user.phone_number or user.user_id
