"""Sessions of staff for tests: functions that sign in by the form, make a proof older, and read the options of a passkey."""

from __future__ import annotations

import time
from typing import Any

from django.test import Client
from django.urls import reverse

from identity.models import Staff
from tests.factories.admin import PASSWORD
from tests.factories.authenticator import Authenticator

FACTOR = "/admin/login/factor/"
START = "/admin/"


def give_password(browser: Client, staff: Staff, following: str = START) -> str:
    """Submit the form with the password. Return the URL of the redirect."""
    answer = browser.post(reverse("admin:login"), {"username": staff.email, "password": PASSWORD, "next": following})
    return str(answer.headers.get("location", answer.content.decode()))


def is_in(browser: Client) -> bool:
    """Report whether the browser is signed in."""
    return browser.get(START).status_code == 200


def grow_old(browser: Client, *, minutes: float = 16) -> None:
    """Move the last proof of a session into the past."""
    session = browser.session
    session["proof"] = {**session["proof"], "at": int(time.time() - minutes * 60)}
    session.save()


def options(browser: Client, name: str, query: str = "") -> dict[str, Any]:
    """Return the options that the service sends for a passkey."""
    answer = browser.post(reverse(f"admin:{name}") + query)
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def add_passkey(browser: Client, authenticator: Authenticator | None = None, name: str = "Passkey") -> Authenticator:
    """Enroll a passkey on the page, as a signed-in browser does."""
    authenticator = authenticator or Authenticator()
    made = authenticator.made(options(browser, "account_passkey_options"))
    browser.post(reverse("admin:account_passkey"), {"name": name, "credential": made})
    return authenticator
