"""Builds answers to an application: a response with an assertion about a user, or with an error.

Pure: ids and the time are arguments. Each element is complete before it is signed or encrypted. First the assertion is signed or encrypted,
then the response around it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from authapi.protocols.saml.claims import Attribute, NameId, Value, text_of
from authapi.protocols.saml.names import BASIC_NAMES, BEARER, SUCCESS, UNSPECIFIED_NAMES, URI_NAMES
from authapi.protocols.saml.settings import SamlSettings
from authapi.xml.bindings import Signer
from authapi.xml.building import element, with_prefixes
from authapi.xml.encryption import encrypted
from authapi.xml.names import SAML, SAMLP, XSI, qualified
from authapi.xml.parsing import Element

# The signature follows the Issuer, as in the schema.
_SIGNATURE_PLACE = 1
# The names of attributes must match this pattern, which allows a subset of the names in XML 1.0, 2.3.
_NAME = re.compile(r"[A-Za-z_:][\w:.\-]*")


@dataclass(frozen=True)
class Answering:
    """The common part of success and failure: issuer, address and request. `in_response_to` is empty without a request."""

    issuer: str
    address: str
    in_response_to: str
    response_id: str
    now: datetime


@dataclass(frozen=True)
class Authenticated:
    """The statements of an assertion: the user, the audience, and how and when the user logged in."""

    assertion_id: str
    name_id: NameId
    attributes: Sequence[Attribute]
    audience: str
    session_index: str
    authenticated_at: datetime
    authn_context: str


def saml(name: str) -> str:
    return qualified(SAML, name)


def samlp(name: str) -> str:
    return qualified(SAMLP, name)


def instant(moment: datetime) -> str:
    """Return a moment in a format that all service providers read: UTC, milliseconds, `Z`."""
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def success(answering: Answering, login: Authenticated, settings: SamlSettings, signer: Signer) -> Element:
    """Return the response with its assertion, signed and encrypted as the settings require."""
    assertion = unsigned_assertion(answering, login, settings)
    if settings.signs_assertion:
        assertion = signer.signed(assertion, place=_SIGNATURE_PLACE)
    if settings.encryption_certificate is not None:
        sealed = encrypted(assertion, certificate=settings.encryption_certificate, algorithm=settings.encryption_algorithm)
        assertion = element(saml("EncryptedAssertion"), None, sealed)
    response = _response(answering, _status(SUCCESS), assertion, destination=settings.destination)
    return signer.signed(response, place=_SIGNATURE_PLACE) if settings.signs_response else response


def failure(answering: Answering, codes: Sequence[str], message: str, signer: Signer) -> Element:
    """Return a response without an assertion: the outer and the inner status code, and the reason. The response is always signed."""
    return signer.signed(_response(answering, _status(*codes, message=message)), place=_SIGNATURE_PLACE)


def unsigned_assertion(answering: Answering, login: Authenticated, settings: SamlSettings) -> Element:
    """Return the assertion before it is signed."""
    issued, ends = instant(answering.now), instant(answering.now + timedelta(seconds=settings.lifetime_seconds))
    audience = settings.audience or login.audience
    return element(
        saml("Assertion"),
        {"Version": "2.0", "ID": login.assertion_id, "IssueInstant": issued},
        element(saml("Issuer"), None, answering.issuer),
        _subject(answering, login.name_id, recipient=settings.recipient, ends=ends),
        element(
            saml("Conditions"),
            {"NotBefore": issued, "NotOnOrAfter": ends},
            element(saml("AudienceRestriction"), None, element(saml("Audience"), None, audience)) if audience else None,
        ),
        element(
            saml("AuthnStatement"),
            {"AuthnInstant": instant(login.authenticated_at), "SessionIndex": login.session_index},
            element(saml("AuthnContext"), None, element(saml("AuthnContextClassRef"), None, login.authn_context)),
        ),
        _statement(login.attributes, settings) if login.attributes else None,
    )


def name_id_element(name_id: NameId) -> Element:
    """Return the `NameID` of a subject or a logout."""
    qualifiers = {"NameQualifier": name_id.qualifier or None, "SPNameQualifier": name_id.sp_qualifier or None}
    return element(saml("NameID"), {"Format": name_id.format, **qualifiers}, name_id.value)


def _subject(answering: Answering, name_id: NameId, *, recipient: str, ends: str) -> Element:
    data = {"NotOnOrAfter": ends, "Recipient": recipient or answering.address, "InResponseTo": answering.in_response_to or None}
    confirmation = element(saml("SubjectConfirmation"), {"Method": BEARER}, element(saml("SubjectConfirmationData"), data))
    return element(saml("Subject"), None, name_id_element(name_id), confirmation)


def _statement(attributes: Sequence[Attribute], settings: SamlSettings) -> Element:
    # Declare the prefixes `xs` and `xsi` once, at the statement, because the types of values (`xsi:type`) contain these prefixes.
    statement = with_prefixes(element(saml("AttributeStatement")), "xs", "xsi")
    for attribute in attributes:
        name_format = _name_format(attribute.name) if settings.includes_name_format else None
        made = element(saml("Attribute"), {"Name": attribute.name, "NameFormat": name_format})
        for value in attribute.values:
            kind = _type(value) if settings.types_attributes else "xs:anyType"
            made.append(element(saml("AttributeValue"), {qualified(XSI, "type"): kind}, text_of(value)))
        statement.append(made)
    return statement


def _type(value: Value) -> str:
    if isinstance(value, bool):
        return "xs:boolean"
    return "xs:string" if isinstance(value, str) else "xs:double"


def _name_format(name: str) -> str:
    try:
        scheme = urlsplit(name).scheme
    except ValueError:
        return UNSPECIFIED_NAMES
    if scheme and not any(letter.isspace() for letter in name):
        return URI_NAMES
    return BASIC_NAMES if _NAME.fullmatch(name) else UNSPECIFIED_NAMES


def _status(*codes: str, message: str = "") -> Element:
    outer, *inner = codes
    nested = element(samlp("StatusCode"), {"Value": inner[0]}) if inner else None
    text = element(samlp("StatusMessage"), None, message) if message else None
    return element(samlp("Status"), None, element(samlp("StatusCode"), {"Value": outer}, nested), text)


def _response(answering: Answering, status: Element, content: Element | None = None, *, destination: str = "") -> Element:
    return element(
        samlp("Response"),
        {
            "ID": answering.response_id,
            "InResponseTo": answering.in_response_to or None,
            "Version": "2.0",
            "IssueInstant": instant(answering.now),
            "Destination": destination or answering.address,
        },
        element(saml("Issuer"), None, answering.issuer),
        status,
        content,
    )
