"""Access to the account page: by its own login, with a new proof for sensitive acts, and only in the browser and tenant of the session."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import RequestFactory

from authapi.accounts.self_service.own_act import OwnAct
from authapi.accounts.self_service.profile import change_profile
from authapi.accounts.self_service.proofs import PROOF_SECONDS
from authapi.failures import RequestRefused
from authapi.login.protocol import CompleteLogin, ProtocolRequest
from authapi.login.wish import Terms
from authapi.models import Client, LoginTransaction, Session
from authapi.protocols.account.entry import answer, kept_fields, state_of
from authapi.services.account_client import account_client
from identity.hosts import resolve_host
from identity.models import Tenant
from identity.services.connections import create_connection, update_connection
from identity.services.failures import Invalid
from identity.services.users import block_user, create_user, delete_user, unblock_user
from tests.authapi.browser import Browser
from tests.authapi.protocols.account.conftest import Account, switch, token_of
from tests.factories.models.identity import TenantFactory
from tests.factories.sign_in import PASSWORD, people, person, session_of, web_client


def test_the_page_does_not_exist_if_the_tenant_has_not_switched_it_on(account: Account) -> None:
    switch(account.tenant, enabled=False)
    assert [account.open(name).status for name in ("", "profile", "password", "data")] == [404] * 4
    assert account.send("profile", token="x", name="Eve").status == 404


def test_a_login_in_progress_fails_when_the_page_is_switched_off(closed: Account) -> None:
    form = closed.browser.follow(closed.open())
    switch(closed.tenant, enabled=False)
    answer = closed.browser.submit(form, username="ada@example.test", password=PASSWORD)
    assert (answer.status, "location" in answer.headers) == (404, False)


def test_the_requested_section_is_shown_after_the_login(closed: Account) -> None:
    asked = closed.open("sessions", next="https://evil.test/", redirect_uri="https://evil.test/", kept="x")
    assert asked.location.startswith("/u/login?")
    page = closed.log_in(asked)
    assert (page.status, "This device" in page.text, "evil.test" in page.text) == (200, True, False)


def test_the_session_id_that_applications_know_does_not_open_the_page(account: Account) -> None:
    # `sid` is in tokens. The cookie is a separate secret.
    thief = Browser(account.tenant, cookies={"session": account.session.pk})
    assert thief.get("/account").location.startswith("/u/login?")


def test_a_session_of_another_tenant_does_not_open_the_page(account: Account) -> None:
    other = TenantFactory.create()
    switch(other)
    client, _ = web_client(other)
    person(people(other, client))
    elsewhere = Browser(other, cookies=dict(account.browser.cookies))
    assert elsewhere.get("/account").location.startswith("/u/login?")


def test_blocked_users_and_deleted_users_cannot_change_anything(account: Account) -> None:
    token = token_of(account.open("profile"))
    block_user(tenant_id=account.tenant.pk, user_id=account.user.user_id)
    assert account.send("profile", token=token, name="Eve").location.startswith("/u/login?")
    assert account.told().name == "Ada Lovelace"
    delete_user(tenant_id=account.tenant.pk, user_id=account.user.user_id)
    assert account.send("profile", token=token, name="Eve").location.startswith("/u/login?")


def test_a_form_of_another_site_or_another_user_changes_nothing(account: Account) -> None:
    token = token_of(account.open("profile"))
    bob = person(account.connection, email="bob@example.test")
    _, cookie = session_of(bob)
    mallory = Browser(account.tenant, cookies={"session": cookie})
    foreign = token_of(mallory.get("/account/profile"))
    form: dict[str, Any] = {"name": "Eve", "language": ""}
    refused = [
        account.browser.post("/account/profile", form),
        account.send("profile", token="", **form),
        account.send("profile", token=foreign, **form),
        account.browser.post("/account/profile", {"form_token": token, **form}, Origin="https://evil.test"),
        account.browser.post("/account/profile", {"form_token": token, **form}, Origin="null"),
    ]
    assert {page.status for page in refused} == {400}
    assert all("open for too long" in page.text for page in refused)
    assert account.told().name == "Ada Lovelace"
    # A GET request changes nothing, even with a valid token.
    assert account.open("profile", form_token=token, **form).status == 200
    assert account.told().name == "Ada Lovelace"


def test_sensitive_sections_require_a_recent_login(account: Account) -> None:
    session, token = account.session, token_of(account.open("data"))
    account.grow_old(seconds=PROOF_SECONDS + 1)
    for section in ("email", "password", "delete"):
        assert account.open(section).location.startswith("/u/login?"), section
        assert account.send(section, token=token, account="ada@example.test").location.startswith("/u/login?"), section
    for section in ("identities", "data"):
        assert account.open(section).status == 200
        assert account.send(section, token=token, identity="auth0|x").location.startswith("/u/login?"), section
    page = account.log_in(account.open("password"))
    assert "Current password" in page.text
    # The same session continues with a new proof. There is no redirect loop, and applications stay logged in.
    assert account.session.pk == session.pk
    assert account.open("password").status == 200


def test_a_form_shows_its_former_input_without_passwords_after_a_required_login(account: Account) -> None:
    token = token_of(account.open("email"))
    account.grow_old()
    page = account.log_in(account.send("email", token=token, email="new@example.test"))
    assert 'value="new@example.test"' in page.text
    token = token_of(account.open("password"))
    account.grow_old()
    asked = account.send("password", token=token, present=PASSWORD, password="Another-Horse-8", repeated="Another-Horse-8")
    row = LoginTransaction.objects.of(account.tenant.pk).order_by("-pk")[0]
    assert account.log_in(asked).text.count("Another-Horse-8") == 0
    assert "Another-Horse-8" not in str(vars(row))


def test_the_former_input_is_shown_only_to_its_user(account: Account) -> None:
    token = token_of(account.open("email"))
    account.grow_old()
    asked = account.send("email", token=token, email="new@example.test")
    bob = person(account.connection, email="bob@example.test")
    form = account.browser.follow(asked)
    back = account.browser.submit(form, username="bob@example.test", password=PASSWORD)
    assert urlsplit(back.location).query == ""
    assert "new@example.test" not in account.browser.follow(back).text
    assert bob.user_id == Session.objects.of(account.tenant.pk).get().user.user_id
    # The sealed input reveals nothing if it is altered, or if another user sends it.
    mine, _ = session_of(account.user)
    kept = parse_qs(urlsplit(redirect_with(mine, {"email": "new@example.test"})).query)["kept"][0]
    assert kept_fields(mine, kept) == {"email": "new@example.test"}
    assert "new@example.test" not in account.open("email", kept=kept).text
    assert kept_fields(mine, f"{kept}x") == {}


def redirect_with(session: Session, kept: dict[str, str]) -> str:
    """Return the URL to which a login of the user redirects. The URL contains the sealed input that the user sent before the login."""
    client = account_client(session.tenant_id)
    host = resolve_host(f"{session.tenant_id}.example.test")
    assert host is not None
    state = state_of("email", session=session, kept=kept)
    return str(answer(RequestFactory().get("/"), ProtocolRequest(host, client, state), CompleteLogin(session, None, Terms()))["Location"])


def test_an_ended_session_cannot_change_anything(account: Account) -> None:
    host = resolve_host(account.browser.host)
    assert host is not None
    own = OwnAct(host, account_client(account.tenant.pk), account.session, ip="192.0.2.1", user_agent="Test")
    block_user(tenant_id=account.tenant.pk, user_id=account.user.user_id)
    unblock_user(tenant_id=account.tenant.pk, user_id=account.user.user_id)
    with pytest.raises(RequestRefused, match="LOGIN_REQUIRED"):
        change_profile(own, {"name": "Eve"}, language="")
    assert account.told().name == "Ada Lovelace"


def test_codes_in_the_url_select_a_message_and_are_never_shown(account: Account) -> None:
    page = account.open("profile", done="<b>evil</b>", failed="evil")
    assert (page.status, "evil" in page.text) == (200, False)
    assert "Your changes are saved." in account.open("profile", done="saved").text


def test_pages_are_not_cached_and_cannot_be_framed(account: Account) -> None:
    for name in ("", "profile", "password", "sessions", "applications", "identities", "activity", "data", "email", "delete"):
        page = account.open(name)
        assert (page.status, page.headers["cache-control"]) == (200, "no-store"), name
        policy = page.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert page.headers["x-frame-options"] == "DENY"


def test_the_client_of_the_page_is_created_once_and_cannot_be_used_by_protocols(account: Account) -> None:
    client = account_client(account.tenant.pk)
    assert account_client(account.tenant.pk) == client
    assert list(Client.objects.of(account.tenant.pk).filter(is_account_page=True)) == [client]
    asked = {"client_id": client.client_id, "response_type": "code", "redirect_uri": "https://evil.test/", "scope": "openid"}
    page = account.browser.get("/authorize", asked)
    assert (page.status, "location" in page.headers) == (400, False)


def test_only_users_of_connections_that_the_tenant_allows_can_open_the_page(account: Account) -> None:
    staff = create_connection(tenant_id=account.tenant.pk, name="staff", strategy="database", enabled_clients=[])
    switch(account.tenant, connections=["staff"])
    form = account.browser.follow(account.open())
    assert "Log in" in form.text
    assert account.browser.submit(form, username="ada@example.test", password=PASSWORD).status == 400
    create_user(tenant_id=account.tenant.pk, connection=staff, email="eve@example.test", password=PASSWORD)
    assert "Your account" in account.log_in(identifier="eve@example.test").text
    switch(account.tenant)
    # No application uses the connection, so its users have no account to manage.
    assert account.open().location.startswith("/u/login?")
    update_connection(tenant_id=account.tenant.pk, connection_id=staff.pk, changes={"enabled_clients": ["anything"]})
    assert account.open().status == 200


def test_settings_of_the_page_can_name_only_existing_connections(tenant: Tenant) -> None:
    with pytest.raises(Invalid, match=r"account_page\.connections"):
        switch(tenant, connections=["nowhere"])
