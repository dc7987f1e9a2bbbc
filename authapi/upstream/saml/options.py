"""Reads the options of a `samlp` connection into one value, and describes an invalid option in a sentence. Pure.

An option with an unusable value is refused when it is written. Missing options are accepted: a connection may be saved before its
provider is known, and the error of a login through the connection names the missing option.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any
from urllib.parse import urlsplit

from authapi.upstream.saml.certificates import Certificate, CertificateUnreadable, read_certificates

REDIRECT = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect"
POST = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST"
STRATEGIES = ("samlp", "pingfederate")
SIGNATURE_ALGORITHMS = ("rsa-sha256", "rsa-sha1", "rsa-sha384", "rsa-sha512")
DIGEST_ALGORITHMS = ("sha256", "sha1", "sha384", "sha512")
# The names that management clients use for the protocol of an application.
CLIENT_PROTOCOLS = {"oauth2": "oauth2", "oidc": "oauth2", "openid": "oauth2", "samlp": "samlp", "saml": "samlp", "wsfed": "wsfed"}
# The profile fields that attributes may set; `user_id` means the identifier of the user.
FIELDS = (
    "user_id",
    "email",
    "email_verified",
    "name",
    "nickname",
    "given_name",
    "family_name",
    "picture",
    "phone_number",
    "phone_verified",
)
_LONGEST_ADDRESS = 2048
_LONGEST_NAME = 500
_LONGEST_ENTITY_ID = 1024
# SAML Metadata 2.0 sets no limit. The document of a federation has megabytes; the document of one provider has some KiB.
MOST_METADATA_CHARACTERS = 512 * 1024
_ADDRESSES = ("signInEndpoint", "signOutEndpoint", "metadataUrl", "destinationUrl", "recipientUrl", "pingFederateBaseUrl")
_SWITCHES = ("signSAMLRequest", "disableSignout", "debug")


class OptionsInvalid(ValueError):
    """An option has a value that no login could use. The message names the option and never repeats a secret."""


class ClientProtocol(Enum):
    """The protocol of the answer to the application after a login that the provider began."""

    OAUTH2 = "oauth2"
    SAML = "samlp"
    WSFED = "wsfed"


@dataclass(frozen=True)
class IdpInitiated:
    """The application for logins that the provider begins."""

    client_id: str
    protocol: ClientProtocol
    query: str


@dataclass(frozen=True)
class SamlOptions:
    """The settings of the connection itself. If a value is empty or None, the metadata or a default decides."""

    sign_in_endpoint: str = ""
    sign_out_endpoint: str = ""
    is_sign_out_disabled: bool = False
    certificates: tuple[Certificate, ...] = ()
    entity_id: str = ""
    binding: str = ""
    signs_requests: bool | None = None
    signature_algorithm: str = SIGNATURE_ALGORITHMS[0]
    digest_algorithm: str = DIGEST_ALGORITHMS[0]
    user_id_attributes: tuple[str, ...] = ()
    fields: tuple[tuple[str, tuple[str, ...]], ...] = ()
    recipients: tuple[str, ...] = ()
    metadata_url: str = ""
    metadata_xml: str = ""
    trusts_emails: bool | None = None
    idp_initiated: IdpInitiated | None = None


def read_options(options: Mapping[str, Any], *, allows_http: bool = False) -> SamlOptions:
    """Return the options as one value. Raises `OptionsInvalid`."""
    for name in _ADDRESSES:
        checked_address(options, name, allows_http=allows_http)
    for name in _SWITCHES:
        if not isinstance(options.get(name), bool | None):
            raise OptionsInvalid(f"{name} must be true or false.")
    return SamlOptions(
        sign_in_endpoint=read_text(options, "signInEndpoint", _LONGEST_ADDRESS),
        sign_out_endpoint=read_text(options, "signOutEndpoint", _LONGEST_ADDRESS),
        is_sign_out_disabled=options.get("disableSignout") is True,
        # `cert` is the older name of the option.
        certificates=shown_certificates(options, "signingCert", "cert"),
        entity_id=read_text(options, "entityId", _LONGEST_ENTITY_ID),
        binding=_one_of(options, "protocolBinding", (REDIRECT, POST)),
        signs_requests=options.get("signSAMLRequest"),
        signature_algorithm=_one_of(options, "signatureAlgorithm", SIGNATURE_ALGORITHMS) or SIGNATURE_ALGORITHMS[0],
        digest_algorithm=_one_of(options, "digestAlgorithm", DIGEST_ALGORITHMS) or DIGEST_ALGORITHMS[0],
        user_id_attributes=named_attributes(options.get("user_id_attribute"), "user_id_attribute"),
        fields=field_names(options.get("fieldsMap")),
        recipients=tuple(dict.fromkeys(address for name in ("destinationUrl", "recipientUrl") if (address := options.get(name)))),
        metadata_url=read_text(options, "metadataUrl", _LONGEST_ADDRESS),
        metadata_xml=read_text(options, "metadataXml", MOST_METADATA_CHARACTERS),
        trusts_emails=email_trust(options),
        idp_initiated=_idp_initiated(options.get("idpinitiated")),
    )


def read_text(options: Mapping[str, Any], name: str, longest: int) -> str:
    value = options.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > longest:
        raise OptionsInvalid(f"{name} must be text of at most {longest} characters.")
    return value.strip()


def checked_address(options: Mapping[str, Any], name: str, *, allows_http: bool) -> str:
    """Return a web address; empty if the option is missing. Raises `OptionsInvalid`."""
    address = read_text(options, name, _LONGEST_ADDRESS)
    if address and not is_web_address(address, allows_http=allows_http):
        raise OptionsInvalid(f"{name} must be an https address.")
    return address


def is_web_address(address: str, *, allows_http: bool = False) -> bool:
    """Tell whether a browser may be sent to an address."""
    if not address.isprintable() or " " in address or len(address) > _LONGEST_ADDRESS:
        return False
    try:
        parts = urlsplit(address)
        host, _port = parts.hostname, parts.port
    except ValueError:
        return False
    is_web = parts.scheme == "https" or (parts.scheme == "http" and allows_http)
    return is_web and bool(host) and "@" not in parts.netloc and "\\" not in address and not parts.fragment


def _one_of(options: Mapping[str, Any], name: str, known: tuple[str, ...]) -> str:
    value = options.get(name)
    if value in (None, ""):
        return ""
    if not isinstance(value, str) or value not in known:
        raise OptionsInvalid(f"{name} must be one of {', '.join(known)}.")
    return value


def shown_certificates(options: Mapping[str, Any], *names: str) -> tuple[Certificate, ...]:
    """Return the certificates of options; each option may have several, for a rollover. Raises `OptionsInvalid`."""
    found: dict[Certificate, None] = {}
    for name in names:
        value = options.get(name)
        if value in (None, "", []):
            continue
        try:
            found |= dict.fromkeys(read_certificates(value))
        except CertificateUnreadable as error:
            raise OptionsInvalid(f"{name}: {error}") from error
    return tuple(found)


def named_attributes(value: Any, option: str) -> tuple[str, ...]:
    """Return the names of attributes in an option, which is one name or a list of names.

    A login uses the first name of the list for which the assertion has a value.
    """
    if value in (None, ""):
        return ()
    named = value if isinstance(value, list) else [value]
    if len(named) > 20 or not all(isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME for name in named):
        raise OptionsInvalid(f"{option} must be the name of an attribute, or a list of at most 20 names.")
    return tuple(named)


def field_names(value: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the attribute names of each profile field. Unknown fields stay stored, but have no effect."""
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise OptionsInvalid("fieldsMap must be an object that maps fields to names of attributes.")
    return tuple((field, names) for field in FIELDS if (names := named_attributes(value.get(field), f"fieldsMap.{field}")))


