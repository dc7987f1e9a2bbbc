"""Decides the next step of a login from the known facts about the browser and its user. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from authapi.factors.policy import Due
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.login.wish import Prompt, Wish


class Step(Enum):
    """The page to show next, or the answer to the client (`RESPOND`)."""

    ORGANIZATION = auto()
    LOGIN = auto()
    CREATE = auto()
    SECOND_FACTOR = auto()
    ENROLLMENT = auto()
    NEW_CODE = auto()
    SELECT_ACCOUNT = auto()
    INVITATION = auto()
    CONSENT = auto()
    PASSKEY = auto()
    LINK = auto()
    RESPOND = auto()


class Question(Enum):
    """The point of a login at which users must choose an organization, if the request names none."""

    BEFORE_LOGIN = auto()
    AFTER_LOGIN = auto()


class Offer(Enum):
    """The state of the invitation in a request, until the user at the browser has accepted it."""

    OPEN = auto()
    # Accepted by another user, expired, revoked or unknown.
    GONE = auto()


@dataclass(frozen=True)
class Situation:
    """The known facts about the user at the browser.

    `is_usable` tells whether the session may be used for this request: its connection is allowed in this login, and its user is one of the
    users that the wish expects. If the wish names no users, every user is allowed.
    """

    has_session: bool = False
    is_usable: bool = False
    # Whether the session is valid for this client: the client has single sign-on, or already takes part in the session.
    is_own: bool = True
    # Whether the login meets one of the contexts that the wish requires, or will meet one after the required second factor. Also true if
    # the wish requires no context.
    meets_factors: bool = True
    # The second-factor step that the wish and the policies of tenant, client and organization require of this session.
    second_factor: Due = Due.NOTHING
    # A recovery code was created on the pages of this request, and the user has not confirmed yet that it is saved.
    has_code_to_keep: bool = False
    # Seconds since the user last logged in.
    age: float = 0.0
    # The following members describe only the pages of this request.
    has_logged_in: bool = False
    has_selected: bool = False
    has_consented: bool = False
    has_agreed_to_link: bool = False
    needs_consent: bool = False
    # Whether to offer a passkey to a user who has just logged in with a password.
    offers_passkey: bool = False
    # The question about organizations that the user must still answer, if there is one.
    question: Question | None = None
    # The state of the invitation in the request, None if the request has no invitation.
    offer: Offer | None = None


def next_step(wish: Wish, situation: Situation) -> Step:
    """Return the next step of a login.

    Raises `RequestRefused` if the wish is silent and a page is required, or if the required factors cannot be proven. Also raises
    `RequestRefused` if the user has just logged in, but the request expects another user or another connection. Otherwise the login page
    would be shown again and again (OpenID Connect Core 1.0, 3.1.2.1, `id_token_hint`).
    """
    if situation.has_logged_in and not situation.is_usable:
        raise RequestRefused(LoginCase.LOGIN_REQUIRED)
    if situation.has_logged_in and not situation.meets_factors:
        # OpenID Connect Core 1.0, 5.5.1.1: the login has failed. Another login would prove the same methods, so do not repeat the login.
        raise RequestRefused(LoginCase.FACTORS_NOT_MET)
    if situation.second_factor is Due.IMPOSSIBLE and not _must_log_in(wish, situation):
        raise RequestRefused(LoginCase.FACTORS_NOT_MET)
    step = _step(wish, situation)
    if wish.is_silent and step is not Step.RESPOND:
        raise RequestRefused(_SILENT_REFUSALS.get(step, LoginCase.LOGIN_REQUIRED) if situation.has_session else LoginCase.LOGIN_REQUIRED)
    return step


_SILENT_REFUSALS = {
    Step.SECOND_FACTOR: LoginCase.SECOND_FACTOR_REQUIRED,
    Step.ENROLLMENT: LoginCase.SECOND_FACTOR_REQUIRED,
    Step.CONSENT: LoginCase.CONSENT_REQUIRED,
    Step.ORGANIZATION: LoginCase.INTERACTION_REQUIRED,
    Step.INVITATION: LoginCase.INTERACTION_REQUIRED,
    Step.LINK: LoginCase.INTERACTION_REQUIRED,
}


_SECOND_STEPS = {Due.PROVE: Step.SECOND_FACTOR, Due.ENROLL: Step.ENROLLMENT}
# For this many seconds after a login with only the first factor, the user can enroll a second factor. In an older session, another person
# at the same browser could enroll their own factor.
_ENROLLS_WITHIN = 600.0


def _step(wish: Wish, situation: Situation) -> Step:
    return _step_before_login(wish, situation) or _step_after_login(wish, situation)


def _step_before_login(wish: Wish, situation: Situation) -> Step | None:
    if situation.offer is Offer.GONE:
        # Show the page of the invitation first, so that the user does not log in for an invalid invitation.
        return Step.INVITATION
    if wish.link_to and not (situation.has_agreed_to_link or situation.has_logged_in):
        # Before the user agrees to link the accounts, the user must prove the second factor, too.
        return _SECOND_STEPS.get(situation.second_factor, Step.LINK) if situation.is_usable else Step.LINK
    if situation.question is Question.BEFORE_LOGIN:
        return Step.ORGANIZATION
    if _must_log_in(wish, situation):
        return Step.CREATE if _wants_sign_up(wish, situation) else Step.LOGIN
    return Step.NEW_CODE if situation.has_code_to_keep else _SECOND_STEPS.get(situation.second_factor)


def _step_after_login(wish: Wish, situation: Situation) -> Step:
    if Prompt.SELECT_ACCOUNT in wish.prompts and not (situation.has_selected or situation.has_logged_in):
        return Step.SELECT_ACCOUNT
    if situation.offer is Offer.OPEN:
        return Step.INVITATION
    if situation.question is Question.AFTER_LOGIN:
        return Step.ORGANIZATION
    if not situation.has_consented and (situation.needs_consent or Prompt.CONSENT in wish.prompts):
        return Step.CONSENT
    # The offer of a passkey is optional. A silent request shows no page, so it succeeds without the offer.
    return Step.PASSKEY if situation.offers_passkey and not wish.is_silent else Step.RESPOND


def _wants_sign_up(wish: Wish, situation: Situation) -> bool:
    """Tell whether the user sees the sign-up page first. Invited users see this page, because most of them have no account yet."""
    is_invited = situation.offer is Offer.OPEN and Prompt.LOGIN not in wish.prompts
    return Prompt.CREATE in wish.prompts or wish.prefers_sign_up or is_invited


def _must_log_in(wish: Wish, situation: Situation) -> bool:
    if not situation.has_session or not situation.is_usable:
        return True
    if situation.has_logged_in:
        return False
    if wish.prompts & {Prompt.LOGIN, Prompt.CREATE} or not (situation.is_own and situation.meets_factors):
        return True
    if situation.second_factor is Due.ENROLL and situation.age > _ENROLLS_WITHIN:
        return True
    # OpenID Connect Core 1.0, 3.1.2.1: a login older than `max_age` must be repeated, and 0 always demands a new login.
    return wish.max_age is not None and (wish.max_age == 0 or situation.age > wish.max_age)
