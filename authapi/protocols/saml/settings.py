"""The settings of a client's add-on `samlp`: wire names and defaults, and their meaning. Pure.

Names and defaults are the same as in the upstream system (contract, 2.6). A comment marks settings that only this service has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cryptography import x509

from authapi.protocols.saml.names import (
    EMAIL_ADDRESS,
    GIVEN_NAME,
    NAME,
    NAME_IDENTIFIER,
    SURNAME,
    UNSPECIFIED_CLASS,
    UNSPECIFIED_NAME,
)
from authapi.xml.algorithms import CONTENT_ENCRYPTION_NAMES, DIGEST_NAMES, RSA_SHA1, SHA1, SIGNATURE_NAMES
from authapi.xml.bindings import HTTP_POST
from authapi.xml.certificates import certificate_of, certificates_of

ADDON = "samlp"
# One hour. The service provider must use the assertion within this time; the session at the service provider may last longer.
DEFAULT_LIFETIME = 3600
DEFAULT_MAPPINGS: Mapping[str, str] = {
    "user_id": NAME_IDENTIFIER,
    "email": EMAIL_ADDRESS,
    "name": NAME,
    "given_name": GIVEN_NAME,
    "family_name": SURNAME,
}
DEFAULT_PROBES = (NAME_IDENTIFIER, EMAIL_ADDRESS, NAME)


@dataclass(frozen=True)
class IndexedAddress:
    """An assertion consumer service that requests may select by its index."""

    index: int
    address: str


@dataclass(frozen=True)
class SamlSettings:
    """The settings of an application. If a setting is empty, the value in the request or the default applies."""

    audience: str = ""
    recipient: str = ""
    destination: str = ""
    issuer: str = ""
    mappings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    creates_upn: bool = True
    passes_unmapped: bool = True
    maps_unknown_as_is: bool = False
    maps_identities: bool = True
    claims_prefix: str = ""
    signature: str = "rsa-sha256"
    digest: str = "sha256"
    signs_response: bool = False
    signs_assertion: bool = True
    lifetime_seconds: int = DEFAULT_LIFETIME
    name_id_format: str = UNSPECIFIED_NAME
    name_id_probes: tuple[str, ...] = DEFAULT_PROBES
    authn_context: str = UNSPECIFIED_CLASS
    types_attributes: bool = True
    includes_name_format: bool = True
    logout_address: str = ""
    is_logout_enabled: bool = True
    logout_binding: str = HTTP_POST
    signing_certificates: tuple[x509.Certificate, ...] = ()
    encryption_certificate: x509.Certificate | None = None
    encryption: str = "aes256-gcm"
    addresses: tuple[IndexedAddress, ...] = ()

    @property
    def requires_signed_requests(self) -> bool:
        """Whether requests must be signed. They must be signed if the application has registered a certificate that verifies them."""
        return bool(self.signing_certificates)

    @property
    def allows_sha1(self) -> bool:
        """Whether the application may send SHA-1 signatures. It may if its settings select SHA-1."""
        return SIGNATURE_NAMES[self.signature] == RSA_SHA1 or DIGEST_NAMES[self.digest] == SHA1

    @property
    def sends_logouts(self) -> bool:
        return self.is_logout_enabled and bool(self.logout_address)

    @property
    def encryption_algorithm(self) -> str:
        return CONTENT_ENCRYPTION_NAMES[self.encryption]

    def address_at(self, index: int) -> str | None:
        """Return the assertion consumer service with this index, None for an unknown index."""
        return next((each.address for each in self.addresses if each.index == index), None)


def is_on(client_settings: Mapping[str, Any]) -> bool:
    """Tell whether a client uses SAML: it has the add-on, even without settings."""
    return (client_settings.get("addons") or {}).get(ADDON) is not None


def saml_settings(client_settings: Mapping[str, Any]) -> SamlSettings:
    """Return the settings of a client's add-on, with defaults for unset members."""
    return settings_of((client_settings.get("addons") or {}).get(ADDON) or {})


def settings_of(addon: Mapping[str, Any]) -> SamlSettings:
    """Return the settings from checked members of `addons.samlp`."""
    logout = addon.get("logout") or {}
    mappings = addon.get("mappings")
    signs_response = addon.get("signResponse") is True
    encryption = addon.get("encryptionCert")
    return SamlSettings(
        audience=addon.get("audience") or "",
        recipient=addon.get("recipient") or "",
        destination=addon.get("destination") or "",
        issuer=addon.get("issuer") or "",
        mappings={name: _texts(value) for name, value in (mappings if mappings is not None else DEFAULT_MAPPINGS).items()},
        creates_upn=_switch(addon, "createUpnClaim", default=True),
        passes_unmapped=_switch(addon, "passthroughClaimsWithNoMapping", default=True),
        maps_unknown_as_is=_switch(addon, "mapUnknownClaimsAsIs", default=False),
        maps_identities=_switch(addon, "mapIdentities", default=True),
        claims_prefix=addon.get("claimsPrefix") or "",
        signature=addon.get("signatureAlgorithm") or "rsa-sha256",
        digest=addon.get("digestAlgorithm") or "sha256",
        signs_response=signs_response,
        # Upstream differs: it signs only the response or only the assertion. Some service providers need both signatures.
        signs_assertion=_switch(addon, "signAssertion", default=not signs_response),
        lifetime_seconds=addon.get("lifetimeInSeconds") or DEFAULT_LIFETIME,
        name_id_format=addon.get("nameIdentifierFormat") or UNSPECIFIED_NAME,
        name_id_probes=tuple(addon.get("nameIdentifierProbes") or DEFAULT_PROBES),
        authn_context=addon.get("authnContextClassRef") or UNSPECIFIED_CLASS,
        types_attributes=_switch(addon, "typedAttributes", default=True),
        includes_name_format=_switch(addon, "includeAttributeNameFormat", default=True),
        logout_address=logout.get("callback") or "",
        is_logout_enabled=_switch(logout, "slo_enabled", default=True),
        logout_binding=addon.get("binding") or HTTP_POST,
        signing_certificates=certificates_of(addon.get("signingCert") or ""),
        encryption_certificate=certificate_of(encryption) if encryption else None,
        encryption=addon.get("encryptionAlgorithm") or "aes256-gcm",
        addresses=tuple(IndexedAddress(each["index"], each["url"]) for each in addon.get("assertionConsumerServices") or ()),
    )


def _switch(members: Mapping[str, Any], name: str, *, default: bool) -> bool:
    value = members.get(name)
    return default if value is None else value is True


def _texts(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)
