"""Metadata of a provider: its entity id, addresses and certificates (SAML Metadata 2.0). Pure: the clock is an argument.

The service trusts the document because of its source: an administrator uploads the document, or the service fetches it over TLS from an
address that an administrator entered. A signature of the document is not checked, because this service has no key for the check.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from authapi.upstream.saml.certificates import MOST_CERTIFICATES, Certificate, CertificateUnreadable, read_certificates
from authapi.upstream.saml.facts import TimeUnreadable, instant_of, wire_instant
from authapi.upstream.saml.options import POST, REDIRECT, is_web_address
from authapi.xml.failures import XmlError
from authapi.xml.names import DS, METADATA, SAMLP, qualified
from authapi.xml.parsing import METADATA as METADATA_BOUNDS
from authapi.xml.parsing import Element, child, children, local_name, parse, text_of

_BINDINGS = (REDIRECT, POST)
_PROTOCOL = SAMLP
_LONGEST_ENTITY_ID = 1024
# XML Schema, 3.2.6: days and times of a duration. Years and months are not accepted, because they have no fixed length.
_DURATION = re.compile(r"P(?:(\d{1,6})D)?(?:T(?:(\d{1,8})H)?(?:(\d{1,8})M)?(?:(\d{1,10})(?:\.\d+)?S)?)?")


class MetadataUnreadable(ValueError):
    """The document cannot be used as metadata of a provider. The message gives the reason."""


@dataclass(frozen=True)
class ProviderMetadata:
    """One provider as its metadata describes it. Addresses are keyed by binding."""

    entity_id: str
    sign_in: Mapping[str, str] = field(default_factory=dict)
    sign_out: Mapping[str, str] = field(default_factory=dict)
    # Addresses for answers to logout requests; empty if they go to the address for requests.
    sign_out_answers: Mapping[str, str] = field(default_factory=dict)
    certificates: tuple[Certificate, ...] = ()
    wants_signed_requests: bool = False
    valid_until: datetime | None = None
    cache_seconds: int | None = None

    def kept(self) -> dict[str, Any]:
        """Return the metadata as JSON for storage."""
        return {
            "entity_id": self.entity_id,
            "sign_in": dict(self.sign_in),
            "sign_out": dict(self.sign_out),
            "sign_out_answers": dict(self.sign_out_answers),
            "certificates": [certificate.text for certificate in self.certificates],
            "wants_signed_requests": self.wants_signed_requests,
            "valid_until": wire_instant(self.valid_until) if self.valid_until else None,
        }

    @classmethod
    def of_kept(cls, kept: Mapping[str, Any]) -> ProviderMetadata:
        """Return the metadata from stored JSON."""
        valid_until = instant_of(kept.get("valid_until"))
        return cls(**{**kept, "certificates": read_certificates(kept["certificates"]), "valid_until": valid_until})


def read_metadata(raw: bytes, *, allows_http: bool = False) -> ProviderMetadata:
    """Return the one identity provider that a document describes. Raises `MetadataUnreadable`.

    Skips unusable parts: addresses that are not web addresses, and certificates with unsupported keys. A document is refused if it then
    has no address for logins, or no certificate.
    """
    try:
        root = parse(raw, METADATA_BOUNDS)
        entity, descriptor = _provider_in(root)
        entity_id = (entity.get("entityID") or "").strip()
        if not 0 < len(entity_id) <= _LONGEST_ENTITY_ID:
            raise MetadataUnreadable("The metadata has no entityID.")
        found = ProviderMetadata(
            entity_id=entity_id,
            sign_in=_addresses(descriptor, "SingleSignOnService", allows_http=allows_http),
            sign_out=_addresses(descriptor, "SingleLogoutService", allows_http=allows_http),
            sign_out_answers=_addresses(descriptor, "SingleLogoutService", "ResponseLocation", allows_http=allows_http),
            certificates=signing_certificates(descriptor),
            wants_signed_requests=(descriptor.get("WantAuthnRequestsSigned") or "").strip() in ("true", "1"),
            valid_until=valid_until(root, entity, descriptor),
            cache_seconds=cache_seconds(root, entity, descriptor),
        )
    except XmlError as error:
        raise MetadataUnreadable(f"The metadata cannot be read: {error}") from error
    if not found.sign_in:
        raise MetadataUnreadable("The metadata has no SingleSignOnService for HTTP-Redirect or HTTP-POST at an https address.")
    if not found.certificates:
        raise MetadataUnreadable("The metadata has no usable certificate for signing: an RSA key of 2048 bits or more is needed.")
    return found


def _md(name: str) -> str:
    return qualified(METADATA, name)


def _provider_in(root: Element) -> tuple[Element, Element]:
    """Return the entity and its role as identity provider. Refuses a document with several identity providers."""
    if root.tag not in (_md("EntityDescriptor"), _md("EntitiesDescriptor")):
        raise MetadataUnreadable(f"The document is not SAML metadata: it begins with {local_name(root)}.")
    found = [
        (entity, descriptor)
        for entity in entities(root)
        for descriptor in children(entity, _md("IDPSSODescriptor"))
        if _PROTOCOL in (descriptor.get("protocolSupportEnumeration") or "").split()
    ]
    if not found:
        raise MetadataUnreadable("The metadata has no identity provider (IDPSSODescriptor) that supports SAML 2.0.")
    if len(found) > 1:
        raise MetadataUnreadable("The metadata describes several identity providers. Use a document that describes only one.")
    return found[0]


def entities(root: Element) -> Iterator[Element]:
    """Yield each entity of a document, which may contain one entity or a tree of entities."""
    if root.tag == _md("EntityDescriptor"):
        yield root
        return
    yield from children(root, _md("EntityDescriptor"))
    for inner in children(root, _md("EntitiesDescriptor")):
        yield from entities(inner)


def _addresses(descriptor: Element, service: str, attribute: str = "Location", *, allows_http: bool) -> dict[str, str]:
    """Return the first usable address of each supported binding."""
    found: dict[str, str] = {}
    for endpoint in children(descriptor, _md(service)):
        binding, address = endpoint.get("Binding") or "", (endpoint.get(attribute) or "").strip()
        if binding in _BINDINGS and is_web_address(address, allows_http=allows_http):
            found.setdefault(binding, address)
    return found


def signing_certificates(descriptor: Element) -> tuple[Certificate, ...]:
    """Return the certificates for signing, in order. If a key has no attribute `use`, it is for signing and for encryption."""
    found: dict[Certificate, None] = {}
    for key in children(descriptor, _md("KeyDescriptor")):
        if key.get("use") not in (None, "signing"):
            continue
        for text in _certificate_texts(key):
            try:
                found |= dict.fromkeys(read_certificates(text))
            except CertificateUnreadable:
                # An unsupported certificate must not lock users out if there is also a usable certificate. A document without a usable
                # certificate is refused.
                continue
    return tuple(found)[:MOST_CERTIFICATES]


def _certificate_texts(key: Element) -> Iterator[str]:
    info = child(key, qualified(DS, "KeyInfo"))
    for data in children(info, qualified(DS, "X509Data")) if info is not None else ():
        for certificate in children(data, qualified(DS, "X509Certificate")):
            yield text_of(certificate)


def valid_until(*elements: Element) -> datetime | None:
    """Return the earliest end of validity. An unreadable time is ignored."""
    found = []
    for element in elements:
        try:
            moment = instant_of(element.get("validUntil"))
        except TimeUnreadable:
            continue
        if moment is not None:
            found.append(moment)
    return min(found, default=None)


def cache_seconds(*elements: Element) -> int | None:
    """Return the shortest `cacheDuration` in seconds."""
    found = []
    for element in elements:
        match = _DURATION.fullmatch((element.get("cacheDuration") or "").strip())
        if match is not None and any(match.groups()):
            days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
            found.append(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
    return min(found, default=None)


def next_fetch(metadata: ProviderMetadata, now: datetime, *, shortest: timedelta, longest: timedelta) -> datetime:
    """Return when to fetch the document again.

    The service fetches the document after the interval in the document, or when half of its remaining validity is over, if that is earlier.
    The result is between `shortest` and `longest` from now.
    """
    wanted = longest if metadata.cache_seconds is None else timedelta(seconds=metadata.cache_seconds)
    if metadata.valid_until is not None:
        wanted = min(wanted, (metadata.valid_until.astimezone(UTC) - now) / 2)
    return now + min(max(wanted, shortest), longest)
