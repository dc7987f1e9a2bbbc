"""Metadata of a WS-Federation provider (WS-Federation 1.2, 3.1). Pure.

The result has the same type as SAML metadata, so that the same code stores and refreshes the metadata of both protocols.
"""

from __future__ import annotations

from collections.abc import Iterator

from authapi.upstream.saml.certificates import Certificate
from authapi.upstream.saml.metadata import MetadataUnreadable, ProviderMetadata, cache_seconds, entities, signing_certificates, valid_until
from authapi.upstream.saml.options import is_web_address
from authapi.xml.failures import XmlError
from authapi.xml.names import FED, METADATA, WSA, XSI, qualified
from authapi.xml.parsing import METADATA as METADATA_BOUNDS
from authapi.xml.parsing import Element, child, children, local_name, parse, text_of

# SAML metadata has one URL for each binding, keyed by binding. A WS-Federation provider has one URL, under this key.
WSFED = "wsfed"
_SERVICE = "SecurityTokenServiceType"


def read_federation_metadata(raw: bytes, *, allows_http: bool = False) -> ProviderMetadata:
    """Return the one security token service that a document describes. Raises `MetadataUnreadable`."""
    try:
        root = parse(raw, METADATA_BOUNDS)
        entity, role = _service_in(root)
        entity_id = (entity.get("entityID") or "").strip()
        if not entity_id or "{" in entity_id:
            # The entity id of Entra's common directory has a placeholder. With a placeholder, every organization would be an accepted
            # issuer.
            raise MetadataUnreadable("The metadata has no entityID, or an entityID with a placeholder.")
        address = next((one for one in _addresses(role) if is_web_address(one, allows_http=allows_http)), "")
        certificates: tuple[Certificate, ...] = signing_certificates(role)
        found = ProviderMetadata(
            entity_id=entity_id,
            sign_in={WSFED: address},
            sign_out={WSFED: address},
            certificates=certificates,
            valid_until=valid_until(root, entity, role),
            cache_seconds=cache_seconds(root, entity, role),
        )
    except XmlError as error:
        raise MetadataUnreadable(f"The metadata cannot be read: {error}") from error
    if not address:
        raise MetadataUnreadable("The metadata has no PassiveRequestorEndpoint at an https address.")
    if not certificates:
        raise MetadataUnreadable("The metadata has no usable certificate for signing: an RSA key of 2048 bits or more is needed.")
    return found


def _service_in(root: Element) -> tuple[Element, Element]:
    if root.tag not in (_md("EntityDescriptor"), _md("EntitiesDescriptor")):
        raise MetadataUnreadable(f"The document is not federation metadata: it begins with {local_name(root)}.")
    found = [(entity, role) for entity in entities(root) for role in children(entity, _md("RoleDescriptor")) if _is_service(role)]
    if not found:
        raise MetadataUnreadable("The metadata has no security token service (RoleDescriptor of the SecurityTokenServiceType).")
    if len(found) > 1:
        raise MetadataUnreadable("The metadata describes several security token services. Use a document that describes only one.")
    return found[0]


def _is_service(role: Element) -> bool:
    # Each document chooses its own namespace prefix.
    return (role.get(qualified(XSI, "type")) or "").rpartition(":")[2] == _SERVICE


def _addresses(role: Element) -> Iterator[str]:
    for endpoint in children(role, qualified(FED, "PassiveRequestorEndpoint")):
        for reference in children(endpoint, qualified(WSA, "EndpointReference")):
            address = child(reference, qualified(WSA, "Address"))
            if address is not None:
                yield text_of(address)


def _md(name: str) -> str:
    return qualified(METADATA, name)
