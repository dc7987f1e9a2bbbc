"""What a connection says about its provider: client, addresses, scope."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from authapi.failures.logins import LoginCase
from authapi.upstream.failures import UpstreamFailed
from identity.models import Connection
from identity.options.discovery import WELL_KNOWN

STRATEGIES = ("oidc", "okta", "google-oauth2")
_ISSUERS = {"google-oauth2": "https://accounts.google.com"}
_SCOPE = "openid profile email"
_ADDRESSES = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri", "end_session_endpoint")


@dataclass(frozen=True)
class Provider:
    """A provider as its connection names it. Addresses that are missing come from discovery."""

    client_id: str
    secret: str = field(repr=False)
    issuer: str
    discovery_url: str
    scope: str
    addresses: Mapping[str, str]
    is_secret_posted: bool
    uses_pkce: bool
    # Sent along with every request to the authorization endpoint.
    parameters: Mapping[str, str]

    @property
    def needs_discovery(self) -> bool:
        return not (self.issuer and {"authorization_endpoint", "token_endpoint", "jwks_uri"} <= self.addresses.keys())


def provider_of(connection: Connection) -> Provider:
    """Return the provider of a connection; raise `UpstreamFailed` when it names none that could be asked."""
    options = connection.options
    issuer = _text(options, "issuer") or _issuer_of(connection)
    discovery_url = _text(options, "discovery_url") or (issuer.rstrip("/") + WELL_KNOWN if issuer else "")
    provider = Provider(
        client_id=_text(options, "client_id"),
        secret=connection.secret_option("client_secret") or "",
        issuer=issuer,
        discovery_url=discovery_url,
        scope=_scope(options),
        addresses={name: address for name in _ADDRESSES if (address := _text(options, name))},
        is_secret_posted=_text(options, "token_endpoint_auth_method") == "client_secret_post",
        uses_pkce=_uses_pkce(options),
        parameters=_parameters(options.get("upstream_params")),
    )
    if connection.strategy not in STRATEGIES or not provider.client_id or (provider.needs_discovery and not discovery_url):
        raise UpstreamFailed(LoginCase.UPSTREAM_MISCONFIGURED, f"{connection.name} names neither an issuer nor all addresses.")
    return provider


def _issuer_of(connection: Connection) -> str:
    domain = _text(connection.options, "domain")
    return f"https://{domain}" if connection.strategy == "okta" and domain else _ISSUERS.get(connection.strategy, "")


def _text(options: Mapping[str, Any], name: str) -> str:
    value = options.get(name)
    return value if isinstance(value, str) else ""


def _scope(options: Mapping[str, Any]) -> str:
    value = options.get("scope")
    words = value if isinstance(value, list) else str(value or _SCOPE).replace(",", " ").split()
    named = [word for word in words if isinstance(word, str) and word]
    # Without it there is no id token, and so nothing that proves who logged in.
    return " ".join(named if "openid" in named else ["openid", *named])


def _uses_pkce(options: Mapping[str, Any]) -> bool:
    settings = options.get("connection_settings")
    return not (isinstance(settings, dict) and settings.get("pkce") == "disabled")


def _parameters(named: Any) -> dict[str, str]:
    """Return the fixed ones of `upstream_params`; aliases of our own parameters are added where the request is known."""
    if not isinstance(named, dict):
        return {}
    return {name: rule["value"] for name, rule in named.items() if isinstance(rule, dict) and isinstance(rule.get("value"), str)}


def passed_on(connection: Connection, parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters that the connection takes over from the client's own request (`upstream_params` with an alias)."""
    named = connection.options.get("upstream_params")
    if not isinstance(named, dict):
        return {}
    aliases = {name: rule.get("alias") for name, rule in named.items() if isinstance(rule, dict)}
    found = {name: parameters.get(alias) for name, alias in aliases.items() if isinstance(alias, str)}
    return {name: value for name, value in found.items() if isinstance(value, str)}
