"""Three applications with three protocols in one session. One login is valid for all, and a logout at one application ends all logins."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest

from authapi.models import Client, LogoutNotice, Session, SessionClient
from authapi.xml.bindings import REQUEST, RESPONSE, posted_fields
from authapi.xml.certificates import pem_of
from authapi.xml.parsing import from_base64, parse
from identity.models import Tenant
from tests.authapi.browser import Browser, Page
from tests.authapi.protocols.saml.conftest import LOGOUT, Application, enable, saml_client
from tests.authapi.protocols.saml.requests_of_applications import SIGNER, logout_answer, logout_message
from tests.authapi.xml.signed_messages import trusted
from tests.factories.sign_in import CALLBACK, people, person, web_client

SUCCESS = "urn:oasis:names:tc:SAML:2.0:status:Success"
REPLY = "https://wsfed.example.test/wsfed"
RETURN_TO = "https://app.example.test/bye"
NOTICE = "https://app.example.test/backchannel"
FRAME = "https://app.example.test/frontchannel"


@dataclass
class World:
    """A browser with a session, and the values that each application stores about its login."""

    saml: Application
    oidc: Client
    wsfed: Client
    name: str
    index: str

    @property
    def browser(self) -> Browser:
        return self.saml.browser

    @property
    def is_over(self) -> bool:
        here = self.saml.tenant.pk
        told = LogoutNotice.objects.of(here).values_list("url", flat=True)
        return not Session.objects.of(here).exists() and list(told) == [NOTICE]

    def saml_answers(self, page: Page) -> Page:
        """Let the SAML application answer the logout request in the browser."""
        assert page.form_action() == LOGOUT, page.text
        fields = page.fields()
        request = parse(from_base64(fields[REQUEST]))
        answer = posted_fields(RESPONSE, logout_answer(request.get("ID") or "", SUCCESS), fields["RelayState"], SIGNER)
        return self.browser.post(f"{self.saml.path}/logout", answer)

    def cleaned_up(self, page: Page) -> Page:
        """Load the page with the frames of two protocols, and continue from this page."""
        shown = self.browser.follow(page)
        assert re.findall(r'<iframe src="([^?"]*)', shown.text) == [FRAME, REPLY]
        return self.browser.get(shown.headers["refresh"].partition("url=")[2])


@pytest.fixture
def world(tenant: Tenant) -> World:
    saml = saml_client(tenant, addons={"logout": {"callback": LOGOUT}, "signingCert": pem_of(trusted())})
    told: dict[str, Any] = {"oidc_logout": {"backchannel_logout_urls": [NOTICE], "backchannel_logout_initiators": {"mode": "all"}}}
    told |= {"frontchannel_logout_uri": FRAME}
    oidc, _ = web_client(tenant, name="Shop", post_logout_redirect_uris=RETURN_TO, settings=told)
    wsfed, _ = web_client(tenant, name="Portal", redirect_uris=REPLY, settings={"addons": {"wsfed": {}}})
    connection = people(tenant, saml)
    enable(connection, oidc, wsfed)
    application = Application(tenant, saml, person(connection), Browser(tenant))

    asked = {"response_type": "code", "client_id": oidc.client_id, "redirect_uri": CALLBACK, "scope": "openid"}
    assert "code" in application.log_in(application.browser.get("/authorize", asked)).answer
    # One login is valid for all three applications: the other applications get an answer at once.
    answer = application.answered(application.ask(signer=SIGNER))
    assert application.browser.get(f"/wsfed/{wsfed.client_id}").form_action() == REPLY
    assert SessionClient.objects.of(tenant.pk).count() == 3
    return World(application, oidc, wsfed, answer.name, answer.session_index)


def test_a_logout_at_the_oauth_application_ends_every_login(world: World) -> None:
    page = world.browser.get("/v2/logout", {"client_id": world.oidc.client_id, "returnTo": RETURN_TO})
    assert world.is_over
    assert world.saml_answers(world.cleaned_up(page)).location == RETURN_TO


def test_a_logout_at_the_saml_application_ends_every_login(world: World) -> None:
    request = posted_fields(REQUEST, logout_message(world.name, world.index), "theirs", SIGNER)
    page = world.browser.post(f"{world.saml.path}/logout", request)
    assert world.is_over
    last = world.cleaned_up(page)
    assert last.form_action() == LOGOUT
    assert last.fields()["RelayState"] == "theirs"
    assert SUCCESS.encode() in from_base64(last.fields()[RESPONSE])


def test_a_logout_at_the_ws_federation_application_ends_every_login(world: World) -> None:
    page = world.browser.get(f"/wsfed/{world.wsfed.client_id}", {"wa": "wsignout1.0", "wreply": REPLY})
    assert world.is_over
    assert world.saml_answers(world.cleaned_up(page)).location == REPLY
