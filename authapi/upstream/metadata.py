"""The discovery documents and keys that providers publish: fetched through the outbound session and cached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from authapi.failures.logins import LoginCase
from authapi.upstream.exchange import ProviderSession
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.provider import Provider, is_of_template
from foundation.memory.ttl_cache import Remembered
from identity.options.discovery import is_expected_issuer

_REMEMBERED_SECONDS = 600.0
# The shortest interval between two fetches for an unknown key id. Otherwise each forged token would cause a request to the provider.
_UNKNOWN_KEY_SECONDS = 10.0
_MOST_PROVIDERS = 512


@dataclass(frozen=True)
class Metadata:
    """The issuer and the addresses of a provider. An address in the options of the connection replaces the address that discovery found."""

    issuer: str
    addresses: Mapping[str, str]
    sends_issuer: bool = False

    def address(self, name: str) -> str:
        """Return an address. Raises `UpstreamFailed` if the provider has no such address."""
        address = self.addresses.get(name)
        if not address:
            raise UpstreamFailed(LoginCase.UPSTREAM_MISCONFIGURED, f"The provider has no {name}.")
        return address

    def browser_address(self, name: str) -> str:
        """Return an address for a browser.

        Raises `UpstreamFailed` if the provider has no such address, or if the address is not a web address.
        """
        address = self.address(name)
        if not is_browser_address(address):
            raise UpstreamFailed(LoginCase.UPSTREAM_MISCONFIGURED, f"The {name} of the provider is not a web address.")
        return address


def is_browser_address(address: str) -> bool:
    """Tell whether a browser may be sent to an address of a provider: an https address, or an http address if OUTBOUND_ALLOW_HTTP is on."""
    if not address.isprintable() or " " in address:
        return False
    try:
        parts = urlsplit(address)
        host, _port = parts.hostname, parts.port
    except ValueError:
        return False
    is_web = parts.scheme == "https" or (parts.scheme == "http" and settings.OUTBOUND_ALLOW_HTTP)
    return is_web and bool(host) and "@" not in parts.netloc and "\\" not in address


def _load_document(url: str) -> dict[str, Any]:
    return ProviderSession().get_json(url)


# The cache key is only the address of the document, without a tenant: at one address, every tenant gets the same document.
documents: Remembered[str, dict[str, Any]] = Remembered(_load_document, seconds=_REMEMBERED_SECONDS, limit=_MOST_PROVIDERS)


def metadata_of(provider: Provider) -> Metadata:
    """Return the metadata of a provider. Raises `UpstreamFailed`, also if its discovery document names an unexpected issuer."""
    if provider.needs_discovery:
        return discovered(provider)
    # A provider of plain OAuth 2.0 has no issuer, so its authorization endpoint takes the place of the issuer.
    return Metadata(provider.issuer or provider.addresses.get("authorization_endpoint", ""), provider.addresses)


def discovered(provider: Provider) -> Metadata:
    """Return the metadata that a provider publishes, overridden by addresses of the connection. Raises the errors of `metadata_of`."""
    document = documents.get(provider.discovery_url)
    issuer = document.get("issuer")
    if not isinstance(issuer, str) or not _is_expected(provider, issuer):
        documents.forget(provider.discovery_url)
        raise UpstreamFailed(LoginCase.UPSTREAM_ISSUER_MISMATCH, "The discovery document belongs to another issuer.")
    published = {name: value for name, value in document.items() if isinstance(value, str)}
    sends_issuer = document.get("authorization_response_iss_parameter_supported") is True
    return Metadata(issuer, {**published, **provider.addresses}, sends_issuer)


def _is_expected(provider: Provider, issuer: str) -> bool:
    if provider.issuer_template:
        return is_of_template(provider.issuer_template, issuer)
    return is_expected_issuer(issuer, named=provider.issuer, address=provider.discovery_url)


def keys_of(address: str, *, is_key_unknown: bool = False) -> list[dict[str, Any]]:
    """Return the keys at a JWKS address.

    If `is_key_unknown` is true, a token names a key that is not in the cache. Then the keys are fetched again, unless the last fetch was
    less than `_UNKNOWN_KEY_SECONDS` ago.
    """
    document = documents.get(address, max_age=_UNKNOWN_KEY_SECONDS if is_key_unknown else None)
    keys = document.get("keys")
    if not isinstance(keys, list):
        documents.forget(address)
        raise UpstreamFailed(LoginCase.UPSTREAM_ODD_ANSWER, "The key set has no keys.")
    return [key for key in keys if isinstance(key, dict)]
