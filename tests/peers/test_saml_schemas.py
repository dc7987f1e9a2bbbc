"""The SAML metadata and messages of this service, checked against the schemas of OASIS and W3C in Debian packages."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from authapi.protocols.saml.assertions import Answering, Authenticated, failure, success
from authapi.protocols.saml.claims import NameId, attributes_of
from authapi.protocols.saml.logout import PARTLY, Participation, logout_request, logout_response
from authapi.protocols.saml.names import INVALID_NAME_ID_POLICY, PERSISTENT_NAME, REQUESTER
from authapi.protocols.saml.settings import settings_of
from authapi.xml.certificates import pem_of
from authapi.xml.parsing import Element, serialized
from tests.authapi.browser import Browser
from tests.authapi.protocols.saml.conftest import Application, saml_client
from tests.authapi.protocols.saml.requests_of_applications import SIGNER
from tests.authapi.protocols.saml.test_assertions import PROFILE
from tests.authapi.xml.signed_messages import trusted
from tests.factories.sign_in import people, person

OPENSAML, XMLTOOLING = Path("/usr/share/xml/opensaml"), Path("/usr/share/xml/xmltooling")
IMPORTS = {
    "http://www.w3.org/XML/1998/namespace": XMLTOOLING / "xml.xsd",
    "http://www.w3.org/2000/09/xmldsig#": XMLTOOLING / "xmldsig-core-schema.xsd",
    "http://www.w3.org/2001/04/xmlenc#": XMLTOOLING / "xenc-schema.xsd",
    "urn:oasis:names:tc:SAML:2.0:assertion": OPENSAML / "saml-schema-assertion-2.0.xsd",
    "urn:oasis:names:tc:SAML:2.0:protocol": OPENSAML / "saml-schema-protocol-2.0.xsd",
    "urn:oasis:names:tc:SAML:2.0:metadata": OPENSAML / "saml-schema-metadata-2.0.xsd",
}
NOW = datetime(2026, 11, 23, 10, 0, 0, 123456, tzinfo=UTC)
ANSWERING = Answering("urn:acme", "https://sp.test/acs", "_request", "_response", NOW)

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(not all(file.exists() for file in IMPORTS.values()), reason="the schemas are not installed: make test-peers"),
]


@cache
def schema() -> etree.XMLSchema:
    """Load all schemas together.

    The parser uses only the first import of a namespace. Here this is a local file, so the parser loads no schema from the network.
    """
    imports = "".join(f'<xs:import namespace="{name}" schemaLocation="file://{file}"/>' for name, file in IMPORTS.items())
    whole = f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">{imports}</xs:schema>'
    return etree.XMLSchema(etree.fromstring(whole, etree.XMLParser(no_network=True, load_dtd=False)))


def judge(raw: bytes) -> None:
    schema().assertValid(etree.fromstring(raw))


def authenticated(addon: dict[str, Any]) -> Authenticated:
    settings = settings_of(addon)
    name = NameId("pairwise", PERSISTENT_NAME, "urn:acme", "urn:sp")
    return Authenticated("_assertion", name, attributes_of(PROFILE, settings), "urn:sp", "_index", NOW, settings.authn_context)


@pytest.mark.parametrize(
    "addon",
    [
        {},
        {"signResponse": True},
        {"signResponse": True, "signAssertion": True},
        {"encryptionCert": pem_of(trusted())},
        {"typedAttributes": False, "includeAttributeNameFormat": False},
        {"mappings": {}, "passthroughClaimsWithNoMapping": False, "mapIdentities": False, "createUpnClaim": False},
        {"mappings": {"app_metadata.flags": "cost center", "email_verified": "verified", "app_metadata.cost_center": "number"}},
    ],
    ids=lambda addon: ",".join(addon) or "default",
)
def test_a_response_is_valid(addon: dict[str, Any]) -> None:
    judge(serialized(success(ANSWERING, authenticated(addon), settings_of(addon), SIGNER)))


def message(made: Element) -> bytes:
    return serialized(SIGNER.signed(made))


def test_an_error_response_and_the_logout_messages_are_valid() -> None:
    judge(serialized(failure(ANSWERING, (REQUESTER, INVALID_NAME_ID_POLICY), "No such format.", SIGNER)))
    known = Participation(NameId("ada@example.test", PERSISTENT_NAME), "_index")
    judge(message(logout_request(issuer="urn:acme", address="https://sp.test/slo", request_id="_r", participation=known, now=NOW)))
    judge(
        message(
            logout_response(
                issuer="urn:acme", address="https://sp.test/slo", response_id="_a", in_response_to="_r", now=NOW, codes=PARTLY, message="x"
            )
        )
    )


def test_the_served_metadata_is_valid(tenant: Any) -> None:
    client = saml_client(tenant)
    application = Application(tenant, client, person(people(tenant, client)), Browser(tenant))
    judge(application.browser.get(f"/samlp/metadata/{client.client_id}").body)
    judge(application.browser.get("/samlp/metadata").body)
    judge(base64.b64decode(application.log_in(application.ask()).fields()["SAMLResponse"]))
