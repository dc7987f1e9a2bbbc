"""A challenge for a passkey is valid for one response, one purpose and five minutes."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.contrib.sessions.backends.signed_cookies import SessionStore
from django.http import HttpRequest
from django.test import RequestFactory
from django.utils import timezone

from config.console.staff_account.challenges import Purpose, asked_to_sign, taken
from identity.factors.passkeys import PasskeyRefused


@pytest.fixture
def asked() -> HttpRequest:
    """A request whose session has a challenge for a sign-in."""
    request = RequestFactory().post("/admin/login/passkey/")
    request.session = SessionStore()
    asked_to_sign(request, Purpose.SIGN_IN)
    return request


def test_a_challenge_is_valid_for_one_response(asked: HttpRequest) -> None:
    assert len(taken(asked, Purpose.SIGN_IN)) >= 16
    with pytest.raises(PasskeyRefused):
        taken(asked, Purpose.SIGN_IN)


@pytest.mark.parametrize("purpose", [purpose for purpose in Purpose if purpose is not Purpose.SIGN_IN])
def test_a_challenge_for_another_purpose_is_refused_and_used_up(asked: HttpRequest, purpose: Purpose) -> None:
    with pytest.raises(PasskeyRefused):
        taken(asked, purpose)
    with pytest.raises(PasskeyRefused):
        taken(asked, Purpose.SIGN_IN)


def test_a_challenge_expires_after_five_minutes(asked: HttpRequest) -> None:
    with time_machine.travel(timezone.now() + timedelta(seconds=301)), pytest.raises(PasskeyRefused):
        taken(asked, Purpose.SIGN_IN)
