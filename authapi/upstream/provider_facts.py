"""What an administrator has to know about a connection to a SAML or WS-Federation provider: what to enter there, what is known here."""

from __future__ import annotations

from dataclasses import dataclass

from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.saml.certificates import Certificate
from authapi.upstream.saml.connections import options_of, saml_provider
from authapi.upstream.saml.judging import acs_address
from authapi.upstream.saml.login import CALLBACK_PATH
from authapi.upstream.saml.logout import logout_address
from authapi.upstream.saml.options import REDIRECT, STRATEGIES
from authapi.upstream.saml.provider import Endpoint, own_entity_id
from authapi.upstream.wsfed.login import wsfed_provider
from identity.models import Connection


@dataclass(frozen=True)
class Facts:
    """`ours` is to be entered at the provider, `theirs` is known of it: words and values. `problem` says what is missing."""

    ours: tuple[tuple[str, str], ...]
    metadata_address: str
    theirs: tuple[tuple[str, str], ...] = ()
    certificates: tuple[Certificate, ...] = ()
    takes_unasked: bool = False
    problem: str = ""


def facts_of(connection: Connection, *, base: str) -> Facts:
    """Return what is known of a connection; `base` is the address of the tenant with a slash at its end. Never raises for a provider."""
    try:
        return _saml(connection, base) if connection.strategy in STRATEGIES else _wsfed(connection, base)
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
        ("Entity id", provider.entity_id or "Not known: only metadata names it"),
        ("Sign-in address", _endpoint(provider.sign_in)),
        ("Sign-out address", _endpoint(provider.sign_out) if provider.sign_out else "None"),
        ("Requests", "Signed" if provider.signs_requests else "Not signed"),
    )
    return Facts(ours, address, theirs, provider.certificates, takes_unasked=options.idp_initiated is not None)


def _wsfed(connection: Connection, base: str) -> Facts:
    provider = wsfed_provider(connection)
    ours = (("Realm (wtrealm)", provider.realm), ("Reply address (wreply)", base + CALLBACK_PATH))
    theirs = (("Entity id", provider.entity_id or "Not known: only metadata names it"), ("Passive endpoint", provider.endpoint))
    return Facts(ours, "", theirs, provider.certificates)


def _endpoint(endpoint: Endpoint) -> str:
    return f"{endpoint.address} ({'HTTP-Redirect' if endpoint.binding == REDIRECT else 'HTTP-POST'})"
