"""What is due next, for every situation and every prompt."""

from __future__ import annotations

from typing import Any

import pytest

from authapi.protocols.oauth.authorization_request import Asked, Target
from authapi.login.decision import Situation, Step, next_step
from authapi.failures import Case, RequestRefused

NOBODY = Situation()
LOGGED_IN = Situation(has_session=True, is_usable=True, age=100)


def asked(prompt: str = "", **changes: Any) -> Asked:
    return Asked(Target("https://a.test", "query"), "c", frozenset({"code"}), prompts=frozenset(prompt.split()), **changes)


def at(situation: Situation, **changes: Any) -> Situation:
    return Situation(**{**vars(situation), **changes})


STEPS: dict[str, tuple[Asked, Situation, Step]] = {
    "nobody is there": (asked(), NOBODY, Step.LOGIN),
    "somebody is there": (asked(), LOGGED_IN, Step.RESPOND),
    "the session is of another connection or user": (asked(), at(LOGGED_IN, is_usable=False), Step.LOGIN),
    "login is wanted": (asked("login"), LOGGED_IN, Step.LOGIN),
    "login was wanted and done": (asked("login"), at(LOGGED_IN, has_logged_in=True), Step.RESPOND),
    "an account is to be made": (asked("create"), LOGGED_IN, Step.CREATE),
    "an account was made": (asked("create"), at(LOGGED_IN, has_logged_in=True), Step.RESPOND),
    "sign-up is hinted at": (asked(screen_hint="signup"), NOBODY, Step.CREATE),
    "sign-up is hinted at and somebody is there": (asked(screen_hint="signup"), LOGGED_IN, Step.RESPOND),
    "the login is young enough": (asked(max_age=100), LOGGED_IN, Step.RESPOND),
    "the login is too old": (asked(max_age=99), LOGGED_IN, Step.LOGIN),
    "every login is too old": (asked(max_age=0), at(LOGGED_IN, age=0), Step.LOGIN),
    "the login was too old and is new": (asked(max_age=0), at(LOGGED_IN, age=5, has_logged_in=True), Step.RESPOND),
    "an account is to be chosen": (asked("select_account"), LOGGED_IN, Step.SELECT_ACCOUNT),
    "an account is to be chosen and nobody is there": (asked("select_account"), NOBODY, Step.LOGIN),
    "an account was chosen": (asked("select_account"), at(LOGGED_IN, has_selected=True), Step.RESPOND),
    "an account was chosen by logging in": (asked("select_account"), at(LOGGED_IN, has_logged_in=True), Step.RESPOND),
    "consent is needed": (asked(), at(LOGGED_IN, needs_consent=True), Step.CONSENT),
    "consent is wanted though not needed": (asked("consent"), LOGGED_IN, Step.CONSENT),
    "consent was given": (asked("consent"), at(LOGGED_IN, has_consented=True), Step.RESPOND),
    "login comes before consent": (asked("consent login"), LOGGED_IN, Step.LOGIN),
    "consent comes after login": (asked("consent login"), at(LOGGED_IN, has_logged_in=True), Step.CONSENT),
    "a silent answer": (asked("none"), LOGGED_IN, Step.RESPOND),
}


@pytest.mark.parametrize("name", STEPS)
def test_each_situation_has_its_step(name: str) -> None:
    request, situation, step = STEPS[name]
    assert next_step(request, situation) is step


@pytest.mark.parametrize(
    ("situation", "case"),
    [
        (NOBODY, Case.LOGIN_REQUIRED),
        (at(LOGGED_IN, is_usable=False), Case.LOGIN_REQUIRED),
        (at(LOGGED_IN, needs_consent=True), Case.CONSENT_REQUIRED),
    ],
)
def test_a_silent_request_fails_where_a_page_would_be_due(situation: Situation, case: Case) -> None:
    with pytest.raises(RequestRefused) as refused:
        next_step(asked("none"), situation)
    assert refused.value.case is case


def test_a_login_as_somebody_else_than_was_hinted_at_is_refused_and_not_asked_for_again() -> None:
    with pytest.raises(RequestRefused) as refused:
        next_step(asked(), at(LOGGED_IN, is_usable=False, has_logged_in=True))
    assert refused.value.case is Case.LOGIN_REQUIRED


def test_a_silent_request_with_an_old_login_fails() -> None:
    with pytest.raises(RequestRefused) as refused:
        next_step(asked("none", max_age=99), LOGGED_IN)
    assert refused.value.case is Case.LOGIN_REQUIRED
