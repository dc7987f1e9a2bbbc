"""The structure and size of every hosted page. No page has inline code. `tests.authapi.browser` checks each page that any test visits."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import time_machine
from django.template.loader import render_to_string
from django.test import override_settings
from django.test.signals import template_rendered
from django.utils import timezone, translation

from authapi.accounts.handed_tickets import WayBack, create_password_ticket
from authapi.admin.branding_preview import _sample
from authapi.grants.ciba import GRANT as CIBA_GRANT
from authapi.grants.device_code import GRANT
from authapi.invitations import offers
from authapi.login.remembered_account import REMEMBERED
from authapi.models import AccountTicket, Invitation, TenantSettings
from authapi.protocols.account.sections import OVERVIEW, SECTIONS
from authapi.services import account_tickets
from authapi.services.api_resources import create_api_resource
from authapi.services.tenant_settings import update_tenant_settings
from authapi.tenant_settings import remembered_settings
from identity.mail.verification import issue_ticket, start_verification, token_of
from identity.models import EmailTicket
from identity.services.connections import create_connection, update_connection
from identity.services.memberships import add_connection, add_members
from identity.services.organizations import create_organization
from identity.services.users import link_users, update_user
from tests.authapi.browser import Browser, Page
from tests.authapi.factors.passkeys import pages_with_passkeys
from tests.authapi.factors.visited import added_setup_pages, challenge_pages, enrolment_pages, setup_pages
from tests.authapi.hosted_html import STATIC, Document, flaws
from tests.authapi.invitations.conftest import host_of
from tests.authapi.login.conftest import Login, set_client
from tests.authapi.passwordless.conftest import ADA, NUMBER, Door, set_options
from tests.authapi.passwordless.messages import last_code, last_contents
from tests.authapi.passwordless.test_pages import Visit
from tests.authapi.protocols.account.visited import adding_pages
from tests.authapi.protocols.ciba.conftest import CallCenter
from tests.authapi.protocols.device.conftest import Television
from tests.factories.identity import make_user
from tests.factories.models.authapi import ConsentFactory
from tests.factories.models.identity import EnrolledFactorFactory
from tests.factories.sign_in import PASSWORD, session_of, web_client

TEMPLATES = Path(__file__).resolve().parents[3] / "templates" / "hosted"
# `COMPONENTS` are parts of pages. `ALONE` are templates that are rendered here without a request, with the values that their views pass.
COMPONENTS = {"base.html", "back_to_application.html", "errors.html", "form_of_login.html"}
ALONE: dict[str, dict[str, Any]] = {
    "connection_test.html": {"is_success": True},
    "preview.html": {**_sample(has_messages=True), "brand": {"providers_first": True}},
    "link_account.html": {
        "user": {"email": "ada@example.test", "name": "", "username": "", "user_id": "auth0|1"},
        "client": {"name": "Web shop", "client_id": "c"},
    },
    "cross_origin_verification.html": {"action": "/co/verify", "ticket": "t", "frame": "https://app.example.test/co"},
    "logout_frames.html": {
        "next": "/u/logout/next?state=x",
        "addresses": ["https://app.example.test/?wa=wsignoutcleanup1.0"],
        "scripts": ["hosted/logout_frames.js"],
    },
}


def opened(visit: Login, name: str, **asked: Any) -> Page:
    """Open another page of a started login."""
    address = visit.ask(**asked).location
    return visit.browser.send("GET", re.sub(r"^/u/[a-z-]+", f"/u/{name}", address))


def consent(visit: Login) -> list[Page]:
    create_api_resource(tenant_id=visit.tenant.pk, identifier="urn:orders", scopes=[{"value": "read:orders", "description": "See orders"}])
    set_client(visit, is_first_party=False)
    return [visit.browser.follow(visit.log_in(visit.ask(audience="urn:orders", scope="openid read:orders")))]


def organization(visit: Login) -> list[Page]:
    for name in ("acme", "globex"):
        one = create_organization(tenant_id=visit.tenant.pk, name=name, display_name=name.title())
        add_connection(tenant_id=visit.tenant.pk, organization_id=one.pk, connection_id=visit.connection.pk)
        add_members(tenant_id=visit.tenant.pk, organization_id=one.pk, user_ids=[visit.user.user_id])
    set_client(visit, settings={"organization_usage": "require", "organization_require_behavior": "pre_login_prompt"})
    named = visit.browser.follow(visit.ask())
    wrong = visit.browser.submit(named, name="")
    set_client(visit, settings={"organization_usage": "allow", "organization_require_behavior": "post_login_prompt"})
    return [named, wrong, visit.browser.follow(visit.log_in(visit.ask()))]


def ticket_pages(visit: Login, purpose: AccountTicket.Purpose, path: str, **sent: str) -> list[Page]:
    _, secret = account_tickets.issue(user=visit.user, purpose=purpose, client=visit.client, email="ada@example.test")
    asked = visit.browser.get(path, {"ticket": secret})
    wrong = [visit.browser.post(path, {"ticket": secret, "password": "x", "repeated": "y"})] if sent else []
    done = visit.browser.post(path, {"ticket": secret, **sent})
    return [asked, *wrong, done, visit.browser.get(path, {"ticket": secret}), visit.browser.get(path, {"ticket": "unknown"})]


def handed_password(visit: Login) -> list[Page]:
    """Return the pages of a link that sets a password chosen by the application.

    The password rules of the connection change after the links were created. The changed rules refuse one of the two passwords.
    """
    kept, refused = (
        address_parts(create_password_ticket(user=visit.user, way_back=WayBack(), marks_verified=False, password=chosen))
        for chosen in (f"{PASSWORD}-3", PASSWORD)
    )
    update_connection(
        tenant_id=visit.tenant.pk, connection_id=visit.connection.pk, changes={"options": {"password_history": {"enable": True, "size": 3}}}
    )
    pages = [visit.browser.get(*refused), visit.browser.post(*refused), visit.browser.get(*kept), visit.browser.post(*kept)]
    assert [page.status for page in pages] == [200, 400, 200, 200]
    return pages


def address_parts(address: str) -> tuple[str, dict[str, str]]:
    parts = urlsplit(address)
    return parts.path, dict(parse_qsl(parts.query))


def verification(visit: Login) -> list[Page]:
    update_user(tenant_id=visit.tenant.pk, user_id=visit.user.user_id, changes={"email_verified": False})
    issue_ticket(start_verification(tenant_id=visit.tenant.pk, user_id=visit.user.user_id, client_id=visit.client.client_id))
    token = token_of(EmailTicket.objects.of(visit.tenant.pk).get())
    pages = [visit.browser.get("/u/email-verification", {"ticket": token})]
    pages.append(visit.browser.post("/u/email-verification", {"ticket": token}))
    return [*pages, *(visit.browser.get("/u/email-verification", {"ticket": one}) for one in (token, "unknown"))]


def invitation(visit: Login) -> list[Page]:
    host = host_of(logged_in(visit))
    row, other = host.invite("ada@example.test"), host.ask(host.invite())
    form = host.ask(row, prompt="login")
    update_user(tenant_id=visit.tenant.pk, user_id=visit.user.user_id, changes={"email_verified": False})
    unproven = host.log_in(form)
    sent = [host.answer(unproven, "mail") for _ in range(4)]
    update_user(tenant_id=visit.tenant.pk, user_id=visit.user.user_id, changes={"email_verified": True})
    pages = [other, unproven, sent[0], sent[-1], host.ask(row)]
    words = ("for another account", "not confirmed yet", "sent an email", "Too many emails", "Join Acme?")
    assert all(one in page.text for page, one in zip(pages, words, strict=True))
    return [*pages, form, host.ask(row, prompt="login", screen_hint="signup")]


def invitation_over(visit: Login) -> list[Page]:
    host, path = host_of(visit), "/u/invitation/open"
    row = host.invite()
    offers.revoke_invitation(tenant_id=host.tenant_id, organization_id=host.organization.pk, invitation_id=row.pk)
    pages = [host.ask("unknown"), host.browser.get(path, {"ticket": "unknown"})]
    for changes in ({}, {"revoked_at": None, "expires_at": timezone.now()}, {"accepted_at": timezone.now()}):
        Invitation.objects.of(host.tenant_id).filter(pk=row.pk).update(**changes)
        pages.append(host.ask(row))
    return pages


def passwordless(visit: Login) -> Visit:
    """Enable logins with a code by mail or by text message, for users of the same application."""
    enabled = [visit.client.client_id]
    email, sms = (
        create_connection(tenant_id=visit.tenant.pk, name=name, strategy=name, enabled_clients=enabled, options={})
        for name in ("email", "sms")
    )
    return Visit(Door(visit.tenant, visit.client, "", email, sms), visit.browser)


def code_pages(visit: Login) -> list[Page]:
    """Return the page that asks for a code, in seven states.

    Code sent by mail, wrong code, no code, new code requested too soon, new code sent, sign-up disabled, code sent by text message.
    """
    person = passwordless(visit)
    asked = person.enter_address(person.ask(connection="email"))
    wrong, empty = person.enter_code(asked, "000000"), person.enter_code(asked, "")
    soon = person.browser.submit(asked, again="1")
    with time_machine.travel(time.time() + 31):
        again = person.followed(person.browser.submit(asked, again="1"))
    set_options(person.door.email, disable_signup=True)
    few = person.enter_address(person.ask(connection="email"))
    with override_settings(SMS_SENDER={"kind": "console"}):
        number = person.enter_address(person.ask(connection="sms"), phone_number=NUMBER)
    return [asked, wrong, empty, soon, again, few, number]


def address_pages(visit: Login) -> list[Page]:
    """Return the page that asks for an email address or a phone number: empty, with a wrong email address, with a phone number, and for a
    remembered account."""
    person = passwordless(visit)
    email, sms = (person.ask(connection=name) for name in ("email", "sms"))
    wrong = [person.browser.submit(email, send="code", email="ada@"), person.browser.submit(sms, send="code", phone_number="12")]
    person.enter_code(person.enter_address(email), last_code(visit.tenant.pk))
    return [email, sms, *wrong, person.ask(connection="email", prompt="login")]


def link_pages(visit: Login) -> list[Page]:
    """Return the pages of a mailed link: waiting for the link, opened in another browser, used, incomplete, and the confirmation."""
    person = passwordless(visit)
    sent = person.enter_address(person.ask(connection="email"), send="link", email=ADA)
    path = "/u/passwordless/link?ticket=" + last_contents(visit.tenant.pk).link.partition("ticket=")[2]
    elsewhere = Login(visit.tenant, visit.client, visit.connection, visit.user, Browser(visit.tenant, address="203.0.113.50"))
    elsewhere.begin_session()
    asked = elsewhere.browser.follow(elsewhere.browser.send("GET", path))
    assert "code" in elsewhere.browser.submit(asked).answer
    dead = [visit.browser.send("GET", address) for address in (path, "/u/passwordless/link?ticket=x")]
    return [sent, asked, *dead, elsewhere.browser.send("GET", f"/u/passwordless/confirm?state={asked.fields()['state']}")]


def device_pages(visit: Login) -> list[Page]:
    """Return the pages of a login on a device: the code form (empty, filled in, wrong code), the question, `done`, `denied`, and the page
    for a device."""
    connection = visit.connection
    client, secret = web_client(visit.tenant, grant_types=[GRANT], token_endpoint_auth_method="none", redirect_uris="")
    update_connection(tenant_id=visit.tenant.pk, connection_id=connection.pk, changes={"enabled_clients": [client.client_id]})
    tv = Television(visit.tenant, client, secret, connection, visit.user, visit.browser)
    code = tv.begin()
    empty, filled = (visit.browser.get("/activate", asked) for asked in ({}, {"user_code": code}))
    wrong, asking = tv.enter("BBBB-BBBB"), tv.ask()
    ends = [visit.browser.get(f"/activate/{end}") for end in ("done", "denied")]
    return [empty, filled, wrong, asking, *ends, visit.browser.get("/activate/code", {"user_code": code})]


def approval_pages(visit: Login) -> list[Page]:
    """Return the pages of a CIBA approval: waiting for an answer, approved, denied, already answered, and unknown request."""
    grants = [CIBA_GRANT]
    client, secret = web_client(visit.tenant, grant_types=grants, token_endpoint_auth_method="client_secret_post", redirect_uris="")
    update_connection(tenant_id=visit.tenant.pk, connection_id=visit.connection.pk, changes={"enabled_clients": [client.client_id]})
    center = CallCenter(visit.tenant, client, secret, visit.connection, visit.user, visit.browser)
    link = center.begin()
    asking = center.open(link)
    approved = visit.browser.follow(visit.browser.submit(asking, answer="allow"))
    denied = visit.browser.follow(center.answer(center.begin(), "deny"))
    return [asking, approved, denied, visit.browser.get(link), visit.browser.get("/approve?ticket=x")]


def logged_in(visit: Login) -> Login:
    visit.begin_session()
    return visit


def account_pages(visit: Login) -> list[Page]:
    """Return every section of the account page with rows, and a refused form of each section."""
    tenant, user = visit.tenant, visit.user
    update_tenant_settings(tenant_id=tenant.pk, changes={"account_page": {"enabled": True, "deletion": True}})
    logged_in(visit)
    session_of(user)
    ConsentFactory.create(tenant_id=tenant.pk, user=user, client=visit.client, scopes=["openid"])
    other = make_user(connection=visit.connection, email="second@example.test")
    link_users(tenant_id=tenant.pk, primary_id=user.user_id, secondary_id=other.user_id)
    for kind in ("totp", "passkey"):
        EnrolledFactorFactory.create(tenant_id=tenant.pk, user=user, kind=kind)
    paths = [section.path for section in (OVERVIEW, *SECTIONS) if not section.parent]
    pages = [visit.browser.get(path) for path in paths]
    forms = {"form_token": pages[1].fields()["form_token"]}
    refused = [
        visit.browser.post(path, forms) for path in paths if path.endswith(("email", "password", "sessions", "delete", "identities"))
    ]
    assert ({page.status for page in pages}, {page.status for page in refused}) == ({200}, {400})
    code = visit.browser.post("/account/two-step", {**forms, "act": "recovery-code"})
    return [*pages, *refused, code, visit.browser.get("/account/deleted")]


VISITS: dict[str, Callable[[Login], list[Page]]] = {
    "login.html": lambda visit: [visit.browser.follow(visit.ask()), visit.log_in(visit.ask(), identifier="", password="")],
    "login.html, of a remembered account": lambda visit: [logged_in(visit).browser.follow(visit.ask(prompt="login"))],
    **dict.fromkeys(("login.html, with passkeys", "passkey.html"), pages_with_passkeys),
    "sign_up.html": lambda visit: [
        page := opened(visit, "signup"),
        visit.browser.post("/u/signup", {**page.fields(), "email": "", "password": ""}),
    ],
    "reset_password_request.html": lambda visit: [
        page := opened(visit, "reset-password/request"),
        visit.browser.post("/u/reset-password/request", {**page.fields(), "username": "ada@"}),
        visit.browser.post("/u/reset-password/request", {**page.fields(), "username": "ada@example.test"}),
    ],
    "reset_password.html": lambda visit: ticket_pages(
        visit, AccountTicket.Purpose.PASSWORD_RESET, "/u/reset-password", password=f"{PASSWORD}-2", repeated=f"{PASSWORD}-2"
    ),
    "reset_password.html, with a password chosen by the application": handed_password,
    "unblock.html": lambda visit: ticket_pages(visit, AccountTicket.Purpose.UNBLOCK, "/u/unblock"),
    "email_verification.html": verification,
    "invitation.html": invitation,
    "invitation_over.html": invitation_over,
    "passwordless.html": address_pages,
    "passwordless_code.html": code_pages,
    "passwordless_confirm.html": link_pages,
    "passwordless_link.html": link_pages,
    **dict.fromkeys(("mfa_code.html", "mfa_key.html", "mfa_list.html", "mfa_recovery.html", "mfa_new_code.html"), challenge_pages),
    **dict.fromkeys(("mfa_enroll.html", "mfa_enroll_address.html", "mfa_enroll_app.html", "mfa_enroll_key.html"), enrolment_pages),
    "factor_setup.html": setup_pages,
    "mfa_enroll.html, for a user who already has a factor": added_setup_pages,
    "activate.html": device_pages,
    "device_result.html": device_pages,
    "device_code.html": device_pages,
    "approval_result.html": approval_pages,
    "consent.html": consent,
    "organization.html": organization,
    "select_account.html": lambda visit: [logged_in(visit).browser.follow(visit.ask(prompt="select_account"))],
    "logout.html": lambda visit: [logged_in(visit).browser.get("/oidc/logout"), visit.browser.get("/v2/logout")],
    "authorize_error.html": lambda visit: [visit.ask(redirect_uri="https://elsewhere.example.test/"), visit.browser.get("/u/login")],
    "form_post.html": lambda visit: [logged_in(visit).ask(response_mode="form_post")],
    "account/overview.html": account_pages,
    "account/add_method.html": adding_pages,
    "web_message.html": lambda visit: [_with_origin(visit).ask(response_mode="web_message", prompt="none")],
}


def _with_origin(visit: Login) -> Login:
    set_client(visit, settings={"web_origins": ["https://app.example.test"]})
    return visit


@pytest.fixture
def rendered() -> Iterator[set[str]]:
    names: set[str] = set()

    def note(sender: object, template: Any, **others: Any) -> None:
        names.add(str(template.name))

    template_rendered.connect(note)
    yield names
    template_rendered.disconnect(note)


@pytest.mark.parametrize("name", VISITS)
def test_each_page_is_well_formed_in_each_of_its_states(login: Login, name: str, rendered: set[str]) -> None:
    pages = VISITS[name](login)
    assert f"hosted/{name.partition(',')[0]}" in rendered
    for page in pages:
        assert "location" not in page.headers, page.location
        assert flaws(page.body.decode(), page.headers) == [], page.text


@pytest.mark.parametrize("name", ALONE)
def test_a_template_that_is_rendered_without_a_request_is_well_formed(name: str) -> None:
    assert flaws(render_to_string(f"hosted/{name}", ALONE[name]), {}, with_policy=False) == []


def test_every_page_is_tested_in_this_file() -> None:
    seen = {name.partition(",")[0] for name in VISITS} | set(ALONE) | COMPONENTS
    assert {file.name for file in TEMPLATES.glob("*.html")} - seen == set()


def test_the_check_of_pages_finds_each_kind_of_flaw() -> None:
    page = '<html><h1>a</h1><h1>b</h1><input name="c" style="color: red" aria-invalid="true"><a href="#d">e</a><script>f()</script></html>'
    found = " ".join(flaws(page, {"content-security-policy": "script-src 'unsafe-inline'"}))
    wanted = (
        "language",
        "2 h1 elements",
        "title",
        "style",
        "inline",
        "unsafe",
        "no label",
        "no autocomplete",
        "not refer",
        "to no field",
    )
    for words in wanted:
        assert words in found
    assert flaws(f"<html lang='en' dir='ltr'><title>t</title><h1>{'x' * 30_000}</h1></html>", {}) != []


def test_only_pages_with_a_secret_load_the_script_that_reveals_it(login: Login) -> None:
    asked, request = login.browser.follow(login.ask()), opened(login, "reset-password/request")
    assert '<script src="/static/theme/hosted.js" defer></script>' in asked.text
    assert "; script-src 'self'" in asked.headers["content-security-policy"]
    assert "<script" not in request.text
    assert "script-src" not in request.headers["content-security-policy"]
    # The button is hidden until the script runs, because the button works only with the script.
    button = next(one for one in Document(asked.body.decode()).all("button") if one.attributes.get("class") == "reveal")
    assert button.attributes.keys() >= {"hidden", "aria-pressed", "aria-label"}
    assert button.attributes["type"] == "button"


def test_required_fields_are_marked_unless_the_page_has_only_one_field(login: Login) -> None:
    asked, request = login.browser.follow(login.ask()), opened(login, "reset-password/request")
    assert asked.body.count(b'<span class="mark" aria-hidden="true"> *</span>') == 2
    assert "Required" in asked.text
    assert 'class="mark"' not in request.text
    assert all("required" in one.attributes for page in (asked, request) for one in Document(page.body.decode()).elements if one.is_typed)


def test_the_first_invalid_field_has_the_focus(login: Login) -> None:
    page = login.log_in(login.ask(), password="")
    focused = [one.attributes["name"] for one in Document(page.body.decode()).elements if "autofocus" in one.attributes]
    assert focused == ["password"]


def test_the_style_sheet_uses_no_physical_directions() -> None:
    css = (STATIC / "theme" / "hosted.css").read_text()
    declarations = re.sub(r"/\*.*?\*/|@media[^{]*", "", css, flags=re.DOTALL)
    sides = "(?:left|right|top|bottom)"
    physical = rf"(?:^|[;{{\s])((?:margin|padding|border|inset)-{sides}|{sides}|(?:min-|max-)?(?:width|height))\s*:"
    assert re.findall(physical, declarations) == []
    assert re.findall(physical, "a { margin-left: 0; max-width: 1px }") == ["margin-left", "max-width"]
    assert re.findall(r"text-align:\s*(?:left|right)|float:", declarations) == []
    for query in ("prefers-color-scheme: dark", "forced-colors: active", "prefers-reduced-motion"):
        assert query in css


def test_a_page_in_a_right_to_left_language_has_the_direction_rtl(login: Login) -> None:
    with translation.override("ar"):
        body = render_to_string("hosted/logout.html", {"is_done": True})
    assert '<html lang="ar" dir="rtl">' in body


def test_a_page_does_not_contain_the_value_of_the_account_cookie(login: Login) -> None:
    login.begin_session()
    assert REMEMBERED in login.browser.cookies
    assert login.browser.cookies[REMEMBERED] not in login.browser.follow(login.ask(prompt="login")).text


def test_a_page_shows_the_name_of_its_tenant(login: Login) -> None:
    TenantSettings(tenant_id=login.tenant.pk, values={"friendly_name": "Analytical Engines"}).save()
    remembered_settings.clear()
    assert "· Analytical Engines</title>" in login.browser.follow(login.ask()).text
