"""Every mail and text message that the service knows by name: whether it is sent, and what its template may say. Pure.

The names of mails are those that clients of `/email-templates` know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

EMAIL, SMS = "email", "sms"
# Variables of every template, with what stands for them in a preview.
_COMMON: dict[str, tuple[str, Any]] = {
    "friendly_name": ("The name of the tenant.", "Example Ltd"),
    "tenant": ("The id of the tenant.", "example"),
    "support_email": ("Where people ask for help, empty where none is set.", "help@example.com"),
    "support_url": ("The page where people ask for help, empty where none is set.", "https://example.com/help"),
    "request_language": ("The language of the message.", "en"),
    "application.name": ("The application that the message came from, empty where there is none.", "Example Shop"),
    "application.clientID": ("Its client id.", "Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4f"),
    "connection.name": ("The connection of the user.", "people"),
    "user.email": ("The address of the user.", "ada@example.com"),
    "user.email_verified": ("Whether it is verified.", False),
    "user.name": ("The name that the user gave. Users write it themselves.", "Ada Lovelace"),
    "user.given_name": ("The first name.", "Ada"),
    "user.family_name": ("The last name.", "Lovelace"),
    "user.nickname": ("The nickname.", "ada"),
    "user.username": ("The user name.", "ada"),
    "user.phone_number": ("The telephone number.", "+4915112345678"),
    "user.picture": ("The address of a picture.", "https://example.com/ada.png"),
    "user.user_metadata": ("What the user has set, such as user.user_metadata.lang.", {"lang": "en"}),
    "user.app_metadata": ("What applications have set.", {"plan": "gold"}),
}
_OF_THE_TENANT = frozenset({"friendly_name", "tenant", "support_email", "support_url", "request_language"})
_LINK = {"url": ("The link.", "https://login.example.com/u/example?ticket=example")}
_UNTIL = {"until": ("When the link ends, in UTC.", "24 December 2026, 18:00")}
_CODE = {"code": ("The code.", "123456")}
_SOURCE = {"user.source_ip": ("The network address of the request.", "203.0.113.7")}
_MAYBE_LINK = {"url": ("The link; empty for a user without a password.", "https://login.example.com/u/example?ticket=example")}
_LOGIN = {
    "login.time": ("When the password or another login method was accepted, in UTC.", "24 December 2026, 18:00"),
    "login.country": ("The code of the country, empty where it is not known.", "DE"),
    "login.browser": ("The name of the browser, empty where it is not known.", "Firefox"),
    "login.system": ("The operating system, empty where it is not known.", "Windows"),
}
_INVITATION: dict[str, tuple[str, Any]] = {
    "inviter.name": ("The person who invites.", "Grace Hopper"),
    "organization.name": ("The name of the organization.", "engines"),
    "organization.display_name": ("The name of the organization as people know it.", "Analytical Engines"),
    "organization.metadata": ("The metadata of the organization.", {}),
    "roles": ("The names of the roles that the invitation gives.", ["Editor"]),
}
_APPROVAL: dict[str, tuple[str, Any]] = {
    "binding_message": ("What the application shows as well, so that the user can compare both.", "21-49-38"),
}
_PASSWORDLESS: dict[str, tuple[str, Any]] = {
    "send": ("`code` or `link`.", "code"),
    "code": ("The code, where one is sent.", "123456"),
    "link": ("The link, where one is sent.", "https://login.example.com/passwordless/verify_redirect?example"),
}


@dataclass(frozen=True)
class Kind:
    """One message. `built_in` is the file of its text in `templates/mail` or `templates/sms`; without one it is never sent."""

    name: str
    title: str
    about: str
    channel: str = EMAIL
    built_in: str = ""
    variables: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    # Sent only where a tenant has switched it on; others go out unless a tenant has switched them off.
    is_off_at_first: bool = False
    # A person waits for it, or asked for it: switching it off brings the built-in text back.
    is_always_sent: bool = False
    # The place in /email-templates.
    is_public: bool = True
    has_link: bool = False
    default_life: str = ""

    @property
    def is_sent(self) -> bool:
        """Whether the service sends it at all."""
        return bool(self.built_in)

    @property
    def every_variable(self) -> dict[str, tuple[str, Any]]:
        """The variables of the template, its own ones first."""
        return {**self.variables, **_COMMON}

    def sample(self) -> dict[str, Any]:
        """Return data that a template is tried with, but for what is known of the tenant itself."""
        data: dict[str, Any] = {}
        for path, (_, value) in self.every_variable.items():
            if path in _OF_THE_TENANT:
                continue
            *parents, name = path.split(".")
            place = data
            for parent in parents:
                place = place.setdefault(parent, {})
            place[name] = value
        return data


def _unsent(name: str, title: str, about: str) -> Kind:
    return Kind(name, title, about)


_ALL = (
    Kind(
        "verify_email",
        "Verification of an address",
        "Asks a user to confirm an e-mail address by a link.",
        built_in="verify_email",
        variables={**_LINK, **_UNTIL},
        has_link=True,
        default_life="5 days (EMAIL_TICKET_DAYS)",
    ),
    Kind(
        "reset_email",
        "New password",
        "Sent to a user who has forgotten the password: a link to set a new one.",
        built_in="reset_email",
        variables={**_LINK, **_UNTIL, **_SOURCE},
        is_always_sent=True,
        has_link=True,
        default_life="1 hour",
    ),
    Kind(
        "welcome_email",
        "Welcome",
        "Sent once to a user who has signed up. It is off until you switch it on.",
        built_in="welcome_email",
        is_off_at_first=True,
    ),
    Kind(
        "blocked_account",
        "Blocked account",
        "Sent when too many logins have failed: a link that lifts the block.",
        built_in="blocked_account",
        variables={**_LINK, **_UNTIL, **_SOURCE},
        has_link=True,
        default_life="7 days",
    ),
    Kind(
        "stolen_credentials",
        "Breached password",
        "Sent once to a user whose password was found in a breach, where Sign-in settings say so: a link to set a new one.",
        built_in="stolen_credentials",
        variables={**_MAYBE_LINK, **_UNTIL, **_SOURCE},
        has_link=True,
        default_life="24 hours",
    ),
    Kind(
        "user_invitation",
        "Invitation to an organization",
        "Invites a person to become a member of an organization.",
        built_in="user_invitation",
        variables={**_LINK, **_INVITATION},
        is_always_sent=True,
    ),
    _unsent("verify_email_by_code", "Verification by code", "addresses are verified by a link: use verify_email."),
    _unsent("reset_email_by_code", "New password by code", "passwords are set by a link: use reset_email."),
    Kind(
        "enrollment_email",
        "Setup of a second factor",
        "Sent where an administrator wants it: a link at which the user sets up a second factor.",
        built_in="enrollment_email",
        variables={**_LINK, **_UNTIL},
        is_always_sent=True,
        has_link=True,
        default_life="5 days",
    ),
    Kind(
        "mfa_oob_code",
        "Code of a second factor",
        "The code that a login asks for after the password.",
        built_in="mfa_oob_code",
        variables=_CODE,
        is_always_sent=True,
    ),
    Kind(
        "async_approval",
        "Approval of a request",
        "Tells a user that an application asks for an approval (CIBA): a link to the page that shows the request.",
        built_in="async_approval",
        variables={**_LINK, **_UNTIL, **_APPROVAL},
        is_always_sent=True,
    ),
    _unsent("change_password", "Change of a password", "it is the old form of reset_email: use that."),
    _unsent("password_reset", "Reset of a password", "it is the old form of reset_email: use that."),
    Kind(
        "new_device",
        "Login with a new browser",
        "Sent when an unknown browser has passed the first step of a login, where Sign-in settings say so: a link to set a new password.",
        built_in="new_device",
        variables={**_MAYBE_LINK, **_UNTIL, **_SOURCE, **_LOGIN},
        is_public=False,
        has_link=True,
        default_life="24 hours",
    ),
    Kind(
        "passwordless_email",
        "Login without a password",
        "A code or a link that logs a user in. A connection may have a text of its own, which counts before this one.",
        built_in="passwordless_email",
        variables=_PASSWORDLESS,
        is_always_sent=True,
        is_public=False,
    ),
    Kind(
        "passwordless_sms",
        "Login without a password",
        "A code or a link that logs a user in. A connection may have a text of its own, which counts before this one.",
        channel=SMS,
        built_in="passwordless_sms",
        variables=_PASSWORDLESS,
        is_always_sent=True,
        is_public=False,
    ),
    Kind(
        "mfa_sms",
        "Code of a second factor",
        "The code that a login asks for after the password.",
        channel=SMS,
        built_in="mfa_sms",
        variables=_CODE,
        is_always_sent=True,
        is_public=False,
    ),
    Kind(
        "address_notice",
        "Changed e-mail address",
        "Tells the former address that the account has another one. Imports, and accounts of other providers, send none.",
        built_in="address_notice",
        is_public=False,
    ),
    Kind(
        "factor_notice",
        "Changed second factors",
        "Tells a user that a second factor or a passkey was added or removed, or that the recovery code was used.",
        built_in="factor_notice",
        variables={"change": ("`added`, `removed` or `recovered`.", "added")},
        is_public=False,
    ),
)
KINDS: dict[str, Kind] = {kind.name: kind for kind in _ALL}
# Those of `/email-templates`.
PUBLIC_NAMES = tuple(kind.name for kind in _ALL if kind.is_public)


def kind_of(name: str) -> Kind | None:
    """Return the message of this name, None where there is none."""
    return KINDS.get(name)
