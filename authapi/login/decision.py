"""What must happen next on the way to an answer. Pure: what is known of the browser comes in, one step goes out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.login.wish import Prompt, Wish


class Step(Enum):
    """The page that is due, or the answer."""

    ORGANIZATION = auto()
    LOGIN = auto()
    CREATE = auto()
    SELECT_ACCOUNT = auto()
    INVITATION = auto()
    CONSENT = auto()
    LINK = auto()
    RESPOND = auto()


class Question(Enum):
    """When people are asked for the organization that a request leaves open."""

    BEFORE_LOGIN = auto()
    AFTER_LOGIN = auto()


class Offer(Enum):
    """What has become of the invitation that a request brings, as long as the user at hand has not accepted it."""

    OPEN = auto()
    # Accepted by another user, expired, revoked, or not there at all.
    GONE = auto()


@dataclass(frozen=True)
class Situation:
    """What is known of the person at the browser.

    `is_usable` tells whether the session may be used for this request at all: its connection is enabled for the client and
    is the one that the wish names, and the user hint, where there is one, is about the same user.
    """

    has_session: bool = False
    is_usable: bool = False
    # Whether a login at another client counts at this one, or none is needed since the client takes part already.
    is_own: bool = True
    # Seconds since the user proved who they are.
    age: float = 0.0
    # What happened on the pages of this very request.
    has_logged_in: bool = False
    has_selected: bool = False
    has_consented: bool = False
    has_agreed_to_link: bool = False
    needs_consent: bool = False
    # What is still to be asked about organizations.
    question: Question | None = None
    # The invitation that the request brings, if it brings one.
    offer: Offer | None = None


def next_step(wish: Wish, situation: Situation) -> Step:
    """Return the step that is due now.

    Raises `RequestRefused` where a step is due and the wish is silent, and where the login that the client wanted has led
    to a user who may not be used here: asking once more would ask for ever (Core 1.0, 3.1.2.1, `id_token_hint`).
    """
    if situation.has_logged_in and not situation.is_usable:
        raise RequestRefused(LoginCase.LOGIN_REQUIRED)
    step = _step(wish, situation)
    if wish.is_silent and step is not Step.RESPOND:
        raise RequestRefused(_SILENT_REFUSALS.get(step, LoginCase.LOGIN_REQUIRED) if situation.has_session else LoginCase.LOGIN_REQUIRED)
    return step


_SILENT_REFUSALS = {
    Step.CONSENT: LoginCase.CONSENT_REQUIRED,
    Step.ORGANIZATION: LoginCase.INTERACTION_REQUIRED,
    Step.INVITATION: LoginCase.INTERACTION_REQUIRED,
    Step.LINK: LoginCase.INTERACTION_REQUIRED,
}


def _step(wish: Wish, situation: Situation) -> Step:
    return _step_before_login(wish, situation) or _step_after_login(wish, situation)


def _step_before_login(wish: Wish, situation: Situation) -> Step | None:
    if situation.offer is Offer.GONE:
        # The page says so before people log in for nothing.
        return Step.INVITATION
    if wish.link_to and not (situation.has_agreed_to_link or situation.has_logged_in):
        return Step.LINK
    if situation.question is Question.BEFORE_LOGIN:
        return Step.ORGANIZATION
    if _must_log_in(wish, situation):
        return Step.CREATE if _wants_sign_up(wish, situation) else Step.LOGIN
    return None


def _step_after_login(wish: Wish, situation: Situation) -> Step:
    if Prompt.SELECT_ACCOUNT in wish.prompts and not (situation.has_selected or situation.has_logged_in):
        return Step.SELECT_ACCOUNT
    if situation.offer is Offer.OPEN:
        return Step.INVITATION
    if situation.question is Question.AFTER_LOGIN:
        return Step.ORGANIZATION
    if not situation.has_consented and (situation.needs_consent or Prompt.CONSENT in wish.prompts):
        return Step.CONSENT
    return Step.RESPOND


def _wants_sign_up(wish: Wish, situation: Situation) -> bool:
    """Tell whether people see the sign-up first; those who are invited mostly have no account yet."""
    is_invited = situation.offer is Offer.OPEN and Prompt.LOGIN not in wish.prompts
    return Prompt.CREATE in wish.prompts or wish.prefers_sign_up or is_invited


def _must_log_in(wish: Wish, situation: Situation) -> bool:
    if not situation.has_session or not situation.is_usable:
        return True
    if situation.has_logged_in:
        return False
    if wish.prompts & {Prompt.LOGIN, Prompt.CREATE} or not situation.is_own:
        return True
    # Core 1.0, 3.1.2.1: older than max_age is to be proven anew; 0 always is.
    return wish.max_age is not None and (wish.max_age == 0 or situation.age > wish.max_age)
