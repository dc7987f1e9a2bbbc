"""The list of all mutants, in the order in which their tests run."""

from __future__ import annotations

from tests.mutants.catalog import (
    authapi_clients,
    authapi_edge,
    authapi_grants,
    authapi_logins,
    authapi_tokens,
    authapi_upstream,
    config,
    events,
    events_stream,
    foundation,
    identity,
    identity_moving,
    provisioning_engine,
    provisioning_operation,
    provisioning_scim,
)
from tests.mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *foundation.MUTANTS,
    *identity.MUTANTS,
    *identity_moving.MUTANTS,
    *authapi_clients.MUTANTS,
    *authapi_grants.MUTANTS,
    *authapi_tokens.MUTANTS,
    *authapi_logins.MUTANTS,
    *authapi_upstream.MUTANTS,
    *authapi_edge.MUTANTS,
    *events.MUTANTS,
    *events_stream.MUTANTS,
    *provisioning_engine.MUTANTS,
    *provisioning_operation.MUTANTS,
    *provisioning_scim.MUTANTS,
    *config.MUTANTS,
)
