"""Reads the options of `adfs` and `waad` connections into one value, and describes an invalid option in a sentence. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from authapi.upstream.saml.certificates import Certificate
from authapi.upstream.saml.options import (
    MOST_METADATA_CHARACTERS,
    OptionsInvalid,
    checked_address,
    email_trust,
    field_names,
    named_attributes,
    read_text,
    shown_certificates,
)

METADATA_PATH = "FederationMetadata/2007-06/FederationMetadata.xml"
_MICROSOFT = "https://login.microsoftonline.com"
_LONGEST = 2048
# A host with an optional port, the usual form of `adfs_server`.
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?(?::[0-9]{1,5})?")
_DOMAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}")
# These directories contain accounts of every organization, so an attacker can have an account in them.
_SHARED_TENANTS = ("common", "organizations", "consumers")
WSFED_NAMES = ("ws-federation", "wsfed", "ws-fed")


@dataclass(frozen=True)
class WsFedOptions:
    """The settings of the connection. If a value is empty, the metadata or a default decides."""

    metadata_url: str = ""
    metadata_xml: str = ""
    sign_in_endpoint: str = ""
    certificates: tuple[Certificate, ...] = ()
    realm: str = ""
    user_id_attributes: tuple[str, ...] = ()
    fields: tuple[tuple[str, tuple[str, ...]], ...] = ()
    trusts_emails: bool | None = None


def is_wsfed(strategy: str, options: Mapping[str, Any]) -> bool:
    """Tell whether a connection uses WS-Federation: AD FS always, Entra if its options select it."""
    if strategy == "adfs":
        return True
    asked = str(options.get("waad_protocol") or "").lower()
    return strategy == "waad" and (asked in WSFED_NAMES or options.get("use_wsfed") is True)


def read_options(strategy: str, options: Mapping[str, Any], *, allows_http: bool = False) -> WsFedOptions:
    """Return the options as one value. Raises `OptionsInvalid`."""
    return WsFedOptions(
        metadata_url=_adfs_metadata(options, allows_http=allows_http) if strategy == "adfs" else _entra_metadata(options),
        metadata_xml=read_text(options, "fedMetadataXml", MOST_METADATA_CHARACTERS),
        sign_in_endpoint=checked_address(options, "signInEndpoint", allows_http=allows_http),
        certificates=shown_certificates(options, "cert"),
        realm=read_text(options, "entityId", 1024)
        or (f"spn:{options['client_id']}" if strategy == "waad" and options.get("client_id") else ""),
        user_id_attributes=named_attributes(options.get("user_id_attribute") or options.get("userid_attribute"), "user_id_attribute"),
        fields=field_names(options.get("fieldsMap")),
        trusts_emails=email_trust(options),
    )


def _adfs_metadata(options: Mapping[str, Any], *, allows_http: bool) -> str:
    """Return the URL of the metadata of AD FS. The option `adfs_server` is a host, or this URL with or without its path."""
    named = read_text(options, "adfs_server", _LONGEST)
    if not named:
        return ""
    if _HOST.fullmatch(named):
        return f"https://{named}/{METADATA_PATH}"
    address = checked_address(options, "adfs_server", allows_http=allows_http)
    return address if urlsplit(address).path not in ("", "/") else f"{address.rstrip('/')}/{METADATA_PATH}"


def _entra_metadata(options: Mapping[str, Any]) -> str:
    """Return the URL of the metadata of Entra for one directory. A client id in the URL selects the keys of that client."""
    domain = read_text(options, "tenantId", 255) or read_text(options, "tenant_domain", 255) or read_text(options, "domain", 255)
    if not domain:
        return ""
    if options.get("useCommonEndpoint") or domain.lower() in _SHARED_TENANTS:
        raise OptionsInvalid("tenant_domain must name one directory: with the common directory, users of every organization could log in.")
    if not _DOMAIN.fullmatch(domain):
        raise OptionsInvalid("tenant_domain must be a domain or the id of a directory.")
    client = options.get("client_id")
    return f"{_MICROSOFT}/{domain}/{METADATA_PATH}{f'?appid={quote(client)}' if isinstance(client, str) and client else ''}"
