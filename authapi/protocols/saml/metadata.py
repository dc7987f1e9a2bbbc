"""Builds the metadata of this service for service providers, and reads their metadata (SAML metadata 2.0). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509

from authapi.protocols.saml.names import EMAIL_NAME, PERSISTENT_NAME, TRANSIENT_NAME, UNSPECIFIED_NAME, URI_NAMES
from authapi.xml.bindings import HTTP_POST, HTTP_REDIRECT
from authapi.xml.building import element
from authapi.xml.certificates import UnreadableCertificate, base64_of, certificate_of, pem_of
from authapi.xml.failures import XmlError
from authapi.xml.names import DS, METADATA, SAML, SAMLP, qualified
from authapi.xml.parsing import METADATA as BOUNDS
from authapi.xml.parsing import Element, child, children, local_name, parse, serialized, text_of

CONTENT_TYPE = "application/samlmetadata+xml"
_FORMATS = (EMAIL_NAME, PERSISTENT_NAME, TRANSIENT_NAME, UNSPECIFIED_NAME)
_MOST_ADDRESSES = 50


@dataclass(frozen=True)
class ProviderFacts:
    """The facts about this service in its metadata. `attributes` are names of claims."""

    entity_id: str
    login_address: str
    logout_address: str
    certificates: Sequence[x509.Certificate]
    attributes: Sequence[str] = ()
    wants_signed_requests: bool = False


@dataclass(frozen=True)
class ReadAddress:
    binding: str
    address: str
    index: int = 0
    is_default: bool = False
    response_address: str = ""


@dataclass(frozen=True)
class PartnerFacts:
    """The parts of a service provider's metadata from which the settings of its application are made."""

    entity_id: str
    consumers: tuple[ReadAddress, ...]
    logouts: tuple[ReadAddress, ...]
    signing: tuple[str, ...]
    encryption: tuple[str, ...]
    name_id_formats: tuple[str, ...]
    signs_requests: bool
    wants_signed_assertions: bool


class MetadataUnusable(ValueError):
    """The document is not the metadata of a service provider."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


def provider_metadata(facts: ProviderFacts) -> bytes:
    """Return the metadata as XML: every published certificate, the addresses and bindings for login and logout, and the NameID formats."""
    signed = "true" if facts.wants_signed_requests else "false"
    descriptor = element(
        _md("IDPSSODescriptor"),
        {"WantAuthnRequestsSigned": signed, "protocolSupportEnumeration": SAMLP},
        *(_key_descriptor(each) for each in facts.certificates),
        *(_endpoint("SingleLogoutService", binding, facts.logout_address) for binding in (HTTP_REDIRECT, HTTP_POST)),
        *(element(_md("NameIDFormat"), None, each) for each in _FORMATS),
        *(_endpoint("SingleSignOnService", binding, facts.login_address) for binding in (HTTP_REDIRECT, HTTP_POST)),
        *(element(qualified(SAML, "Attribute"), {"Name": name, "NameFormat": URI_NAMES}) for name in facts.attributes),
    )
    document = element(_md("EntityDescriptor"), {"entityID": facts.entity_id}, descriptor)
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + serialized(document)


def read_partner(raw: bytes) -> PartnerFacts:
    """Read the metadata of one service provider. Does not check its signature, because an administrator supplies the document.

    Raises `MetadataUnusable` with a text for the administrator.
    """
    try:
        root = parse(raw, BOUNDS)
        entity = _only_entity(root)
        descriptor = child(entity, _md("SPSSODescriptor"))
        if descriptor is None:
            raise MetadataUnusable("The metadata describes no service provider. Use the metadata of the application.")
        return _partner(entity, descriptor)
    except XmlError as error:
        raise MetadataUnusable(f"The metadata cannot be read: {error}") from error


def _partner(entity: Element, descriptor: Element) -> PartnerFacts:
    consumers = tuple(_read_address(each) for each in children(descriptor, _md("AssertionConsumerService")))[:_MOST_ADDRESSES]
    posts = tuple(each for each in consumers if each.binding == HTTP_POST)
    if not posts:
        raise MetadataUnusable("The metadata names no AssertionConsumerService with the binding HTTP-POST.")
    logouts = tuple(_read_address(each) for each in children(descriptor, _md("SingleLogoutService")))
    return PartnerFacts(
        entity_id=entity.get("entityID") or "",
        consumers=posts,
        logouts=tuple(each for each in logouts if each.binding in (HTTP_POST, HTTP_REDIRECT)),
        signing=_certificates(descriptor, "signing"),
        encryption=_certificates(descriptor, "encryption"),
        name_id_formats=tuple(text_of(each) for each in children(descriptor, _md("NameIDFormat"))),
        signs_requests=descriptor.get("AuthnRequestsSigned") in ("true", "1"),
        wants_signed_assertions=descriptor.get("WantAssertionsSigned") in ("true", "1"),
    )


def _only_entity(root: Element) -> Element:
    if root.tag == _md("EntityDescriptor"):
        return root
    if root.tag != _md("EntitiesDescriptor"):
        raise MetadataUnusable(f"An EntityDescriptor is expected, but the document is of the type {local_name(root)[:60]}.")
    providers = [each for each in root.iter(_md("EntityDescriptor")) if child(each, _md("SPSSODescriptor")) is not None]
    if len(providers) != 1:
        raise MetadataUnusable(f"The metadata describes {len(providers)} service providers. Use a document of a single service provider.")
    return providers[0]


def _read_address(endpoint: Element) -> ReadAddress:
    index = endpoint.get("index") or "0"
    return ReadAddress(
        binding=endpoint.get("Binding") or "",
        address=(endpoint.get("Location") or "").strip(),
        index=int(index) if index.isdecimal() and len(index) < 6 else 0,
        is_default=endpoint.get("isDefault") in ("true", "1"),
        response_address=(endpoint.get("ResponseLocation") or "").strip(),
    )


def _certificates(descriptor: Element, use: str) -> tuple[str, ...]:
    """Return the certificates for a use as PEM. If a descriptor names no use, its certificates are for signing and for encryption."""
    found: dict[str, None] = {}
    for key in children(descriptor, _md("KeyDescriptor")):
        if key.get("use") not in (use, None):
            continue
        for text in key.iter(qualified(DS, "X509Certificate")):
            try:
                found[pem_of(certificate_of(text_of(text)))] = None
            except UnreadableCertificate as error:
                raise MetadataUnusable(f"A certificate of the metadata cannot be read: {error}") from error
    return tuple(found)


def _key_descriptor(certificate: x509.Certificate) -> Element:
    text = element(qualified(DS, "X509Certificate"), None, base64_of(certificate))
    info = element(qualified(DS, "KeyInfo"), None, element(qualified(DS, "X509Data"), None, text))
    return element(_md("KeyDescriptor"), {"use": "signing"}, info)


def _endpoint(name: str, binding: str, address: str) -> Element:
    return element(_md(name), {"Binding": binding, "Location": address})


def _md(name: str) -> str:
    return qualified(METADATA, name)
