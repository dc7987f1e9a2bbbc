"""Options of strategies that the service itself implements: database and passwordless. Pure."""

from __future__ import annotations

from identity.options.schemas.nodes import ADDRESS, SECRET, Each, Members, Node, readable
from identity.options.schemas.shared import PASSCODE, schema

_ENABLED = Members(readable("enabled"))
_IDENTIFIER = Members(readable("active default_method"))
_SIGN_UP = Members({**readable("status"), "verification": Members(readable("active"))})
_ATTRIBUTE: dict[str, Node] = {**readable("profile_required unique verification_method"), "identifier": _IDENTIFIER, "signup": _SIGN_UP}
_USERNAME_RULES = Members({**readable("min_length max_length"), "allowed_types": Members(readable("email phone_number"))})
_PASSWORD_OPTIONS = Members(
    {
        "complexity": Members(
            readable("min_length character_types character_type_rule identical_characters sequential_characters max_length_exceeded")
        ),
        "dictionary": Members(readable("active custom default")),
        "history": Members(readable("active size")),
        "profile_data": Members(readable("active blocked_fields")),
    }
)

DATABASE = schema(
    "passwordPolicy requires_username import_mode enabledDatabaseCustomization enable_script_context precedence realm_fallback",
    mfa=Members(readable("active return_enroll_settings")),
    password_complexity_options=Members(readable("min_length")),
    password_history=Members(readable("enable size")),
    password_no_personal_info=Members(readable("enable")),
    password_dictionary=Members(readable("enable dictionary")),
    password_options=_PASSWORD_OPTIONS,
    custom_password_hash=Members(readable("action_id")),
    validation=Members({"username": Members(readable("min max"))}),
    attributes=Members(
        {
            "email": Members(_ATTRIBUTE),
            "phone_number": Members(_ATTRIBUTE),
            "username": Members({**_ATTRIBUTE, "validation": _USERNAME_RULES}),
        }
    ),
    authentication_methods=Members(
        {
            "password": Members(readable("enabled api_behavior signup_behavior")),
            **dict.fromkeys(("passkey", "email_otp", "phone_otp"), _ENABLED),
        }
    ),
    passkey_options=Members(readable("challenge_ui local_enrollment_enabled progressive_enrollment_enabled")),
    # Treat scripts as secrets: they often contain credentials, and the service never needs to read them, because it runs no scripts.
    configuration=Each(SECRET),
    customScripts=Each(SECRET),
)
EMAIL = schema(
    "from subject syntax body template",
    email=Members(readable("from subject syntax body")),
    totp=PASSCODE,
)
SMS = schema(
    "from syntax template provider twilio_sid messaging_service_sid forward_req_info allowed_countries",
    totp=PASSCODE,
    twilio_token=SECRET,
    gateway_url=ADDRESS,
    gateway_authentication=Members({**readable("method audience subject secret_base64_encoded"), "secret": SECRET}),
)
