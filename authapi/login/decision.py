"""What must happen next on the way to an answer. Pure: what is known of the browser comes in, one step goes out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from authapi.failures import Case, RequestRefused
from authapi.login.organizations import Question
from authapi.protocols.oauth.authorization_request import Asked


class Step(Enum):
    """The page that is due, or the answer."""

    ORGANIZATION = auto()
    LOGIN = auto()
    CREATE = auto()
    SELECT_ACCOUNT = auto()
    CONSENT = auto()
    RESPOND = auto()


@dataclass(frozen=True)
class Situation:
    """What is known of the person at the browser.

    `is_usable` tells whether the session may be used for this request at all: its connection is enabled for the client and
    is the one that was asked for, and the id token hint, where there is one, is about the same user.
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
    needs_consent: bool = False
    # What is still to be asked about organizations.
    question: Question | None = None


def next_step(asked: Asked, situation: Situation) -> Step:
    """Return the step that is due now.

    Raises `RequestRefused` where a step is due and `prompt=none` forbids it, and where the login that was asked for has led
    to a user who may not be used here: asking once more would ask for ever (Core 1.0, 3.1.2.1, `id_token_hint`).
    """
    if situation.has_logged_in and not situation.is_usable:
        raise RequestRefused(Case.LOGIN_REQUIRED)
    step = _step(asked, situation)
    if asked.is_silent and step is not Step.RESPOND:
        raise RequestRefused(_SILENT_REFUSALS.get(step, Case.LOGIN_REQUIRED) if situation.has_session else Case.LOGIN_REQUIRED)
    return step


_SILENT_REFUSALS = {Step.CONSENT: Case.CONSENT_REQUIRED, Step.ORGANIZATION: Case.INTERACTION_REQUIRED}


def _step(asked: Asked, situation: Situation) -> Step:
    if situation.question is Question.BEFORE_LOGIN:
        return Step.ORGANIZATION
    if _must_log_in(asked, situation):
        is_new = "create" in asked.prompts or asked.screen_hint == "signup"
        return Step.CREATE if is_new else Step.LOGIN
    if "select_account" in asked.prompts and not (situation.has_selected or situation.has_logged_in):
        return Step.SELECT_ACCOUNT
    if situation.question is Question.AFTER_LOGIN:
        return Step.ORGANIZATION
    if not situation.has_consented and (situation.needs_consent or "consent" in asked.prompts):
        return Step.CONSENT
    return Step.RESPOND


def _must_log_in(asked: Asked, situation: Situation) -> bool:
    if not situation.has_session or not situation.is_usable:
        return True
    if situation.has_logged_in:
        return False
    if asked.prompts & {"login", "create"} or not situation.is_own:
        return True
    # Core 1.0, 3.1.2.1: older than max_age is to be proven anew; 0 always is.
    return asked.max_age is not None and (asked.max_age == 0 or situation.age > asked.max_age)
