"""Facts about a connection for administrators: the values to enter at the provider, and the known values of the provider."""

from __future__ import annotations

from dataclasses import dataclass

from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.provider import provider_of
from authapi.upstream.saml.certificates import Certificate
from authapi.upstream.saml.connections import options_of, saml_provider
from authapi.upstream.saml.judging import acs_address
from authapi.upstream.saml.login import CALLBACK_PATH
from authapi.upstream.saml.logout import logout_address
from authapi.upstream.saml.options import REDIRECT, STRATEGIES
from authapi.upstream.saml.provider import Endpoint, own_entity_id
from authapi.upstream.wsfed.login import wsfed_provider
from authapi.upstream.wsfed.options import is_wsfed
from identity.models import Connection

_WORDS = {
    "authorization_endpoint": "Authorization endpoint",
    "token_endpoint": "Token endpoint",
    "userinfo_endpoint": "Profile",
    "jwks_uri": "Keys",
}


@dataclass(frozen=True)
class Facts:
    """Values of this service to enter at the provider (`ours`), and known values of the provider (`theirs`): pairs of label and value.

    `problem` says why values are missing: options are missing, or the metadata of the provider is unavailable.
    """

    ours: tuple[tuple[str, str], ...]
    metadata_address: str
    theirs: tuple[tuple[str, str], ...] = ()
    certificates: tuple[Certificate, ...] = ()
    takes_unasked: bool = False
    problem: str = ""
    has_certificates: bool = True


def facts_of(connection: Connection, *, base: str) -> Facts:
    """Return the facts of a connection; `base` is the tenant's address with a trailing slash. Never raises for an unusable provider."""
    try:
        if connection.strategy in STRATEGIES:
            return _saml(connection, base)
        return _wsfed(connection, base) if is_wsfed(connection.strategy, connection.options) else _openid(connection, base)
    except UpstreamFailed as failed:
        return Facts(ours=(), metadata_address="", problem=failed.detail or failed.failure.description)


def _saml(connection: Connection, base: str) -> Facts:
    options = options_of(connection)
    ours = (
        ("Entity id (audience)", own_entity_id(connection.tenant_id, connection.name, options)),
        ("Assertion consumer service (ACS, HTTP-POST)", acs_address(base + CALLBACK_PATH, connection.name)),
        ("Single logout service", logout_address(base, connection.name)),
    )
    address = f"{base}samlp/metadata?connection={connection.name}"
    try:
        provider = saml_provider(connection)
    except UpstreamFailed as failed:
        return Facts(ours, address, problem=failed.detail)
    theirs = (
        ("Entity id", provider.entity_id or "Unknown without metadata"),
        ("Sign-in address", _endpoint(provider.sign_in)),
        ("Sign-out address", _endpoint(provider.sign_out) if provider.sign_out else "None"),
        ("Requests", "Signed" if provider.signs_requests else "Not signed"),
    )
    return Facts(ours, address, theirs, provider.certificates, takes_unasked=options.idp_initiated is not None)


def _wsfed(connection: Connection, base: str) -> Facts:
    provider = wsfed_provider(connection)
    ours = (("Realm (wtrealm)", provider.realm), ("Reply address (wreply)", base + CALLBACK_PATH))
    theirs = (("Entity id", provider.entity_id or "Unknown without metadata"), ("Passive endpoint", provider.endpoint))
    return Facts(ours, "", theirs, provider.certificates)


def _openid(connection: Connection, base: str) -> Facts:
    ours = (("Callback address (redirect URI)", base + CALLBACK_PATH),)
    try:
        provider = provider_of(connection)
    except UpstreamFailed as failed:
        return Facts(ours, "", problem=failed.detail, has_certificates=False)
    theirs = (
        ("Client id", provider.client_id),
        (
            "Issuer",
            provider.issuer or ("From its discovery document" if provider.needs_discovery else "None: the provider issues no id tokens"),
        ),
        *((_WORDS[name], address) for name, address in provider.addresses.items() if name in _WORDS),
        ("Scopes", provider.scope or "None"),
        ("Code challenge (PKCE)", "Sent" if provider.uses_pkce else "Not sent"),
    )
    return Facts(ours, "", theirs, has_certificates=False)


def _endpoint(endpoint: Endpoint) -> str:
    return f"{endpoint.address} ({'HTTP-Redirect' if endpoint.binding == REDIRECT else 'HTTP-POST'})"
