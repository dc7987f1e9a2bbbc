"""Linking a login of a provider at the account page. Only the user can do it, and only after a new proof. The user then returns to the list
of linked logins."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.utils import timezone

from authapi.models import Session
from authapi.upstream import metadata
from identity.models import AuditEntry, LinkedIdentity, Tenant, User
from identity.services.connections import create_connection, update_connection
from tests.authapi.protocols.account.conftest import switch
from tests.factories.provider import Login, login_at
from tests.factories.provider import provider as running_provider
from tests.factories.sign_in import people, person, session_of


@pytest.fixture
def elsewhere(tenant: Tenant) -> Iterator[Login]:
    """A tenant with an external provider, and a logged-in user with a password."""
    metadata.documents.clear()
    with running_provider() as provider:
        login = login_at(tenant, provider)
        switch(tenant)
        _, login.browser.cookies["session"] = session_of(person(people(tenant, login.client)))
        yield login
    metadata.documents.clear()


def hidden(page: Any, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]+)"', page.content.decode())
    assert found is not None, page.content
    return found[1]


def begin(login: Login) -> Any:
    """Press the button of the provider, and return the confirmation page."""
    page = login.browser.get("/account/identities")
    asked = login.browser.post("/account/identities", {"form_token": hidden(page, "form_token"), "link": login.connection.name})
    return login.browser.get(asked["Location"]) if asked.status_code == 303 else asked


def answer(login: Login, page: Any, said: str) -> Any:
    fields = {name: hidden(page, name) for name in ("state", "form_token", "user")}
    return login.browser.post("/u/link-account", {**fields, "answer": said})


def go(login: Login, page: Any) -> dict[str, str]:
    """Follow the login to the provider, and return the parameters that the provider receives."""
    while page["Location"].startswith("/"):
        page = login.browser.get(page["Location"])
    sent = dict(parse_qsl(urlsplit(page["Location"]).query))
    login.provider.nonce = sent.get("nonce", "")
    return sent


def test_the_button_of_a_passwordless_login_does_not_show_the_name_of_its_connection(elsewhere: Login) -> None:
    for strategy in ("email", "sms"):
        enabled = {"enabled_clients": [elsewhere.client.client_id]}
        made = create_connection(tenant_id=elsewhere.client.tenant_id, name=strategy, strategy=strategy)
        update_connection(tenant_id=elsewhere.client.tenant_id, connection_id=made.pk, changes=enabled)
    page = elsewhere.browser.get("/account/identities").content.decode()
    assert "Log in with a code by email</button>" in page
    assert "Log in with a code by text message</button>" in page
    assert f"Continue with {elsewhere.connection.name}</button>" in page


def test_a_user_links_a_login_of_a_provider_and_returns_to_the_list(elsewhere: Login) -> None:
    tenant_id = elsewhere.tenant.pk
    session = Session.objects.of(tenant_id).get()
    page = begin(elsewhere)
    assert "Link another account?" in page.content.decode()
    back = elsewhere.come_back(go(elsewhere, answer(elsewhere, page, "link")))
    assert back["Location"] == "/account/identities?done=linked"
    linked = LinkedIdentity.objects.of(tenant_id).get()
    assert (linked.user_id, linked.connection_id) == (session.user_id, elsewhere.connection.pk)
    assert [row.pk for row in Session.objects.of(tenant_id)] == [session.pk]
    assert User.objects.of(tenant_id).count() == 1
    entry = AuditEntry.objects.filter(tenant_id=tenant_id, object_type="identity.linkedidentity").get()
    assert (entry.actor_kind, entry.actor_id, entry.act) == ("user", session.user.user_id, "Linked an account")
    assert "The accounts are linked." in elsewhere.browser.get(back["Location"]).content.decode()


def test_a_user_who_cancels_or_names_another_connection_links_nothing(elsewhere: Login) -> None:
    refused = answer(elsewhere, begin(elsewhere), "cancel")
    assert refused["Location"] == "/account/identities?failed=not-linked"
    page = elsewhere.browser.get("/account/identities")
    for named in ("people", "unknown"):
        sent = {"form_token": hidden(page, "form_token"), "link": named}
        assert elsewhere.browser.post("/account/identities", sent).status_code == 400
    assert not LinkedIdentity.objects.of(elsewhere.tenant.pk).exists()


def test_an_old_session_or_a_session_of_another_user_cannot_link_a_login(elsewhere: Login) -> None:
    tenant_id = elsewhere.tenant.pk
    Session.objects.of(tenant_id).update(authenticated_at=timezone.now() - timedelta(minutes=6))
    assert "/u/login" in begin(elsewhere).request["PATH_INFO"]
    Session.objects.of(tenant_id).update(authenticated_at=timezone.now())
    sent = go(elsewhere, answer(elsewhere, begin(elsewhere), "link"))
    # Meanwhile, another user has logged in with the same browser and replaced the session.
    staff = people(elsewhere.tenant, elsewhere.client, name="staff")
    _, elsewhere.browser.cookies["session"] = session_of(person(staff, email="b@example.test"))
    assert elsewhere.come_back(sent).status_code == 403
    assert not LinkedIdentity.objects.of(tenant_id).exists()
