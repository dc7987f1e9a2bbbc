"""Every hosted page in each of its states, in a real browser.

Each page is checked in the width of a phone and of a desktop, in light and dark mode, in three languages, with and without scripts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pytest_django.plugin import DjangoDbBlocker

from authapi.models import AccountTicket, DeviceGrant, Session
from tests.conformance.web_process import web_process
from tests.deadlines import eventually
from tests.depth import sample
from tests.factories.sign_in import PASSWORD, session_of
from tests.peers.chromium import PROGRAM
from tests.peers.hosted import account, approvals, devices, factors, further, passkeys, tickets, visits
from tests.peers.hosted.keyboard import Keyboard
from tests.peers.hosted.walk import AXE, Walk, foreign_texts
from tests.peers.hosted.world import EMAIL, LANGUAGES, World, new_world

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(PROGRAM is None or not AXE.exists(), reason="chromium or axe-core is not installed: make test-peers"),
]

TEMPLATES = Path(__file__).resolve().parents[2] / "templates" / "hosted"
# Pages that the visit of another page also checks.
ON_THE_WAY = {
    *("mfa_list.html", "mfa_recovery.html", "mfa_new_code.html"),
    *("mfa_enroll_address.html", "mfa_enroll_app.html", "mfa_enroll_key.html"),
}
# Templates that are parts of pages, and pages that the admin shows in a frame. `tests/peers/test_admin_console.py` checks these pages.
PARTS = {"base.html", "back_to_application.html", "errors.html", "form_of_login.html", "preview.html", "preview_providers.html"}
VISITS: dict[str, visits.Visit] = {
    "login.html": visits.log_in,
    "login.html, with every login method": visits.log_in_in_every_way,
    "login.html, of a remembered account": visits.log_in_again,
    "login.html, with passkeys": passkeys.log_in,
    "passkey.html": passkeys.offer,
    "sign_up.html": visits.sign_up,
    "reset_password_request.html": visits.ask_for_reset,
    "reset_password.html": visits.reset_password,
    "unblock.html": visits.unblock,
    "email_verification.html": tickets.verify_email,
    "consent.html": visits.consent,
    "activate.html": devices.activate,
    "device_result.html": devices.answer,
    "device_code.html": devices.show_code,
    "approval_result.html": approvals.approve,
    "consent.html, of an application that registered itself": devices.register_and_log_in,
    "organization.html": visits.organization,
    "select_account.html": visits.select_account,
    "logout.html": visits.log_out,
    "authorize_error.html": visits.refused,
    "passwordless.html": further.code_by_email,
    "passwordless.html, by text message": further.code_by_text_message,
    "passwordless_code.html": further.code_by_email,
    "passwordless_confirm.html": further.link_in_another_browser,
    "passwordless_link.html": further.dead_link,
    "mfa_code.html": factors.prove,
    "mfa_key.html": factors.prove_with_a_key,
    "mfa_enroll.html": factors.set_up,
    "factor_setup.html": factors.set_up_by_link,
    "mfa_enroll.html, by a link for a user who has a factor": factors.add_by_link,
    "link_account.html": further.link_account,
    "cross_origin_verification.html": further.cross_origin,
    "form_post.html": further.answer_by_form,
    "web_message.html": further.answer_by_message,
    "connection_test.html": further.connection_test,
    "invitation.html": further.invitation,
    "invitation_over.html": further.invitation_over,
    "logout_frames.html": further.log_out_of_federated_applications,
    "account/profile.html": account.enter,
    "account/overview.html": account.look_around,
    "account/page.html, with rows": account.look_at_rows,
    "account/password.html": account.change,
    "account/add_method.html": account.add_factors,
}
# Each language with and without scripts. Consecutive elements differ in the language and in the use of scripts. So a sample of two
# consecutive elements contains a browser with scripts and a browser without scripts.
BROWSERS = [(language, number % 2 == 0) for number, language in enumerate(LANGUAGES * 2)]


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    """Return a server and a browser that all visits share. No visit uses an account that another visit changes."""
    with django_db_blocker.unblock(), new_world() as made:
        yield made


@pytest.fixture
def pictures() -> Path | None:
    """Return the directory for pictures of all states, which `PICTURES_OF_PAGES` names, or None to take no pictures."""
    wanted = os.environ.get("PICTURES_OF_PAGES")
    return Path(wanted) if wanted else None


@pytest.mark.sized
@pytest.mark.parametrize(
    ("name", "language", "has_script"),
    [
        pytest.param(name, language, has_script, id=f"{name}-{language}-{'script' if has_script else 'plain'}")
        for name in VISITS
        for language, has_script in sample(BROWSERS, name, 2)
    ],
)
def test_a_page_is_complete_in_each_width_and_color_scheme_and_language(
    world: World, name: str, language: str, has_script: bool, pictures: Path | None
) -> None:
    walk = Walk(world, language, has_script=has_script, pictures=pictures)
    VISITS[name](walk)
    assert walk.looks


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_about_too_many_requests_uses_the_language_of_the_browser(
    world: World, flooded: str, language: str, pictures: Path | None
) -> None:
    walk = Walk(replace(world, service=flooded), language, has_script=True, pictures=pictures)
    eventually(lambda: _is_refused_after_a_flood(walk))
    walk.look("Too many requests", "There were too many requests in a short time. Wait a minute, then try again.", status=429)


@pytest.fixture(scope="module")
def flooded(world: World) -> Iterator[str]:
    """Start a server that refuses more than one request per second from an address, and yield its URL."""
    figures = ("ADDRESS_RATE_PER_SECOND", "ADDRESS_RATE_BURST", "ANONYMOUS_RATE_PER_SECOND")
    with web_process("uvicorn", LOCALHOST_TENANT=world.tenant.pk, **dict.fromkeys(figures, "1")) as web:
        yield f"http://127.0.0.1:{web.address[1]}"


def _is_refused_after_a_flood(walk: Walk) -> bool:
    walk.open(f"{walk.world.origin}/callback")
    page = json.dumps(f"{walk.world.service}/u/logged-out")
    walk.page.evaluate(f"Promise.all(Array.from({{length: 20}}, () => fetch({page}, {{mode: 'no-cors'}}))).then(() => true)")
    walk.open("/u/logged-out")
    return bool(walk.status() == 429)


def test_every_template_of_a_page_is_visited() -> None:
    visited = {name.partition(",")[0] for name in VISITS} | PARTS | ON_THE_WAY
    assert {file.name for file in TEMPLATES.glob("*.html")} - visited == set()


def test_the_language_check_finds_a_text_of_another_language() -> None:
    assert foreign_texts(["Log in", "Continue to Zettelkasten", "ada@example.test", "12:30"], "en") == []
    assert foreign_texts(["Log in", "Anmelden", "Weiter zu Zettelkasten"], "de") == ["Log in"]
    assert foreign_texts(["Anmelden"], "en") == ["Anmelden"]


# --- Keyboard only ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(params=[True, False], ids=["script", "plain"])
def walk(world: World, request: pytest.FixtureRequest) -> Walk:
    """Return a user who has a phone and a keyboard. The language of the user is written from right to left."""
    walk = Walk(world, "ar", has_script=request.param)
    walk.page.show_as(width=360, height=740)
    return walk


def test_a_user_can_log_in_with_the_keyboard_alone(walk: Walk) -> None:
    walk.ask("plain")
    keyboard = Keyboard(walk)
    keyboard.go_to("[name=username]")
    keyboard.write(EMAIL)
    # A page with an error sets the focus on the field to correct, which is the password here.
    for password, is_in in (("wrong", False), (PASSWORD, True)):
        keyboard.go_to("[name=password]")
        keyboard.write(password)
        keyboard.go_to("button[type=submit]")
        keyboard.press(" ")
        assert keyboard.has_landed() is is_in


def test_a_user_can_connect_a_device_with_the_keyboard_alone(walk: Walk) -> None:
    code = devices.new_code(walk)
    walk.open("/activate")
    keyboard = Keyboard(walk)
    for typed in ("BBBB-BBBB", code.lower()):
        keyboard.go_to("[name=user_code]")
        keyboard.write(typed)
        keyboard.press("Enter")
    keyboard.go_to("[name=username]")
    keyboard.write(EMAIL)
    keyboard.go_to("[name=password]")
    keyboard.write(PASSWORD)
    keyboard.press("Enter")
    keyboard.go_to("button[value=allow]")
    keyboard.press(" ")
    eventually(lambda: DeviceGrant.objects.of(walk.world.tenant.pk).latest("pk").status == DeviceGrant.AUTHORIZED)


def test_a_user_can_log_another_device_out_with_the_keyboard_alone(walk: Walk) -> None:
    user = walk.world.another_person(walk.unique("keys-account"))
    other, _ = session_of(user)
    walk.log_in_silently(user)
    walk.open("/account")
    keyboard = Keyboard(walk)
    keyboard.go_to("a[href='/account/sessions']")
    keyboard.press("Enter")
    keyboard.go_to(".rows button")
    keyboard.press(" ")
    eventually(lambda: not Session.objects.of(user.tenant_id).filter(pk=other.pk).exists())


def test_a_user_can_sign_up_with_the_keyboard_alone(walk: Walk) -> None:
    walk.ask("plain")
    keyboard = Keyboard(walk)
    keyboard.go_to("a[href*='/u/signup']")
    keyboard.press("Enter")
    keyboard.go_to("[name=email]")
    keyboard.write(walk.unique("keys"))
    keyboard.go_to("[name=password]")
    keyboard.write(PASSWORD)
    keyboard.press("Enter")
    assert keyboard.has_landed()


def test_a_user_can_set_a_new_password_with_the_keyboard_alone(walk: Walk) -> None:
    user = walk.world.another_person(walk.unique("keys-reset"))
    walk.ask("plain")
    keyboard = Keyboard(walk)
    keyboard.go_to("a[href*='/u/reset-password/request']")
    keyboard.press("Enter")
    keyboard.go_to("[name=username]")
    keyboard.write(user.email or "")
    keyboard.go_to("button[type=submit]")
    keyboard.press("Enter")
    keyboard.go_to("a[href*='/u/login']")
    walk.open(tickets.ticket_link(walk.world, user, AccountTicket.Purpose.PASSWORD_RESET))
    for name in ("password", "repeated"):
        keyboard.go_to(f"[name={name}]")
        keyboard.write(f"{PASSWORD}-3")
    keyboard.go_to("button[type=submit]")
    keyboard.press(" ")
    keyboard.go_to("main a.button")
    user.refresh_from_db()
    assert AccountTicket.objects.of(user.tenant_id).filter(user=user, used_at__isnull=False).exists()


def test_a_user_can_log_in_with_a_code_and_the_keyboard_alone(walk: Walk) -> None:
    walk.ask("by code")
    keyboard = Keyboard(walk)
    keyboard.go_to("[name=email]")
    keyboard.write(walk.unique("keys-code"))
    keyboard.press("Enter")
    keyboard.go_to("[name=code]")
    keyboard.write(further.last_message(walk.world, walk.unique("keys-code")).code)
    keyboard.go_to("button[type=submit]")
    keyboard.press(" ")
    assert keyboard.has_landed()


def test_a_user_can_set_up_an_app_with_the_keyboard_alone(walk: Walk) -> None:
    user = walk.world.another_person(walk.unique("keys-factor"))
    walk.ask("demanding")
    walk.submit_login(user.email or "")
    keyboard = Keyboard(walk)
    keyboard.go_to("button[value=totp]")
    keyboard.press("Enter")
    secret = walk.page.text(".key").replace(" ", "")
    for code, path in (("000000", "/u/mfa-enroll"), (factors.code_now(secret), "/u/mfa/recovery-code")):
        keyboard.go_to("[name=code]")
        keyboard.write(code)
        keyboard.press("Enter")
        assert walk.page.evaluate("location.pathname") == path
    keyboard.go_to("[name=saved]")
    walk.page.press(" ")
    keyboard.go_to("button[type=submit]")
    keyboard.press("Enter")
    assert keyboard.has_landed()
