"""The next step of a login, for every situation and every value of `prompt`."""

from __future__ import annotations

from typing import Any

import pytest

from authapi.factors.policy import Due
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.login.decision import Offer, Situation, Step, next_step
from authapi.login.wish import Presentation, Prompt, Wish

NO_SESSION = Situation()
LOGGED_IN = Situation(has_session=True, is_usable=True, age=100)


def wish(*prompts: Prompt, **changes: Any) -> Wish:
    return Wish(Presentation("https:"), prompts=frozenset(prompts), **changes)


def at(situation: Situation, **changes: Any) -> Situation:
    return Situation(**{**vars(situation), **changes})


STEPS: dict[str, tuple[Wish, Situation, Step]] = {
    "no session": (wish(), NO_SESSION, Step.LOGIN),
    "a session": (wish(), LOGGED_IN, Step.RESPOND),
    "the session belongs to another connection or user": (wish(), at(LOGGED_IN, is_usable=False), Step.LOGIN),
    "a login is requested": (wish(Prompt.LOGIN), LOGGED_IN, Step.LOGIN),
    "the requested login has happened": (wish(Prompt.LOGIN), at(LOGGED_IN, has_logged_in=True), Step.RESPOND),
    "the login is too weak": (wish(requires_factors=True), at(LOGGED_IN, meets_factors=False), Step.LOGIN),
    "a new login has replaced the weak one": (wish(requires_factors=True), at(LOGGED_IN, has_logged_in=True), Step.RESPOND),
    "a sign-up is requested": (wish(Prompt.CREATE), LOGGED_IN, Step.CREATE),
    "the requested sign-up has happened": (wish(Prompt.CREATE), at(LOGGED_IN, has_logged_in=True), Step.RESPOND),
    "a sign-up is preferred": (wish(prefers_sign_up=True), NO_SESSION, Step.CREATE),
    "a sign-up is preferred and there is a session": (wish(prefers_sign_up=True), LOGGED_IN, Step.RESPOND),
    "the login is recent enough": (wish(max_age=100), LOGGED_IN, Step.RESPOND),
    "the login is too old": (wish(max_age=99), LOGGED_IN, Step.LOGIN),
    "a max_age of 0 makes every login too old": (wish(max_age=0), at(LOGGED_IN, age=0), Step.LOGIN),
    "a new login has replaced the old one": (wish(max_age=0), at(LOGGED_IN, age=5, has_logged_in=True), Step.RESPOND),
    "a choice of account is requested": (wish(Prompt.SELECT_ACCOUNT), LOGGED_IN, Step.SELECT_ACCOUNT),
    "a choice of account is requested and there is no session": (wish(Prompt.SELECT_ACCOUNT), NO_SESSION, Step.LOGIN),
    "the user has chosen an account": (wish(Prompt.SELECT_ACCOUNT), at(LOGGED_IN, has_selected=True), Step.RESPOND),
    "a new login has chosen the account": (wish(Prompt.SELECT_ACCOUNT), at(LOGGED_IN, has_logged_in=True), Step.RESPOND),
    "consent is required": (wish(), at(LOGGED_IN, needs_consent=True), Step.CONSENT),
    "consent is requested but not required": (wish(Prompt.CONSENT), LOGGED_IN, Step.CONSENT),
    "the user has consented": (wish(Prompt.CONSENT), at(LOGGED_IN, has_consented=True), Step.RESPOND),
    "login comes before consent": (wish(Prompt.CONSENT, Prompt.LOGIN), LOGGED_IN, Step.LOGIN),
    "consent comes after login": (wish(Prompt.CONSENT, Prompt.LOGIN), at(LOGGED_IN, has_logged_in=True), Step.CONSENT),
    "an invited user has no session": (wish(), at(NO_SESSION, offer=Offer.OPEN), Step.CREATE),
    "an invited user has to log in": (wish(Prompt.LOGIN), at(NO_SESSION, offer=Offer.OPEN), Step.LOGIN),
    "an invited user is logged in": (wish(), at(LOGGED_IN, offer=Offer.OPEN), Step.INVITATION),
    "an invited user chooses an account first": (wish(Prompt.SELECT_ACCOUNT), at(LOGGED_IN, offer=Offer.OPEN), Step.SELECT_ACCOUNT),
    "an invitation comes before consent": (wish(Prompt.CONSENT), at(LOGGED_IN, offer=Offer.OPEN), Step.INVITATION),
    "an invitation has ended and there is no session": (wish(), at(NO_SESSION, offer=Offer.GONE), Step.INVITATION),
    "an invitation has ended": (wish(Prompt.LOGIN), at(LOGGED_IN, offer=Offer.GONE), Step.INVITATION),
    "a second factor is required": (
        wish(Prompt.SELECT_ACCOUNT, Prompt.CONSENT),
        at(LOGGED_IN, second_factor=Due.PROVE),
        Step.SECOND_FACTOR,
    ),
    "a second factor is required and the session belongs to another user": (
        wish(),
        at(LOGGED_IN, is_usable=False, second_factor=Due.PROVE),
        Step.LOGIN,
    ),
    "a factor has to be set up": (wish(), at(LOGGED_IN, second_factor=Due.ENROLL), Step.ENROLLMENT),
    "a factor has to be set up in an old session": (wish(), at(LOGGED_IN, age=601, second_factor=Due.ENROLL), Step.LOGIN),
    "a factor has to be set up after a login": (
        wish(),
        at(LOGGED_IN, age=601, has_logged_in=True, second_factor=Due.ENROLL),
        Step.ENROLLMENT,
    ),
    "a new recovery code is not saved yet": (wish(Prompt.CONSENT), at(LOGGED_IN, has_code_to_keep=True), Step.NEW_CODE),
    "a half-proven session cannot link accounts": (wish(link_to="auth0|1"), at(LOGGED_IN, second_factor=Due.PROVE), Step.SECOND_FACTOR),
    "a proven session sees the question about a link": (wish(link_to="auth0|1"), LOGGED_IN, Step.LINK),
    "a silent request with a session": (wish(is_silent=True), LOGGED_IN, Step.RESPOND),
}


