"""The metadata by which applications trust this service in WS-Federation (WS-Federation 1.2, 3.1). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from cryptography import x509

from authapi.protocols.wsfed.tokens import JWT_TOKEN, SAML11_TOKEN
from authapi.xml.building import element, with_prefixes
from authapi.xml.certificates import base64_of
from authapi.xml.names import DS, FED, FED_AUTH, METADATA, WSA, XSI, qualified
from authapi.xml.parsing import Element, serialized

PATH = "FederationMetadata/2007-06/FederationMetadata.xml"
_XMLSOAP = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/"
CLAIMS = (
    (f"{_XMLSOAP}emailaddress", "E-Mail Address", "The e-mail address of the user"),
    (f"{_XMLSOAP}givenname", "Given Name", "The given name of the user"),
    (f"{_XMLSOAP}name", "Name", "The name of the user"),
    (f"{_XMLSOAP}surname", "Surname", "The surname of the user"),
    (f"{_XMLSOAP}nameidentifier", "Name ID", "The identifier of the user"),
    (f"{_XMLSOAP}upn", "UPN", "The user principal name"),
)


def metadata(*, entity_id: str, endpoint: str, certificates: Sequence[x509.Certificate]) -> bytes:
    """Return the metadata document. The document contains several certificates during a rollover of certificates."""
    role = element(
        _md("RoleDescriptor"),
        {
            qualified(XSI, "type"): "fed:SecurityTokenServiceType",
            "protocolSupportEnumeration": FED,
            "ServiceDisplayName": entity_id,
        },
        *(_key(certificate) for certificate in certificates),
        element(_fed("TokenTypesOffered"), None, *(element(_fed("TokenType"), {"Uri": uri}) for uri in (SAML11_TOKEN, JWT_TOKEN))),
        element(_fed("ClaimTypesOffered"), None, *(_claim(*claim) for claim in CLAIMS)),
        element(_fed("SecurityTokenServiceEndpoint"), None, _reference(endpoint)),
        element(_fed("PassiveRequestorEndpoint"), None, _reference(endpoint)),
    )
    document = element(_md("EntityDescriptor"), {"entityID": entity_id}, with_prefixes(role, "fed", "xsi"))
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + serialized(document)


def _key(certificate: x509.Certificate) -> Element:
    text = element(qualified(DS, "X509Certificate"), None, base64_of(certificate))
    info = element(qualified(DS, "KeyInfo"), None, element(qualified(DS, "X509Data"), None, text))
    return element(_md("KeyDescriptor"), {"use": "signing"}, info)


def _claim(uri: str, name: str, description: str) -> Element:
    return element(
        qualified(FED_AUTH, "ClaimType"),
        {"Uri": uri, "Optional": "true"},
        element(qualified(FED_AUTH, "DisplayName"), None, name),
        element(qualified(FED_AUTH, "Description"), None, description),
    )


def _reference(address: str) -> Element:
    return element(qualified(WSA, "EndpointReference"), None, element(qualified(WSA, "Address"), None, address))


def _md(name: str) -> str:
    return qualified(METADATA, name)


def _fed(name: str) -> str:
    return qualified(FED, name)
