"""The provider of a connection.

Client, addresses and scope come from the connection; other values come from the table of known providers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from django.conf import settings

from authapi.failures.logins import LoginCase
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.social.known_providers import (
    COMMON_DIRECTORY,
    GRAPH_VERSION,
    KNOWN,
    OAUTH2,
    OPENID,
    TENANT_ID,
    KnownProvider,
    Peculiarity,
)
from authapi.upstream.social.options import DIRECTORY, VERSION, hosted_domains_in, written_fields
from authapi.upstream.social.signed_secret import SigningKey, SigningKeyInvalid, signed_secret
from identity.models import Connection
from identity.options.discovery import WELL_KNOWN
from identity.options.schemas.nodes import names_of

OPENID_STRATEGIES = ("oidc", "okta")
GENERIC = "oauth2"
STRATEGIES = (*OPENID_STRATEGIES, GENERIC, *KNOWN)
_ADDRESSES = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri", "end_session_endpoint")
# The option names under which a tenant sets the addresses of an OAuth 2.0 provider.
_GENERIC_ADDRESSES = {"authorization_endpoint": "authorizationURL", "token_endpoint": "tokenURL", "userinfo_endpoint": "userInfoURL"}
_GUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, kw_only=True)
class ClaimRules:
    """How a connection reads the claims of its provider. A connection that still lacks required options has rules, too."""

    row: KnownProvider = OPENID
    # Claims as expressions over the profile. These expressions replace or extend the expressions of `row`, the entry in the table of known
    # providers.
    fields: Mapping[str, str] = field(default_factory=dict)
    hosted_domains: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Provider(ClaimRules):
    """A provider as its connection describes it. Missing addresses come from discovery."""

    client_id: str
    secret: str = field(repr=False)
    issuer: str
    discovery_url: str
    scope: str
    addresses: Mapping[str, str]
    is_secret_posted: bool
    uses_pkce: bool
    # These parameters are added to every request to the authorization endpoint.
    parameters: Mapping[str, str]
    # These headers are added to every request to the token endpoint, and to every request for the profile.
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    key: SigningKey | None = field(default=None, repr=False)
    # The pattern of the issuer, with a placeholder for the directory id. Set if the connection names its directory by a domain.
    issuer_template: str = ""

    @property
    def needs_discovery(self) -> bool:
        if self.row.calls:
            return False
        return not (self.issuer and {"authorization_endpoint", "token_endpoint", "jwks_uri"} <= self.addresses.keys())

    @property
    def client_secret(self) -> str:
        """The secret for the token endpoint, newly signed if the provider requires a signed secret. Raises `UpstreamFailed`."""
        if self.key is None:
            return self.secret
        try:
            return signed_secret(self.key, client_id=self.client_id, audience=self.issuer)
        except SigningKeyInvalid as error:
            raise UpstreamFailed(LoginCase.UPSTREAM_MISCONFIGURED, "app_secret is not a private key of the provider.") from error

    def expected_issuer(self, issuer: str, claims: Mapping[str, Any]) -> str:
        """Return the issuer that must be in the signed claims. `issuer` is the issuer to which the request was sent."""
        if TENANT_ID in issuer:
            return issuer.replace(TENANT_ID, _directory_of(claims))
        named = claims.get("iss")
        return named if named in self.row.other_issuers else issuer

    def may_be_named(self, issuer: str, named: str) -> bool:
        """Tell whether `named` is a valid issuer in an answer to a request that was sent to `issuer`.

        A provider without a known issuer is identified by the host of its authorization endpoint.
        """
        if TENANT_ID in issuer:
            return is_of_template(issuer, named)
        if self.row.calls and not self.issuer:
            return host_of(named) == host_of(issuer)
        return named == issuer or named in self.row.other_issuers


def is_of_template(template: str, issuer: str) -> bool:
    """Tell whether an issuer has the form of the template, with any directory id in place of the placeholder."""
    before, _, after = template.partition(TENANT_ID)
    return re.fullmatch(f"{re.escape(before)}{_GUID.pattern}{re.escape(after)}", issuer) is not None


def host_of(address: str) -> str:
    """Return the host and port of an address; empty for an invalid address."""
    try:
        return urlsplit(address).netloc.lower()
    except ValueError:
        return ""


def rules_of(connection: Connection) -> ClaimRules:
    """Return how a connection of OpenID Connect or OAuth 2.0 reads claims. Raises `UpstreamFailed` for another protocol."""
    strategy, options = connection.strategy, connection.options
    if strategy in KNOWN:
        row = KNOWN[strategy]
        domains = hosted_domains_in(options) if row.has(Peculiarity.HOSTED_DOMAIN) else ()
        return ClaimRules(row=row, fields=row.fields, hosted_domains=domains)
    if strategy == GENERIC:
        return ClaimRules(row=OAUTH2, fields=written_fields(options.get("fieldsMap")))
    if strategy in OPENID_STRATEGIES:
        return ClaimRules()
    raise UpstreamFailed(LoginCase.UPSTREAM_MISCONFIGURED, f"{connection.name} has no provider at which users can log in.")


def provider_of(connection: Connection) -> Provider:
    """Return the provider of a connection. Raises `UpstreamFailed` if its options name no usable provider."""
    rules = rules_of(connection)
    if connection.strategy in KNOWN:
        provider = _known(connection, rules)
    elif connection.strategy == GENERIC:
        provider = _generic(connection, rules)
    else:
        provider = _openid(connection, rules)
    if not provider.client_id:
        raise UpstreamFailed(LoginCase.UPSTREAM_MISCONFIGURED, f"{connection.name} has no client_id.")
    return provider


def _openid(connection: Connection, rules: ClaimRules) -> Provider:
    options = connection.options
    domain = _text(options, "domain")
    issuer = _text(options, "issuer") or (f"https://{domain}" if connection.strategy == "okta" and domain else "")
    provider = Provider(
        client_id=_text(options, "client_id"),
        secret=connection.secret_option("client_secret") or "",
        issuer=issuer,
        discovery_url=_text(options, "discovery_url") or (issuer.rstrip("/") + WELL_KNOWN if issuer else ""),
        scope=_scope(options, rules.row),
        addresses={name: address for name in _ADDRESSES if (address := _text(options, name))},
        is_secret_posted=_text(options, "token_endpoint_auth_method") == "client_secret_post",
        uses_pkce=_uses_pkce(options),
        parameters=_parameters(options.get("upstream_params")),
        row=rules.row,
    )
    if provider.needs_discovery and not provider.discovery_url:
        raise UpstreamFailed(LoginCase.UPSTREAM_MISCONFIGURED, f"{connection.name} has neither an issuer nor all addresses.")
    return provider


def _known(connection: Connection, rules: ClaimRules) -> Provider:
    """Return a provider of the table. Options cannot set its addresses, so that no tenant sends a secret to another address by mistake."""
    options, row = connection.options, rules.row
    client_id = _text(options, "client_id")
    directory = _directory(connection) if row.has(Peculiarity.DIRECTORY_ISSUER) else ""
    overrides = settings.PROVIDER_ADDRESSES.get(connection.strategy, {})
    places = {"{directory}": directory, "{version}": _version(options), "{client_id}": quote(client_id, safe="")}
    addresses = {name: _filled(address, places) for name, address in {**row.addresses, "issuer": row.issuer, **overrides}.items()}
    issuer, discovery_url = addresses.pop("issuer"), addresses.pop("discovery_url", "")
    template = ""
    if _GUID.fullmatch(directory):
        issuer = issuer.replace(TENANT_ID, directory)
    elif directory not in ("", COMMON_DIRECTORY):
        # The directory is named by a domain. Its discovery document names the issuer.
        issuer, template = "", issuer
    is_signed = row.has(Peculiarity.SIGNED_SECRET)
    domains = rules.hosted_domains
    return Provider(
        client_id=client_id,
        secret="" if is_signed else connection.secret_option("client_secret") or "",
        issuer=issuer,
        discovery_url="" if issuer else discovery_url,
        scope=_scope(options, row),
        addresses=addresses,
        is_secret_posted=row.has(Peculiarity.POSTED_SECRET),
        uses_pkce=_uses_pkce(options) and not row.has(Peculiarity.NO_PKCE),
        # The hint `hd` makes the provider offer only suitable accounts. The hint proves nothing, so the claim `hd` of the id token is
        # checked.
        parameters={**({"hd": domains[0] if len(domains) == 1 else "*"} if domains else {}), **_parameters(options.get("upstream_params"))},
        row=row,
        fields=rules.fields,
        hosted_domains=domains,
        key=_signing_key(connection) if is_signed else None,
        issuer_template=template,
    )


def _generic(connection: Connection, rules: ClaimRules) -> Provider:
    """Return a provider that only the options of its connection describe. Raises `UpstreamFailed` if an address is missing."""
    options = connection.options
    addresses = {name: address for name in _ADDRESSES if (address := _address(connection, name))}
    missing = next((option for name, option in _GENERIC_ADDRESSES.items() if name not in addresses), None)
    if missing is not None:
        more = " Profile scripts are not supported." if missing == "userInfoURL" else ""
        raise UpstreamFailed(LoginCase.UPSTREAM_MISCONFIGURED, f"{connection.name} names no {missing}.{more}")
    return Provider(
        client_id=_text(options, "client_id"),
        secret=connection.secret_option("client_secret") or "",
        issuer=_text(options, "issuer"),
        discovery_url="",
        scope=_scope(options, rules.row),
        addresses=addresses,
        is_secret_posted=_text(options, "token_endpoint_auth_method") != "client_secret_basic",
        uses_pkce=_uses_pkce(options),
        parameters={**_plain(options.get("authParams")), **_parameters(options.get("upstream_params"))},
        row=rules.row,
        headers=_headers(connection),
        fields=rules.fields,
    )


def _signing_key(connection: Connection) -> SigningKey:
    """Return the key that signs the client secret. Raises `UpstreamFailed`, which names the missing options."""
    options = connection.options
    pem = connection.secret_option("app_secret") or ""
    missing = [name for name, value in (("team_id", options.get("team_id")), ("kid", options.get("kid")), ("app_secret", pem)) if not value]
    if missing:
        raise UpstreamFailed(LoginCase.UPSTREAM_MISCONFIGURED, f"{connection.name} has no {', '.join(missing)}.")
    return SigningKey(team_id=_text(options, "team_id"), key_id=_text(options, "kid"), pem=pem)


def _directory(connection: Connection) -> str:
    """Return the directory whose accounts may log in. Raises `UpstreamFailed` if there is none."""
    options = connection.options
    if connection.strategy != "waad" or options.get("useCommonEndpoint") is True:
        return COMMON_DIRECTORY
    named = (_text(options, "tenantId") or _text(options, "tenant_domain") or _text(options, "domain")).lower()
    if not DIRECTORY.fullmatch(named):
        raise UpstreamFailed(LoginCase.UPSTREAM_MISCONFIGURED, f"{connection.name} has no directory: set tenant_domain.")
    return named


def _version(options: Mapping[str, Any]) -> str:
    named = _text(options, "graph_version")
    return named if VERSION.fullmatch(named) else GRAPH_VERSION


def _directory_of(claims: Mapping[str, Any]) -> str:
    """Return the directory id of a token. For an invalid id, return `-`, which is part of no issuer."""
    named = claims.get("tid")
    return named if isinstance(named, str) and _GUID.fullmatch(named) else "-"


def _filled(address: str, places: Mapping[str, str]) -> str:
    for place, value in places.items():
        address = address.replace(place, value)
    return address


def _address(connection: Connection, name: str) -> str:
    """Return an address from the first of its options that is set. An option whose address has a query string is stored sealed."""
    named = _GENERIC_ADDRESSES.get(name)
    options = connection.options
    return (_text(options, named) or connection.secret_option(named) or "" if named else "") or _text(options, name)


def _text(options: Mapping[str, Any], name: str) -> str:
    value = options.get(name)
    return value if isinstance(value, str) else ""


def _words(value: Any) -> list[str]:
    words = value if isinstance(value, list) else value.replace(",", " ").split() if isinstance(value, str) else []
    return [word for word in words if isinstance(word, str) and word]


def _scope(options: Mapping[str, Any], row: KnownProvider) -> str:
    named = _words(options.get("scope")) or row.scope.split()
    words = list(dict.fromkeys([*named, *_words(options.get("freeform_scopes"))]))
    # The id token proves the login. Providers issue an id token only for the scope `openid`.
    needs_openid = "openid" in row.scope.split() and "openid" not in words
    return " ".join(["openid", *words] if needs_openid else words)


def _uses_pkce(options: Mapping[str, Any]) -> bool:
    nested = options.get("connection_settings")
    is_disabled = isinstance(nested, dict) and nested.get("pkce") == "disabled"
    return not is_disabled and options.get("pkce_enabled") is not False


def _plain(named: Any) -> dict[str, str]:
    return {name: value for name, value in named.items() if isinstance(value, str)} if isinstance(named, dict) else {}


def _parameters(named: Any) -> dict[str, str]:
    """Return the `upstream_params` with fixed values. `passed_on` returns the parameters that have an alias."""
    if not isinstance(named, dict):
        return {}
    return {name: rule["value"] for name, rule in named.items() if isinstance(rule, dict) and isinstance(rule.get("value"), str)}


def passed_on(connection: Connection, parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters that the connection copies from the client's request.

    Two options map a parameter of the provider to a parameter of the client's request: `upstream_params` by an alias, and
    `authParamsMap` directly.
    """
    named = connection.options.get("upstream_params")
    rules = named if isinstance(named, dict) else {}
    aliases = {name: rule.get("alias") for name, rule in rules.items() if isinstance(rule, dict)}
    aliases |= _plain(connection.options.get("authParamsMap"))
    found = {name: parameters.get(alias) for name, alias in aliases.items() if isinstance(alias, str)}
    return {name: value for name, value in found.items() if isinstance(value, str)}


def _headers(connection: Connection) -> dict[str, str]:
    """Return the headers of `customHeaders`. Each value is stored as a sealed option."""
    paths = [path for path in connection.sealed_options if path.startswith("customHeaders/")]
    return {names_of(path)[1]: connection.secret_option(path) or "" for path in paths if len(names_of(path)) == 2}
