"""Every mutant, in the order in which they run."""

from __future__ import annotations

from tests.mutants.catalog import (
    authapi_clients,
    authapi_grants,
    authapi_logins,
    authapi_tokens,
    authapi_upstream,
    config,
    events,
    foundation,
    identity,
    provisioning_engine,
    provisioning_scim,
)
from tests.mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *foundation.MUTANTS,
    *identity.MUTANTS,
    *authapi_clients.MUTANTS,
    *authapi_grants.MUTANTS,
    *authapi_tokens.MUTANTS,
    *authapi_logins.MUTANTS,
    *authapi_upstream.MUTANTS,
    *events.MUTANTS,
    *provisioning_engine.MUTANTS,
    *provisioning_scim.MUTANTS,
    *config.MUTANTS,
)
