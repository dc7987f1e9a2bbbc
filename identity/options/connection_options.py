"""Checks the options of connections, and supplies the defaults of a new database connection. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from identity.passwords import DEFAULT_POLICY, LONGEST, POLICIES

# Without these options no login is possible, and public client libraries drop the connection's events.
_REQUIRED = {
    "oidc": "client_id",
    "okta": "client_id",
    "waad": "client_id",
    "pingfederate": "pingFederateBaseUrl",
}
IDENTIFYING_ATTRIBUTES = ("email", "username", "phone_number")
_DATABASE_DEFAULTS: dict[str, Any] = {
    "mfa": {"active": True, "return_enroll_settings": True},
    "passwordPolicy": DEFAULT_POLICY,
    "passkey_options": {"challenge_ui": "both", "local_enrollment_enabled": True, "progressive_enrollment_enabled": True},
    "strategy_version": 2,
    "authentication_methods": {"password": {"enabled": True}, "passkey": {"enabled": False}},
    "brute_force_protection": True,
    # If this value is missing, deploy tools add it, and then report a difference from their export.
    "disable_self_service_change_password": False,
}


def database_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a new database connection: the defaults, overridden by `options`."""
    return {**_DATABASE_DEFAULTS, **options}


def options_with_defaults(strategy: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options for a response. If an email connection has no body of the mail, adds an empty body.

    Deploy tools write the body into a separate file, and fail if it is missing.
    """
    if strategy != "email":
        return dict(options)
    mail = options.get("email")
    return {**options, "email": {"body": "", **(mail if isinstance(mail, Mapping) else {})}}


def options_problem(strategy: str, options: Mapping[str, Any], *, is_database: bool) -> str | None:
    """Return a message about the first invalid option of a connection, or None."""
    if is_database:
        return _identifiers_problem(options) or _password_options_problem(options)
    required = _REQUIRED.get(strategy)
    if required and not (isinstance(options.get(required), str) and options[required]):
        return f"Missing required property {required}."
    return None


def takes_username(options: Mapping[str, Any]) -> bool:
    """Tell whether users of a connection with these options can have a user name."""
    return bool(options.get("requires_username")) or _is_active(_attributes(options).get("username"))


def login_identifiers(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the identifiers with which users of a database connection log in, in the order of `IDENTIFYING_ATTRIBUTES`."""
    attributes = options.get("attributes")
    if isinstance(attributes, dict):
        return tuple(name for name in IDENTIFYING_ATTRIBUTES if _is_active(attributes.get(name)))
    return ("email", "username") if takes_username(options) else ("email",)


def required_attributes(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the attributes that every user of a connection with these options must have."""
    attributes = _attributes(options)
    return tuple(name for name in IDENTIFYING_ATTRIBUTES if _is_required(attributes.get(name)))


def _identifiers_problem(options: Mapping[str, Any]) -> str | None:
    if options.get("attributes") is None:
        return None
    if not isinstance(options["attributes"], dict):
        return "attributes must be an object."
    # Client programs compare the texts of these refusals.
    rival = next((name for name in ("requires_username", "validation") if name in options), None)
    if rival is not None:
        return f"Cannot set both options.attributes and options.{rival}"
    if not any(_is_active(attribute) for attribute in options["attributes"].values()):
        return "attributes must contain one active identifier"
    for name, attribute in options["attributes"].items():
        if _is_required(attribute) and _sign_up_status(attribute) not in (None, "required"):
            return f"attribute {name} must also be required on signup"
    return None


def _password_options_problem(options: Mapping[str, Any]) -> str | None:
    if options.get("passwordPolicy") not in (None, *POLICIES):
        return f"passwordPolicy must be one of {', '.join(POLICIES)}."
    complexity = options.get("password_complexity_options") or {}
    shortest = complexity.get("min_length", 1) if isinstance(complexity, dict) else None
    if not isinstance(shortest, int) or isinstance(shortest, bool) or not 1 <= shortest <= LONGEST:
        return f"password_complexity_options.min_length must be a number from 1 to {LONGEST}."
    return None


def _attributes(options: Mapping[str, Any]) -> Mapping[str, Any]:
    attributes = options.get("attributes")
    return attributes if isinstance(attributes, dict) else {}


def _is_required(attribute: Any) -> bool:
    return isinstance(attribute, dict) and attribute.get("profile_required") is True


def _sign_up_status(attribute: Mapping[str, Any]) -> Any:
    sign_up = attribute.get("signup")
    return sign_up.get("status") if isinstance(sign_up, dict) else None


def _is_active(attribute: Any) -> bool:
    """Tell whether users log in with an attribute. True if the attribute is an object, unless its `identifier` has `active: false`."""
    if not isinstance(attribute, dict):
        return False
    identifier = attribute.get("identifier")
    return not isinstance(identifier, dict) or identifier.get("active") is not False
