"""Fixtures of the authentication interface."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from authapi import client_auth, entitlements, keys, states, tenant_settings, throttling
from identity.hosts import forget_hosts


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    """Let every test start in a process that has just begun, with counters of its own."""
    remembered = (client_auth.clients, keys.trust, states.token_states, tenant_settings.remembered_settings)
    for memory in (*remembered, entitlements._granted, entitlements._management):
        memory.clear()
    throttling._blocked.clear()
    throttling.counters.cache_clear()
    forget_hosts()
    yield
    throttling.counters.cache_clear()
