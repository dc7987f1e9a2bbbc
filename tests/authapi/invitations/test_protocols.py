"""Invitations to applications that use SAML or WS-Federation: the pages are the same as with OAuth, and the answers have the format of the
protocol."""

from __future__ import annotations

from typing import Any

import pytest

from authapi.models import Client
from identity.models import OrganizationMember, Tenant, User
from identity.services.memberships import add_connection
from tests.authapi.browser import Browser, Page
from tests.authapi.invitations.conftest import Host
from tests.authapi.login.conftest import Login
from tests.authapi.protocols.oauth.test_request_objects import register, request_object
from tests.authapi.protocols.saml.requests_of_applications import addon
from tests.authapi.pushing import Pusher
from tests.factories.organizations import make_organization
from tests.factories.sign_in import PASSWORD, people, person, web_client

ACS = "https://sp.example.test/acs"


def accepted(tenant: Tenant, path: str, **settings: Any) -> tuple[Page, User]:
    """Accept an invitation at the endpoint of a protocol. Return the page whose form is posted to the application, and the user."""
    use = {"organization_usage": "allow", "initiate_login_uri": "https://sp.example.test/login"}
    client, _ = web_client(tenant, name="Payroll", redirect_uris=ACS, settings={**settings, **use})
    connection = people(tenant, client)
    user, browser = person(connection), Browser(tenant)
    acme = make_organization(tenant, "acme")
    add_connection(tenant_id=tenant.pk, organization_id=acme.pk, connection_id=connection.pk)
    host = Host(Login(tenant, client, connection, user, browser), acme)
    page = begun(host, client, path)
    form = browser.post("/u/login", {**page.fields(), "password": PASSWORD}, Origin=host.address)
    asked = browser.follow(form)
    assert "Join acme?" in asked.text
    assert not OrganizationMember.objects.of(tenant.pk).exists()
    answer = host.answer(asked)
    while answer.status in (302, 303):
        answer = browser.follow(answer)
    assert OrganizationMember.objects.of(tenant.pk).get().user == user
    return answer, user


def begun(host: Host, client: Client, path: str) -> Page:
    invitation = host.invite("ada@example.test")
    named = {"invitation": invitation.ticket, "organization": host.organization.pk}
    page = host.browser.follow(host.browser.get(path.format(client=client.client_id), named))
    assert "invites you to <strong>acme</strong>" in page.text
    return page


def test_a_saml_application_receives_the_new_member(tenant: Tenant) -> None:
    answer, _ = accepted(tenant, "/samlp/{client}", **addon())
    assert answer.form_action() == ACS
    assert "SAMLResponse" in answer.fields()


def test_a_ws_federation_application_receives_the_new_member(tenant: Tenant) -> None:
    answer, _ = accepted(tenant, "/wsfed/{client}", addons={"wsfed": {}})
    assert answer.form_action() == ACS
    assert "RequestedSecurityToken" in answer.fields()["wresult"]


@pytest.mark.parametrize("way", ["pushed", "signed"])
def test_a_pushed_or_signed_request_can_contain_an_invitation(tenant: Tenant, way: str) -> None:
    use = {"organization_usage": "allow", "initiate_login_uri": "https://app.example.test/login"}
    client, secret = web_client(tenant, settings=use)
    if way == "signed":
        register(client)
        client.refresh_from_db()
    connection = people(tenant, client)
    login = Login(tenant, client, connection, person(connection), Browser(tenant))
    host = Host(login, make_organization(tenant, "acme"))
    add_connection(tenant_id=tenant.pk, organization_id=host.organization.pk, connection_id=connection.pk)
    named: dict[str, Any] = {"invitation": host.invite("ada@example.test").ticket, "organization": host.organization.pk}
    sent = (
        {"request_uri": Pusher(tenant, client, secret).handle(**named)} if way == "pushed" else {"request": request_object(login, **named)}
    )
    # Parameters in the URL are ignored if the request is pushed or signed.
    beside = {"invitation": "another", "organization": "another"}
    page = host.browser.follow(host.browser.get("/authorize", {"client_id": client.client_id, **beside, **sent}))
    asked = host.log_in(page)
    assert "Join acme?" in asked.text
    answer = host.answer(asked)
    while answer.location.startswith("/u/"):
        answer = host.browser.follow(answer)
    assert "code" in answer.answer
    assert [member.user_id for member in host.members()] == [login.user.user_id]
