"""Request bodies for second factors and passkeys, and their conversion."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from rest_framework import serializers
from webauthn.helpers import decode_credential_public_key
from webauthn.helpers.exceptions import WebAuthnException

from authapi.factors.kinds import EMAIL, FACTORS, PASSKEY, PHONE, TOTP, WEBAUTHN_PLATFORM, WEBAUTHN_ROAMING
from authapi.models import SecondFactorPolicy
from foundation.api.fields import Closed, ListOf, Switch, Text
from foundation.api.fields import Email as EmailAddress
from foundation.api.refusals import invalid_body, not_supported
from foundation.secrets import totp
from identity.api.job_bodies import WholeNumber
from identity.factors.ceremonies import NewCredential
from identity.factors.given_factors import GivenFactor
from identity.messages.numbers import NumberRefused, normalized_number

_LONGEST_NAME = 60
_LONGEST_KEY = 4096
_LONGEST_ID = 1400
_VOICE = "voice"
_NO_VOICE = "Not supported: codes are sent as text messages only."


# The kind of factor by its name in a ticket. None for a factor that the service does not have.
ENROLLED_FACTORS: dict[str, str | None] = {
    "push-notification": None,
    "phone": PHONE,
    "email": EMAIL,
    "otp": TOTP,
    "webauthn-roaming": WEBAUTHN_ROAMING,
    "webauthn-platform": WEBAUTHN_PLATFORM,
}


class SetupTicket(Closed):
    """A link that sets up a second factor."""

    user_id = Text(max_length=300)
    email = EmailAddress(required=False, help_text="The email address that gets the mail. Default: the email address of the user.")
    send_mail = Switch(required=False, help_text="Whether the service mails the link to the user.")
    email_locale = Text(required=False, max_length=35, help_text="The language of the mail and of the page.")
    factor = serializers.ChoiceField(
        required=False, choices=list(ENROLLED_FACTORS), help_text="The only factor that the user can set up with the link."
    )
    allow_multiple_enrollments = Switch(
        required=False, help_text="Whether the user may already have a factor. The user must prove that factor first."
    )


class MethodToChange(Closed):
    name = Text(required=False, max_length=_LONGEST_NAME)
    preferred_authentication_method = serializers.ChoiceField(required=False, choices=[_VOICE, "sms"])


class MethodToSet(MethodToChange):
    """A phone, an email address or an authenticator app."""

    type = serializers.ChoiceField(choices=[PHONE, EMAIL, TOTP])
    phone_number = Text(required=False, max_length=30)
    email = EmailAddress(required=False)
    totp_secret = Text(required=False, max_length=512)


class MethodToCreate(MethodToSet):
    """A phone, an email address, an authenticator app, or a key that an authenticator created elsewhere."""

    type = serializers.ChoiceField(choices=[PHONE, EMAIL, TOTP, WEBAUTHN_ROAMING, PASSKEY])
    key_id = Text(required=False, max_length=_LONGEST_ID)
    public_key = Text(required=False, max_length=_LONGEST_KEY, help_text="The COSE key in base64.")
    relying_party_identifier = Text(required=False, max_length=253)
    aaguid = Text(required=False, max_length=36)
    credential_device_type = serializers.ChoiceField(required=False, choices=["single_device", "multi_device"])
    credential_backed_up = Switch(required=False)
    identity_user_id = Text(required=False, max_length=300)
    user_agent = Text(required=False, max_length=500)
    user_handle = Text(required=False, max_length=128)
    transports = ListOf(
        required=False,
        child=serializers.ChoiceField(choices=["ble", "cable", "hybrid", "internal", "nfc", "smart-card", "usb"]),
        max_length=7,
    )


class FactorSwitch(Closed):
    enabled = Switch()
    trial_expired = Switch(required=False, help_text="Ignored. Deployment tools send back the value that they have read.")


class SecondFactorsToChange(Closed):
    """The settings of the tenant. Null restores a default."""

    factors = ListOf(required=False, child=serializers.ChoiceField(choices=list(FACTORS)), max_length=len(FACTORS), allow_null=True)
    policy = serializers.ChoiceField(required=False, choices=SecondFactorPolicy.values, allow_null=True)
    remembers_browsers = Switch(required=False, allow_null=True)
    remembered_days = WholeNumber(required=False, allow_null=True)
    passkeys = Switch(required=False, allow_null=True)
    offers_passkeys = Switch(required=False, allow_null=True)


class OrganizationPolicy(Closed):
    policy = serializers.ChoiceField(choices=SecondFactorPolicy.values, allow_null=True)


# For each type: the required members, and the optional members except `name`, which is optional for every type.
_MEMBERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    PHONE: (("phone_number",), ("preferred_authentication_method",)),
    EMAIL: (("email",), ()),
    TOTP: ((), ("totp_secret",)),
    WEBAUTHN_ROAMING: (("key_id", "public_key"), ("relying_party_identifier",)),
    PASSKEY: (
        ("key_id", "public_key"),
        (
            "relying_party_identifier", "aaguid", "credential_device_type", "credential_backed_up", "identity_user_id", "user_agent",
            "user_handle", "transports",
        ),
    ),
}  # fmt: skip


def check_members(body: dict[str, Any]) -> None:
    """Refuse a body that lacks a member required by its type, or that has a member which its type does not have."""
    needed, further = _MEMBERS[body["type"]]
    for name in needed:
        if name not in body:
            raise invalid_body(f"Missing required property of a method of type {body['type']}", name)
    for name in body:
        if name not in ("type", "name", *needed, *further):
            raise invalid_body(f"Not a property of a method of type {body['type']}", name)
    refuse_voice(body)


def refuse_voice(body: dict[str, Any]) -> None:
    """Refuse phone calls, because only text messages are supported."""
    if body.get("preferred_authentication_method") == _VOICE:
        raise not_supported(_NO_VOICE)


def given_factor(body: dict[str, Any]) -> GivenFactor:
    """Return the phone, email address or app that a checked body describes. If the body has no secret for an app, the app gets a new
    secret."""
    name = body.get("name", "")
    if body["type"] == PHONE:
        try:
            return GivenFactor(PHONE, normalized_number(body["phone_number"]), name=name)
        except NumberRefused as refused:
            raise invalid_body(str(refused), "phone_number") from refused
    if body["type"] == EMAIL:
        return GivenFactor(EMAIL, body["email"], name=name)
    try:
        secret = totp.normalized(body["totp_secret"]) if "totp_secret" in body else totp.new_secret()
    except ValueError as error:
        raise invalid_body("Expected at least 16 bytes in base32", "totp_secret") from error
    return GivenFactor(TOTP, secret=secret, name=name)


def made_key(body: dict[str, Any]) -> NewCredential:
    """Return the key in a checked body as a `NewCredential`, the same class as for a key that an authenticator has just created."""
    try:
        key_id = _urlsafe(body["key_id"])
        public_key = base64.b64decode(body["public_key"].replace("-", "+").replace("_", "/") + "==")
        decode_credential_public_key(public_key)
    except (ValueError, TypeError, KeyError, IndexError, WebAuthnException, binascii.Error) as error:
        raise invalid_body("Expected a COSE key in base64, and its id", "public_key") from error
    return NewCredential(
        key_id,
        public_key,
        sign_count=0,
        transports=tuple(body.get("transports", ())),
        aaguid=body.get("aaguid", ""),
        is_backed_up=body.get("credential_backed_up", False),
    )


def _urlsafe(text: str) -> str:
    """Return an id in the base64 variant of browsers. Accepts any variant."""
    raw = base64.b64decode(text.replace("-", "+").replace("_", "/") + "==", validate=False)
    if not raw:
        raise ValueError("empty")
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
