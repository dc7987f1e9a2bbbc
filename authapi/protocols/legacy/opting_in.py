"""The opt-ins of a client for old endpoints. All opt-ins are off by default."""

from __future__ import annotations

from authapi.compliance.levels import has, level_of
from authapi.compliance.rules import NO_OLD_ENDPOINTS
from authapi.failures import RequestRefused
from authapi.failures.legacy import LegacyCase
from authapi.models import Client

_PREFIX = "http://auth0.com/oauth/legacy/grant-type/"
PASSWORD = f"{_PREFIX}ro"
DEVICE_KEY = f"{_PREFIX}ro/jwt-bearer"
DELEGATION_BY_REFRESH_TOKEN = f"{_PREFIX}delegation/refresh_token"
DELEGATION_BY_ID_TOKEN = f"{_PREFIX}delegation/id_token"
SOCIAL_TOKEN = f"{_PREFIX}access_token"
# Contract, 2.9, "enabling".
LEGACY_GRANTS = (PASSWORD, DEVICE_KEY, DELEGATION_BY_REFRESH_TOKEN, DELEGATION_BY_ID_TOKEN, SOCIAL_TOKEN)


def is_protected(client: Client) -> bool:
    """Tell whether the client requires more than old endpoints offer: bound tokens, or the rules of a compliance level.

    Old endpoints do not authenticate the client and do not check its key, so they would bypass that protection.
    """
    return bool(client.settings.get("require_proof_of_possession")) or has(level_of(client.settings), NO_OLD_ENDPOINTS)


def refuse_protected(client: Client) -> None:
    """Raise `RequestRefused` for a protected client, even if it has opted in to old endpoints."""
    if is_protected(client):
        raise RequestRefused(LegacyCase.PROTECTED_CLIENT)


def require_grant(client: Client, grant: str) -> None:
    """Raise `RequestRefused` if the client did not opt in to this grant."""
    refuse_protected(client)
    if not client.allows_grant_type(grant):
        raise RequestRefused(LegacyCase.GRANT_NOT_ALLOWED, grant=grant)


def uses_legacy_grants(client: Client) -> bool:
    """Tell whether a client opted in to at least one old grant. An old endpoint to which no grant type belongs serves only such clients."""
    return client.allows_grant_type(*LEGACY_GRANTS)


def require_any_grant(client: Client) -> None:
    """Raise `RequestRefused` if the client opted in to no old grant."""
    refuse_protected(client)
    if not uses_legacy_grants(client):
        raise RequestRefused(LegacyCase.NO_LEGACY_GRANT)


def takes_own_forms(client: Client) -> bool:
    """Tell whether the application shows its own login form in the browser (`cross_origin_authentication`)."""
    return client.settings.get("cross_origin_authentication") is True and not is_protected(client)


def require_own_forms(client: Client) -> None:
    """Raise `RequestRefused` if the client did not opt in to its own login forms."""
    refuse_protected(client)
    if not takes_own_forms(client):
        raise RequestRefused(LegacyCase.OWN_FORMS_OFF)
