"""Empties the caches of the process, so that the next request is answered as in a new process."""

from __future__ import annotations

from authapi import client_auth, tenant_settings
from authapi.edge import mtls
from authapi.factors import settings as factor_settings
from authapi.grants import entitlements
from authapi.services import grant_terms
from authapi.tokens import keys, saml_keys, token_state
from identity.hosts import forget_hosts


def forget_all() -> None:
    """Remove all clients, keys, tokens, APIs, grants and settings from the caches of this process."""
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
