"""What must happen next on the way to an answer. Pure: what is known of the browser comes in, one step goes out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from authapi.factors.policy import Due
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.login.wish import Prompt, Wish


class Step(Enum):
    """The page that is due, or the answer."""

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
    # Whether the login has met one of the contexts that the wish requires, or will with the second factor that is due; so has every
    # login where it requires none.
    meets_factors: bool = True
    # What the policies of tenant, client and organization, and the wish, demand of this session beyond the first proof.
    second_factor: Due = Due.NOTHING
    # A recovery code was made on the pages of this request, and the person has not yet said that they have it.
    has_code_to_keep: bool = False
    # Seconds since the user proved who they are.
    age: float = 0.0
    # What happened on the pages of this very request.
    has_logged_in: bool = False
    has_selected: bool = False
    has_consented: bool = False
    has_agreed_to_link: bool = False
    needs_consent: bool = False
    # Whether the person, who has just logged in with a password, may be asked to make a passkey.
    offers_passkey: bool = False
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
    if situation.has_logged_in and not situation.meets_factors:
        # Core 1.0, 5.5.1.1: a failed login, since another one would prove the same.
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
# Seconds after the first proof. An older session may lie open beside another person, who would enroll a factor of their own.
_ENROLLS_WITHIN = 600.0


def _step(wish: Wish, situation: Situation) -> Step:
    return _step_before_login(wish, situation) or _step_after_login(wish, situation)


def _step_before_login(wish: Wish, situation: Situation) -> Step | None:
    if situation.offer is Offer.GONE:
        # The page says so before people log in for nothing.
        return Step.INVITATION
    if wish.link_to and not (situation.has_agreed_to_link or situation.has_logged_in):
        # The person who agrees has proven the whole.
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
    # An offer and no demand: no request without pages fails for it.
    return Step.PASSKEY if situation.offers_passkey and not wish.is_silent else Step.RESPOND


def _wants_sign_up(wish: Wish, situation: Situation) -> bool:
    """Tell whether people see the sign-up first; those who are invited mostly have no account yet."""
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
    # Core 1.0, 3.1.2.1: older than max_age is to be proven anew; 0 always is.
    return wish.max_age is not None and (wish.max_age == 0 or situation.age > wish.max_age)
