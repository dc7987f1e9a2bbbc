"""The metadata of this service for a provider, as one document: entity id, addresses, certificates (SAML Metadata 2.0, 2.4.4). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from cryptography import x509

from authapi.upstream.saml.claims import EMAIL_FORMAT
from authapi.upstream.saml.options import POST, REDIRECT
from authapi.xml.building import element
from authapi.xml.certificates import base64_of
from authapi.xml.names import DS, METADATA, SAMLP, qualified
from authapi.xml.parsing import Element, serialized

_NAME_ID_FORMATS = (
    "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent",
    EMAIL_FORMAT,
    "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified",
)


def own_metadata(
    *,
    entity_id: str,
    acs: str,
    logout: str,
    signing: Sequence[x509.Certificate],
    encryption: Sequence[x509.Certificate],
    signs_requests: bool,
) -> bytes:
    """Return the document. The document has several certificates during a key rollover."""
    keys = [*(_key("signing", one) for one in signing), *(_key("encryption", one) for one in encryption)]
    descriptor = element(
        _md("SPSSODescriptor"),
        {
            "protocolSupportEnumeration": SAMLP,
            "AuthnRequestsSigned": "true" if signs_requests else "false",
            # A signed response with an unsigned assertion is also accepted, but the schema has no attribute for that.
            "WantAssertionsSigned": "false",
        },
        *keys,
        element(_md("SingleLogoutService"), {"Binding": REDIRECT, "Location": logout}),
        element(_md("SingleLogoutService"), {"Binding": POST, "Location": logout}),
        *(element(_md("NameIDFormat"), None, name) for name in _NAME_ID_FORMATS),
        element(_md("AssertionConsumerService"), {"Binding": POST, "Location": acs, "index": "0", "isDefault": "true"}),
    )
    document = element(_md("EntityDescriptor"), {"entityID": entity_id}, descriptor)
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + serialized(document)


def _key(use: str, certificate: x509.Certificate) -> Element:
    text = element(qualified(DS, "X509Certificate"), None, base64_of(certificate))
    info = element(qualified(DS, "KeyInfo"), None, element(qualified(DS, "X509Data"), None, text))
    return element(_md("KeyDescriptor"), {"use": use}, info)


def _md(name: str) -> str:
    return qualified(METADATA, name)
