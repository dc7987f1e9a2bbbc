"""What a client requests of a login, and what the client gets, in terms that all protocols share. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from authapi.failures import RequestRefused


class Prompt(Enum):
    """A page that a client requests, even if the login does not need it."""

    LOGIN = auto()
    CREATE = auto()
    SELECT_ACCOUNT = auto()
    CONSENT = auto()


@dataclass(frozen=True)
class UserHint:
    """The user that a client expects. `refusal` is the error for an unreadable hint; the login raises this error when it compares users."""

    user_id: str = ""
    refusal: RequestRefused | None = None

    def names(self, user_id: str) -> bool:
        """Tell whether the hint names this user. Raises `RequestRefused` for an unreadable hint."""
        if self.refusal is not None:
            raise self.refusal
        return self.user_id == user_id


@dataclass(frozen=True)
class Presentation:
    """How the pages of a login are shown.

    `languages` are the client's preferred languages, best first. `form_target` is a source for `form-action` in the content policy: with
    this source, the response to a form may redirect the browser to the client. `keeps_opener` is for a login in a window that the
    application opened and listens to.
    """

    form_target: str
    languages: tuple[str, ...] = ()
    keeps_opener: bool = False


@dataclass(frozen=True)
class Wish:
    """What the login must do before it answers. Absent texts are empty.

    `refusal` is the reason why the client's request cannot be granted. The login raises this refusal before it uses another member, so the
    other members may be left out. Only `presentation` is always needed, because a page that is already open still uses it.
    """

    presentation: Presentation
    refusal: RequestRefused | None = None
    connection: str = ""
    organization: str = ""
    # The ticket of an invitation to the organization.
    invitation: str = field(default="", repr=False)
    prompts: frozenset[Prompt] = frozenset()
    # Maximum seconds since the user's last login; the user must repeat an older login. 0 always demands a new login.
    max_age: int | None = None
    # Whether no page may be shown: the login then answers or refuses at once.
    is_silent: bool = False
    # Whether a user without a session sees the sign-up page first.
    prefers_sign_up: bool = False
    user_hint: UserHint | None = None
    # Ids of the users who may log in; empty for all users.
    subjects: frozenset[str] = frozenset()
    # For a login that links accounts: the id of the user to whom the account of this login is linked. Empty for other logins.
    link_to: str = ""
    # The expected user name. Forms show this name, and the service sends it to providers.
    login_hint: str = ""
    # Contexts of authentication that the client requests, best first (`acr_values`, `RequestedAuthnContext`; `authapi.tokens.contexts`).
    factors: tuple[str, ...] = ()
    # If true, a login that meets none of `factors` fails.
    requires_factors: bool = False
    # Whether the login always requires a second factor, because the tokens of this login let the client manage factors.
    asks_for_factor: bool = False
    # Parameters of the client's request by their wire names. A connection may pass some of these parameters to its provider.
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Passage:
    """A part of a sentence: words of the tenant, or a value from a client. Pages highlight the values."""

    text: str
    is_value: bool = False


@dataclass(frozen=True)
class Explanation:
    """One permission that a user allows, in words: a title, an optional sentence, and labeled members that the sentence omits."""

    title: str
    sentence: tuple[Passage, ...] = ()
    members: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Circumstance:
    """A fact by which a user recognizes their own login. If the fact is a code, the page shows it in large characters."""

    label: str
    text: str
    is_code: bool = False


@dataclass(frozen=True)
class Terms:
    """What the client gets for one user, and the permissions that the user must grant first.

    A consent is stored for an `audience` and `scopes`. Without scopes no consent is needed. `texts` describes the scopes, and `resource`
    names their API, empty for the profile of the user.
    """

    audience: str = ""
    scopes: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    resource: str = ""
    # Whether first-party clients get these terms without a consent.
    is_implied_for_first_party: bool = True
    # Objects that the user allows one by one, and single claims of the profile that no scope contains. A consent stores these, too.
    details: tuple[Mapping[str, Any], ...] = ()
    claims: tuple[str, ...] = ()
    # The objects of `details` in words. Pages show them for first-party clients, too: users must see what they allow.
    explanations: tuple[Explanation, ...] = ()
    # The facts that the consent page shows next to the scopes, if another person may have begun the login.
    circumstances: tuple[Circumstance, ...] = ()
    # A warning in one or two sentences: what the user should check before allowing the request.
    warning: str = ""
