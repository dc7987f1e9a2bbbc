"""SAML requests and logout responses as applications send them: by redirect or by POST."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import parse_qs, urlsplit

from authapi.protocols.saml.requests import Sent
from authapi.xml.bindings import REQUEST, Signer, posted_fields, redirect_address
from authapi.xml.building import element
from authapi.xml.names import SAML, SAMLP, qualified
from authapi.xml.parsing import Element
from tests.authapi.xml.signed_messages import key, trusted

ENTRY = "https://acme.example.test/samlp/abc"
SIGNER = Signer(key(), trusted())
OTHER_SIGNER = Signer(key("second"), trusted("second"))


def authn_request(*content: Element, issuer: str | None = "urn:sp", **attributes: str | None) -> Element:
    """Return an AuthnRequest with this content. `attributes` overrides its attributes; None removes an attribute."""
    shown = {"ID": "_request", "Version": "2.0", "IssueInstant": "2026-11-23T10:00:00Z", **attributes}
    named = element(qualified(SAML, "Issuer"), None, issuer) if issuer is not None else None
    return element(qualified(SAMLP, "AuthnRequest"), shown, named, *content)


def logout_message(name: str = "ada@example.test", *indexes: str, request_id: str = "_logout", **attributes: str | None) -> Element:
    shown = {"ID": request_id, "Version": "2.0", "IssueInstant": "2026-11-23T10:00:00Z", **attributes}
    named = element(qualified(SAML, "NameID"), None, name)
    sessions = [element(qualified(SAMLP, "SessionIndex"), None, index) for index in indexes]
    return element(qualified(SAMLP, "LogoutRequest"), shown, element(qualified(SAML, "Issuer"), None, "urn:sp"), named, *sessions)


def logout_answer(in_response_to: str, *codes: str, **attributes: str | None) -> Element:
    shown = {"ID": "_answer", "Version": "2.0", "IssueInstant": "2026-11-23T10:00:00Z", "InResponseTo": in_response_to, **attributes}
    code = element(qualified(SAMLP, "StatusCode"), {"Value": codes[0]})
    code.extend([element(qualified(SAMLP, "StatusCode"), {"Value": each}) for each in codes[1:]])
    status = element(qualified(SAMLP, "Status"), None, code)
    return element(qualified(SAMLP, "LogoutResponse"), shown, element(qualified(SAML, "Issuer"), None, "urn:sp"), status)


def policy(name_id_format: str) -> Element:
    return element(qualified(SAMLP, "NameIDPolicy"), {"Format": name_id_format})


def contexts(*classes: str, comparison: str | None = None) -> Element:
    return element(
        qualified(SAMLP, "RequestedAuthnContext"),
        {"Comparison": comparison},
        *(element(qualified(SAML, "AuthnContextClassRef"), None, each) for each in classes),
    )


def redirected(message: Element, relay_state: str = "", signer: Signer | None = None, parameter: str = REQUEST) -> Sent:
    query = urlsplit(redirect_address(ENTRY, parameter, message, relay_state, signer)).query
    values = parse_qs(query)
    return Sent(parameter, values[parameter][0], relay_state, query)


def posted(message: Element, relay_state: str = "", signer: Signer | None = None, parameter: str = REQUEST) -> Sent:
    return Sent(parameter, posted_fields(parameter, message, relay_state, signer)[parameter], relay_state)


def encoded(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def addon(**members: Any) -> dict[str, Any]:
    """Return the settings of a client whose add-on `samlp` has these members."""
    return {"addons": {"samlp": members}}