@pytest.mark.parametrize("name", STEPS)
def test_each_situation_leads_to_the_expected_next_step(name: str) -> None:
    wanted, situation, step = STEPS[name]
    assert next_step(wanted, situation) is step


@pytest.mark.parametrize(
    ("situation", "case"),
    [
        (NO_SESSION, LoginCase.LOGIN_REQUIRED),
        (at(LOGGED_IN, is_usable=False), LoginCase.LOGIN_REQUIRED),
        (at(LOGGED_IN, needs_consent=True), LoginCase.CONSENT_REQUIRED),
        (at(LOGGED_IN, offer=Offer.OPEN), LoginCase.INTERACTION_REQUIRED),
        (at(NO_SESSION, offer=Offer.GONE), LoginCase.LOGIN_REQUIRED),
    ],
)
def test_a_silent_request_fails_if_a_page_would_be_required(situation: Situation, case: LoginCase) -> None:
    with pytest.raises(RequestRefused) as refused:
        next_step(wish(is_silent=True), situation)
    assert refused.value.case is case


def test_a_login_of_the_wrong_user_fails_without_a_second_attempt() -> None:
    with pytest.raises(RequestRefused) as refused:
        next_step(wish(), at(LOGGED_IN, is_usable=False, has_logged_in=True))
    assert refused.value.case is LoginCase.LOGIN_REQUIRED


def test_a_new_login_that_is_too_weak_fails_without_a_second_attempt() -> None:
    with pytest.raises(RequestRefused) as refused:
        next_step(wish(requires_factors=True), at(LOGGED_IN, has_logged_in=True, meets_factors=False))
    assert refused.value.case is LoginCase.FACTORS_NOT_MET


def test_a_silent_request_with_an_old_login_fails() -> None:
    with pytest.raises(RequestRefused) as refused:
        next_step(wish(is_silent=True, max_age=99), LOGGED_IN)
    assert refused.value.case is LoginCase.LOGIN_REQUIRED