def email_trust(options: Mapping[str, Any]) -> bool | None:
    """Return whether every email address from this provider counts as verified; None if an attribute of the assertion decides."""
    return {"always_set_emails_as_verified": True, "never_set_emails_as_verified": False}.get(
        str(options.get("should_trust_email_verified_connection"))
    )


def _idp_initiated(value: Any) -> IdpInitiated | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or not isinstance(value.get("enabled"), bool | None):
        raise OptionsInvalid("idpinitiated must be an object whose enabled is true or false.")
    named = {name: value.get(name) for name in ("client_id", "client_protocol", "client_authorizequery")}
    if not all(isinstance(text, str | None) and len(text or "") <= _LONGEST_ADDRESS for text in named.values()):
        raise OptionsInvalid("idpinitiated: client_id, client_protocol and client_authorizequery must be text.")
    protocol = CLIENT_PROTOCOLS.get(named["client_protocol"] or "oauth2")
    if protocol is None:
        raise OptionsInvalid("idpinitiated.client_protocol must be one of oauth2, samlp, wsfed.")
    if not value.get("enabled"):
        return None
    if not named["client_id"]:
        raise OptionsInvalid("idpinitiated.client_id must name the application for logins that the provider starts.")
    return IdpInitiated(named["client_id"], ClientProtocol(protocol), (named["client_authorizequery"] or "").lstrip("?"))
