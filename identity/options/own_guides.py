"""Guides of the strategies whose users this service authenticates itself: database, email and SMS. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from identity.options.further_fields import DATABASE_FURTHER, EMAIL_FURTHER, SMS_FURTHER
from identity.options.guide_fields import Guide, OptionField

DATABASE = "database"
_POLICIES = (
    ("", "Not set: the same as Good"),
    ("none", "None: at least 1 character"),
    ("low", "Low: at least 6 characters"),
    ("fair", "Fair: at least 8 characters, with lower case, upper case and digits"),
    ("good", "Good: at least 8 characters, with three of: lower case, upper case, digits, other characters"),
    ("excellent", "Excellent: like Good, but at least 10 characters, and at most two equal characters in a row"),
)
_NO_SIGN_UPS = OptionField(
    "disable_signup",
    "No sign-ups",
    "New users cannot create an account. Administrators, imports and invitations still add users.",
    kind="switch",
)
_GUESSES = OptionField(
    "brute_force_protection",
    "Protection against guessing",
    "Too many failed logins block further logins of the user. The page “Sign-in settings” defines how many.",
    kind="switch",
    default=True,
)


def _passcode() -> tuple[OptionField, OptionField]:
    return (
        OptionField("totp.length", "Length of a code", "Digits. Default: 6.", kind="number", bounds=(6, 10)),
        OptionField("totp.time_step", "Lifetime of a code", "Seconds. Default: 180.", kind="number", bounds=(60, 900)),
    )


OWN_GUIDES: Mapping[str, Guide] = {
    DATABASE: Guide(
        "Database",
        (
            OptionField("passwordPolicy", "Password policy", "Rule for new passwords.", kind="choice", choices=_POLICIES),
            OptionField(
                "password_complexity_options.min_length",
                "Minimum length",
                "Characters of a new password. Empty: the minimum of the policy.",
                kind="number",
                bounds=(1, 512),
            ),
            OptionField("password_history.enable", "Refuse earlier passwords of the user", kind="switch"),
            OptionField("password_history.size", "Number of refused earlier passwords", "Default: 5.", kind="number", bounds=(1, 24)),
            OptionField("password_no_personal_info.enable", "Refuse passwords that contain the name or address of the user", kind="switch"),
            OptionField("password_dictionary.enable", "Refuse common passwords", kind="switch"),
            OptionField(
                "password_dictionary.dictionary",
                "Further common passwords",
                "One per line. Used if common passwords are refused.",
                kind="lines",
            ),
            OptionField("requires_username", "Users have a username", "In addition to the email address.", kind="switch"),
            OptionField(
                "authentication_methods.passkey.enabled",
                "Passkeys",
                "Users can log in with a passkey, too, if passkeys are also on in “Two-step verification and passkeys”.",
                kind="switch",
            ),
            _NO_SIGN_UPS,
            OptionField(
                "disable_self_service_change_password",
                "Users cannot reset their password",
                "The login page has no link for a forgotten password.",
                kind="switch",
            ),
            _GUESSES,
            *DATABASE_FURTHER,
        ),
        callback="",
    ),
    "email": Guide(
        "Code or link by email",
        (
            OptionField("email.from", "Sender", "Such as Shop <login@example.com>. Empty: the default sender of the tenant."),
            OptionField("email.subject", "Subject", "Empty: the subject of the service, in the language of the user."),
            *_passcode(),
            _NO_SIGN_UPS,
            _GUESSES,
            *EMAIL_FURTHER,
        ),
        callback="",
    ),
    "sms": Guide(
        "Code by text message",
        (
            OptionField(
                "provider",
                "Provider",
                kind="choice",
                choices=(("", "The text message provider of the tenant"), ("twilio", "Twilio"), ("sms_gateway", "Your own gateway")),
            ),
            OptionField("from", "Sender", "The number or name that users see as the sender."),
            OptionField("twilio_sid", "Twilio account SID", "For Twilio."),
            OptionField("twilio_token", "Twilio auth token", "For Twilio.", kind="secret"),
            OptionField("messaging_service_sid", "Twilio messaging service", "The SID of the messaging service. It replaces the sender."),
            OptionField("gateway_url", "Address of the gateway", "For your own gateway.", kind="address"),
            OptionField("template", "Text of the message", "Empty: the text of the service, in the language of the user.", kind="area"),
            *_passcode(),
            _NO_SIGN_UPS,
            _GUESSES,
            *SMS_FURTHER,
        ),
        callback="",
    ),
}
