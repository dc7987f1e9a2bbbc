"""What a client wants of a login, and what it gets, in words that every protocol shares. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from authapi.failures import RequestRefused


class Prompt(Enum):
    """A page that a client asks for, even where the login could do without it."""

    LOGIN = auto()
    CREATE = auto()
    SELECT_ACCOUNT = auto()
    CONSENT = auto()


@dataclass(frozen=True)
class UserHint:
    """The user whom a client expects. `refusal` says why the hint cannot be read; the login raises it where the user is known."""

    user_id: str = ""
    refusal: RequestRefused | None = None

    def names(self, user_id: str) -> bool:
        """Tell whether the hint is about this user. Raises `RequestRefused` for a hint that cannot be read."""
        if self.refusal is not None:
            raise self.refusal
        return self.user_id == user_id


@dataclass(frozen=True)
class Presentation:
    """How the pages of a login are shown.

    `languages` are those the client prefers, best first. `form_target` is what a content policy must name so that the answer of
    a form may redirect to the client. `keeps_opener` is for logins in a window that the application has opened and listens to.
    """

    form_target: str
    languages: tuple[str, ...] = ()
    keeps_opener: bool = False


@dataclass(frozen=True)
class Wish:
    """What the login has to do before it may answer. Absent texts are empty.

    `refusal` is why the client's request cannot be granted; the login raises it before it uses any other member, so these may
    be left out. `presentation` counts in any case: a page that is open stays open.
    """

    presentation: Presentation
    refusal: RequestRefused | None = None
    connection: str = ""
    organization: str = ""
    # The ticket of an invitation to the organization.
    invitation: str = field(default="", repr=False)
    prompts: frozenset[Prompt] = frozenset()
    # Seconds since the user last proved who they are; an older proof has to be renewed, and 0 always has.
    max_age: int | None = None
    # No page may be shown: the login answers at once, or refuses.
    is_silent: bool = False
    # A user without a session sees the sign-up page first.
    prefers_sign_up: bool = False
    user_hint: UserHint | None = None
    # User ids of which one has to log in; empty where every user may.
    subjects: frozenset[str] = frozenset()
    # User id of the account to which the account that logs in is linked; empty for other logins.
    link_to: str = ""
    # What the user will type as their name; shown in forms and told to providers.
    login_hint: str = ""
    # Contexts of authentication that the client asks for, best first (`acr_values`, `RequestedAuthnContext`; `authapi.tokens.contexts`).
    factors: tuple[str, ...] = ()
    # A login that meets none of them has failed.
    requires_factors: bool = False
    # A second factor is asked for in any case: what the client gets rules factors.
    asks_for_factor: bool = False
    # Members of the client's request by their names on the wire, of which a connection may pass some on to its provider.
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Passage:
    """A part of a sentence. What came from a client is a value: a page sets it apart from the words of the tenant."""

    text: str
    is_value: bool = False


@dataclass(frozen=True)
class Explanation:
    """One thing that a user allows, for people: a title, a sentence where there is one, and by label what the sentence leaves out."""

    title: str
    sentence: tuple[Passage, ...] = ()
    members: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Circumstance:
    """One fact that helps a person to tell whether they asked for the login themselves. A code is shown in large characters."""

    label: str
    text: str
    is_code: bool = False


@dataclass(frozen=True)
class Terms:
    """What the client gets for one user, and what the user allows by that.

    A consent is remembered for an `audience` and `scopes`; without scopes there is nothing to ask for. `texts` says in words
    what the scopes allow, and `resource` names the API that they are for, empty for the profile of the user.
    """

    audience: str = ""
    scopes: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    resource: str = ""
    # Clients of the tenant itself get it without a question.
    is_implied_for_first_party: bool = True
    # Objects that the user allows one by one, and single claims of the profile beside those of the scopes. They are remembered, too.
    details: tuple[Mapping[str, Any], ...] = ()
    claims: tuple[str, ...] = ()
    # The details in words. Clients of the tenant are asked for, too: seeing what is allowed is what details are for.
    explanations: tuple[Explanation, ...] = ()
    # What the consent page shows beside the scopes, where the person may not be the one who began the login.
    circumstances: tuple[Circumstance, ...] = ()
    # What the person should check before allowing it, in a sentence or two; shown as a warning.
    warning: str = ""
