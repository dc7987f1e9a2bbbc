"""All mails and text messages by name: whether the service sends them, and the variables of their templates. Pure.

The names of mails are those that clients of `/email-templates` use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

EMAIL, SMS = "email", "sms"
# Variables of every template, each with a sample value for previews.
_COMMON: dict[str, tuple[str, Any]] = {
    "friendly_name": ("The name of the tenant.", "Example Ltd"),
    "tenant": ("The id of the tenant.", "example"),
    "support_email": ("Email address of the support; empty if none is set.", "help@example.com"),
    "support_url": ("Address of the support page; empty if none is set.", "https://example.com/help"),
    "request_language": ("The language of the message.", "en"),
    "application.name": ("The application that caused the message; empty if there is none.", "Example Shop"),
    "application.clientID": ("The client id of that application.", "Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4f"),
    "connection.name": ("The connection of the user.", "people"),
    "user.email": ("The email address of the user.", "ada@example.com"),
    "user.email_verified": ("Whether the email address is verified.", False),
    "user.name": ("The name of the user. Users can write it themselves.", "Ada Lovelace"),
    "user.given_name": ("The first name.", "Ada"),
    "user.family_name": ("The last name.", "Lovelace"),
    "user.nickname": ("The nickname.", "ada"),
    "user.username": ("The username.", "ada"),
    "user.phone_number": ("The telephone number.", "+4915112345678"),
    "user.picture": ("The address of a picture.", "https://example.com/ada.png"),
    "user.user_metadata": ("Metadata that the user can change, such as user.user_metadata.lang.", {"lang": "en"}),
    "user.app_metadata": ("Metadata that only applications and administrators can change.", {"plan": "gold"}),
}
_OF_THE_TENANT = frozenset({"friendly_name", "tenant", "support_email", "support_url", "request_language"})
_LINK = {"url": ("The link.", "https://login.example.com/u/example?ticket=example")}
_UNTIL = {"until": ("When the link expires, in UTC.", "24 December 2026, 18:00")}
_CODE = {"code": ("The code.", "123456")}
_SOURCE = {"user.source_ip": ("The IP address of the request.", "203.0.113.7")}
_MAYBE_LINK = {"url": ("The link; empty for a user without a password.", "https://login.example.com/u/example?ticket=example")}
_LOGIN = {
    "login.time": ("When the password or another login method was accepted, in UTC.", "24 December 2026, 18:00"),
    "login.country": ("The code of the country; empty if unknown.", "DE"),
    "login.browser": ("The name of the browser; empty if unknown.", "Firefox"),
    "login.system": ("The operating system; empty if unknown.", "Windows"),
}
_INVITATION: dict[str, tuple[str, Any]] = {
    "inviter.name": ("The name of the inviter.", "Grace Hopper"),
    "organization.name": ("The name of the organization.", "engines"),
    "organization.display_name": ("The display name of the organization.", "Analytical Engines"),
    "organization.metadata": ("The metadata of the organization.", {}),
    "roles": ("The names of the roles in the invitation.", ["Editor"]),
}
_APPROVAL: dict[str, tuple[str, Any]] = {
    "binding_message": ("The text that the application shows, too, so that the user can compare the two texts.", "21-49-38"),
}
_PASSWORDLESS: dict[str, tuple[str, Any]] = {
    "send": ("`code` or `link`.", "code"),
    "code": ("The code, if the message has one.", "123456"),
    "link": ("The link, if the message has one.", "https://login.example.com/passwordless/verify_redirect?example"),
}


@dataclass(frozen=True)
class Kind:
    """One kind of message.

    `built_in` is the file of its text in `templates/mail` or `templates/sms`. If `built_in` is empty, the kind is never sent.
    """

    name: str
    title: str
    about: str
    channel: str = EMAIL
    built_in: str = ""
    variables: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    # The kind is sent only if a tenant has switched it on. Other kinds are sent unless a tenant has switched them off.
    is_off_at_first: bool = False
    # The user waits for this message. Switching the template off restores the built-in text and does not stop the message.
    is_always_sent: bool = False
    # Whether the kind is in /email-templates.
    is_public: bool = True
    has_link: bool = False
    default_life: str = ""

    @property
    def is_sent(self) -> bool:
        """Whether the service sends messages of this kind."""
        return bool(self.built_in)

    @property
    def every_variable(self) -> dict[str, tuple[str, Any]]:
        """The variables of the template, those of this kind first."""
        return {**self.variables, **_COMMON}

    def sample(self) -> dict[str, Any]:
        """Return sample data for a template, without the variables that depend on the tenant."""
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
        "Asks a user to confirm an email address with a link.",
        built_in="verify_email",
        variables={**_LINK, **_UNTIL},
        has_link=True,
        default_life="5 days (EMAIL_TICKET_DAYS)",
    ),
    Kind(
        "reset_email",
        "New password",
        "Sent to a user who has forgotten the password: a link to set a new password.",
        built_in="reset_email",
        variables={**_LINK, **_UNTIL, **_SOURCE},
        is_always_sent=True,
        has_link=True,
        default_life="1 hour",
    ),
    Kind(
        "welcome_email",
        "Welcome",
        "Sent once to a user who has signed up. Not sent until you turn this message on.",
        built_in="welcome_email",
        is_off_at_first=True,
    ),
    Kind(
        "blocked_account",
        "Blocked account",
        "Sent to a user who is blocked after too many failed logins: a link that lifts the block.",
        built_in="blocked_account",
        variables={**_LINK, **_UNTIL, **_SOURCE},
        has_link=True,
        default_life="7 days",
    ),
    Kind(
        "stolen_credentials",
        "Breached password",
        "Sent once to a user with a breached password, if Sign-in settings enable the message. It contains a link to set a new password.",
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
    _unsent("verify_email_by_code", "Verification by code", "addresses are verified with a link: use verify_email."),
    _unsent("reset_email_by_code", "New password by code", "passwords are set with a link: use reset_email."),
    Kind(
        "enrollment_email",
        "Setup of a second factor",
        "Sent when an administrator requests it: a link with which the user sets up a second factor.",
        built_in="enrollment_email",
        variables={**_LINK, **_UNTIL},
        is_always_sent=True,
        has_link=True,
        default_life="5 days",
    ),
    Kind(
        "mfa_oob_code",
        "Code of a second factor",
        "The code that a login requires after the password.",
        built_in="mfa_oob_code",
        variables=_CODE,
        is_always_sent=True,
    ),
    Kind(
        "async_approval",
        "Approval of a request",
        "Tells a user that an application requests an approval (CIBA): a link to the page that shows the request.",
        built_in="async_approval",
        variables={**_LINK, **_UNTIL, **_APPROVAL},
        is_always_sent=True,
    ),
    _unsent("change_password", "Change of a password", "the old name of reset_email: use reset_email."),
    _unsent("password_reset", "Reset of a password", "the old name of reset_email: use reset_email."),
    Kind(
        "new_device",
        "Login with a new browser",
        "Sent after the first step of a login with a new browser, if Sign-in settings enable the message. It contains a link to set a new "
        "password.",
        built_in="new_device",
        variables={**_MAYBE_LINK, **_UNTIL, **_SOURCE, **_LOGIN},
        is_public=False,
        has_link=True,
        default_life="24 hours",
    ),
    Kind(
        "passwordless_email",
        "Login without a password",
        "A code or a link that logs a user in. A connection can have its own text, which is sent instead.",
        built_in="passwordless_email",
        variables=_PASSWORDLESS,
        is_always_sent=True,
        is_public=False,
    ),
    Kind(
        "passwordless_sms",
        "Login without a password",
        "A code or a link that logs a user in. A connection can have its own text, which is sent instead.",
        channel=SMS,
        built_in="passwordless_sms",
        variables=_PASSWORDLESS,
        is_always_sent=True,
        is_public=False,
    ),
    Kind(
        "mfa_sms",
        "Code of a second factor",
        "The code that a login requires after the password.",
        channel=SMS,
        built_in="mfa_sms",
        variables=_CODE,
        is_always_sent=True,
        is_public=False,
    ),
    Kind(
        "address_notice",
        "Changed email address",
        "Tells the former email address that the account has a new address. Not sent for imports or for accounts of other providers.",
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
# The names in `/email-templates`.
PUBLIC_NAMES = tuple(kind.name for kind in _ALL if kind.is_public)


def kind_of(name: str) -> Kind | None:
    """Return the kind with this name, or None."""
    return KINDS.get(name)
