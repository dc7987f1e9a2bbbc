"""A browser at a client whose users log in at a SAML provider."""

from __future__ import annotations

import base64
import html
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

from django.test import Client as Browser

from authapi.models import Client
from authapi.xml.parsing import Element, inflated, parse
from identity.models import Connection, Tenant
from identity.services.connections import create_connection
from tests.factories.saml_provider import SIGN_IN, SIGN_OUT, SIGNING, Answer
from tests.factories.sign_in import CALLBACK, web_client


def fields_of(page: Any) -> dict[str, str]:
    """Return the hidden fields of a page whose form submits itself. `action` is the URL of the form."""
    text = page.content.decode()
    action = re.search(r'<form[^>]*action="([^"]*)"', text)
    assert action is not None, text
    pairs = re.findall(r'<input[^>]*name="([^"]*)"[^>]*value="([^"]*)"', text)
    return {"action": html.unescape(action[1]), **{name: html.unescape(value) for name, value in pairs}}


@dataclass
class SamlLogin:
    """A login in which the test acts as the provider: it parses requests and creates responses."""

    tenant: Tenant
    client: Client
    connection: Connection
    browser: Browser = field(init=False)

    def __post_init__(self) -> None:
        self.browser = self.new_browser()

    def new_browser(self) -> Browser:
        return Browser(headers={"host": f"{self.tenant.pk}.example.test"})

    @property
    def base(self) -> str:
        return f"http://{self.tenant.pk}.example.test/"

    @property
    def acs(self) -> str:
        return f"{self.base}login/callback?connection={self.connection.name}"

    @property
    def entity_id(self) -> str:
        return f"urn:auth0:{self.tenant.pk}:{self.connection.name}"

    def go(self, **parameters: str) -> Any:
        """Start a login at the client. Return the redirect to the provider."""
        asked = {
            "response_type": "code",
            "client_id": self.client.client_id,
            "redirect_uri": CALLBACK,
            "state": "app-state",
            "scope": "openid",
        }
        page = self.browser.get("/authorize", {**asked, "connection": self.connection.name, **parameters})
        assert page.status_code == 302, page.content
        return self.browser.get(page["Location"])

    def leave(self, **parameters: str) -> tuple[Element, str]:
        """Continue to the provider by redirect. Return the request and its RelayState."""
        elsewhere = self.go(**parameters)
        assert elsewhere.status_code == 302, elsewhere.content
        query = dict(parse_qsl(urlsplit(elsewhere["Location"]).query))
        return parse(inflated(base64.b64decode(query["SAMLRequest"]))), query["RelayState"]

    def request_in(self, encoded: str) -> Element:
        """Return the request of a posted form."""
        return parse(base64.b64decode(encoded))

    def answer(self, request: Element | None, **changes: Any) -> Answer:
        """Return a valid response to the request, or an unsolicited response if `request` is None."""
        asked = request.get("ID") if request is not None else None
        return Answer(**{"audience": self.entity_id, "recipient": self.acs, "in_response_to": asked, **changes})

    def come_back(self, answer: Answer, state: str = "", *, browser: Browser | None = None, **query: str) -> Any:
        """Post a response in the browser, as the page of the provider does."""
        fields = {"SAMLResponse": answer.encoded, **({"RelayState": state} if state else {})}
        address = "&".join(f"{name}={value}" for name, value in {"connection": self.connection.name, **query}.items())
        return (browser or self.browser).post(f"/login/callback?{address}", fields)

    def told(self, response: Any) -> dict[str, str]:
        """Return the parameters that the client gets in the redirect at the end of a login."""
        assert response.status_code in (302, 303), response.content
        assert response["Location"].startswith(CALLBACK), response["Location"]
        return {name: values[0] for name, values in parse_qs(urlsplit(response["Location"]).query).items()}

    def log_in(self, changes: dict[str, Any] | None = None, **parameters: str) -> dict[str, str]:
        """Run the whole login. Return the parameters that the client gets."""
        request, state = self.leave(**parameters)
        return self.told(self.come_back(self.answer(request, **(changes or {})), state))


def saml_login(tenant: Tenant, *, strategy: str = "samlp", is_complete: bool = True, **options: Any) -> SamlLogin:
    """Create a client whose only connection uses the provider."""
    client, _ = web_client(tenant)
    known = {"signInEndpoint": SIGN_IN, "signOutEndpoint": SIGN_OUT, "signingCert": SIGNING.text} if is_complete else {}
    connection = create_connection(
        tenant_id=tenant.pk,
        name="corp",
        strategy=strategy,
        enabled_clients=[client.client_id],
        options={**known, **options},
    )
    return SamlLogin(tenant, client, connection)
