"""What a process remembers between requests, forgotten: the next request is answered as by a process that has just begun."""

from __future__ import annotations

from authapi import client_auth, tenant_settings
from authapi.edge import mtls
from authapi.factors import settings as factor_settings
from authapi.grants import entitlements
from authapi.services import grant_terms
from authapi.tokens import keys, saml_keys, token_state
from identity.hosts import forget_hosts


def forget_all() -> None:
    """Let this process know nothing any more of clients, keys, tokens, APIs, grants and settings."""
    for memory in (
        client_auth.clients,
        keys.trust,
        keys._signs_otherwise,
        saml_keys._keys,
        token_state.token_states,
        grant_terms.for_clients,
        grant_terms.for_users,
        entitlements._management,
        entitlements._by_audience,
        tenant_settings.remembered_settings,
        factor_settings.remembered_factors,
        mtls.edge_keys,
    ):
        memory.clear()
    forget_hosts()
