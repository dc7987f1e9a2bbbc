"""Sessions of the browser: when the user must log in again, and the content of the pages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import time_machine

from tests.conformance.openid.relying_party import RelyingParty


def test_oidcc_prompt_login(party: RelyingParty) -> None:
    with time_machine.travel(datetime.now(UTC), tick=False) as clock:
        before = party.logged_in()
        clock.shift(timedelta(seconds=2))
        # `logged_in` fails if no page asks for the password.
        after = party.logged_in(prompt="login")
    assert after.claims["auth_time"] > before.claims["auth_time"]
    assert after.claims["sub"] == before.claims["sub"]


def test_oidcc_prompt_none_not_logged_in(party: RelyingParty) -> None:
    assert party.error(party.authorize(prompt="none")) in ("login_required", "interaction_required")


def test_oidcc_prompt_none_logged_in(party: RelyingParty) -> None:
    before = party.logged_in()
    after = party.complete(party.authorize(prompt="none"))
    assert {name: after.claims[name] for name in ("sub", "auth_time")} == {name: before.claims[name] for name in ("sub", "auth_time")}


def test_oidcc_max_age_1(party: RelyingParty) -> None:
    with time_machine.travel(datetime.now(UTC), tick=False) as clock:
        before = party.logged_in()
        clock.shift(timedelta(seconds=2))
        after = party.logged_in(max_age="1")
    assert after.claims["auth_time"] > before.claims["auth_time"]


def test_oidcc_max_age_10000(party: RelyingParty) -> None:
    with time_machine.travel(datetime.now(UTC), tick=False) as clock:
        before = party.logged_in()
        clock.shift(timedelta(seconds=2))
        after = party.complete(party.authorize(max_age="10000"))
    assert after.claims["auth_time"] == before.claims["auth_time"]


def test_oidcc_id_token_hint(party: RelyingParty) -> None:
    before = party.logged_in()
    after = party.complete(party.authorize(prompt="none", id_token_hint=before.id_token))
    assert after.claims["sub"] == before.claims["sub"]


def test_oidcc_login_hint(party: RelyingParty) -> None:
    page = party.shown(party.authorize(login_hint="grace@example.test"))
    assert 'value="grace@example.test"' in page.text


def test_oidcc_ui_locales(party: RelyingParty) -> None:
    # A language that is not enabled does not prevent the login (Core 1.0, 3.1.2.1).
    page = party.authorize(ui_locales="se")
    assert '<html lang="en"' in party.shown(page).text
    assert party.complete(party.log_in(page)).claims["sub"]


def test_oidcc_display_page(party: RelyingParty) -> None:
    assert party.logged_in(display="page").claims["sub"]


def test_oidcc_display_popup(party: RelyingParty) -> None:
    assert party.logged_in(display="popup").claims["sub"]
