"""What providers publish about themselves: discovery documents and keys, fetched safely and kept for a while."""

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
# An unknown key id makes us look again, and no oftener than this, so that junk tokens cost the provider nothing.
_UNKNOWN_KEY_SECONDS = 10.0
_MOST_PROVIDERS = 512


@dataclass(frozen=True)
class Metadata:
    """The issuer, to the letter, and the addresses that count: those of the connection before those of discovery."""

    issuer: str
    addresses: Mapping[str, str]
    sends_issuer: bool = False

    def address(self, name: str) -> str:
        """Return an address; raise `UpstreamFailed` where the provider has none."""
        address = self.addresses.get(name)
        if not address:
            raise UpstreamFailed(LoginCase.UPSTREAM_MISCONFIGURED, f"The provider names no {name}.")
        return address

    def browser_address(self, name: str) -> str:
        """Return an address to which a browser is sent; raise `UpstreamFailed` where the provider has none, or an odd one."""
        address = self.address(name)
        if not is_browser_address(address):
            raise UpstreamFailed(LoginCase.UPSTREAM_MISCONFIGURED, f"The {name} of the provider is no web address.")
        return address


def is_browser_address(address: str) -> bool:
    """Tell whether a browser may be sent to an address that a provider publishes: a web page, over TLS where we ask over TLS."""
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


# Keyed by address: what is published is the same for every tenant.
documents: Remembered[str, dict[str, Any]] = Remembered(_load_document, seconds=_REMEMBERED_SECONDS, limit=_MOST_PROVIDERS)


def metadata_of(provider: Provider) -> Metadata:
    """Return what is known of a provider. Raises `UpstreamFailed`, also when a document names another issuer than expected."""
    if provider.needs_discovery:
        return discovered(provider)
    # A provider of OAuth 2.0 alone is known by the page that the browser is sent to.
    return Metadata(provider.issuer or provider.addresses.get("authorization_endpoint", ""), provider.addresses)


def discovered(provider: Provider) -> Metadata:
    """Return what a provider publishes, under the addresses of the connection. Raises what `metadata_of` raises."""
    document = documents.get(provider.discovery_url)
    issuer = document.get("issuer")
    if not isinstance(issuer, str) or not _is_expected(provider, issuer):
        documents.forget(provider.discovery_url)
        raise UpstreamFailed(LoginCase.UPSTREAM_ISSUER_MISMATCH, "The discovery document is that of another issuer.")
    published = {name: value for name, value in document.items() if isinstance(value, str)}
    sends_issuer = document.get("authorization_response_iss_parameter_supported") is True
    return Metadata(issuer, {**published, **provider.addresses}, sends_issuer)


def _is_expected(provider: Provider, issuer: str) -> bool:
    if provider.issuer_template:
        return is_of_template(provider.issuer_template, issuer)
    return is_expected_issuer(issuer, named=provider.issuer, address=provider.discovery_url)


def keys_of(address: str, *, is_key_unknown: bool = False) -> list[dict[str, Any]]:
    """Return the keys at a JWKS address, freshly fetched when one that is needed is not among those that are remembered."""
    document = documents.get(address, max_age=_UNKNOWN_KEY_SECONDS if is_key_unknown else None)
    keys = document.get("keys")
    if not isinstance(keys, list):
        documents.forget(address)
        raise UpstreamFailed(LoginCase.UPSTREAM_ODD_ANSWER, "The key set has no keys.")
    return [key for key in keys if isinstance(key, dict)]
