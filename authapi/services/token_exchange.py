"""Token exchange profiles: which tokens of other issuers are accepted, and which users they belong to.

This module has all rules of the profiles.
"""

from __future__ import annotations

import re
from typing import Any

from authapi.models import TokenExchangeProfile
from authapi.tokens.published_keys import is_usable_key
from foundation.database.transactions import lock_rows, unit_of_work
from identity.models import Connection, Tenant
from identity.services.failures import AlreadyExists, Invalid, NotFound
from identity.services.saving import validated_save

MOST_PROFILES = 100
MOST_KEYS = 10
# RFC 3986, 3: a scheme, a colon, and at least one more character. The names that `_RESERVED` matches belong to the IETF or to vendors, so a
# tenant may not define them.
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s\"<>\\^`{|}#]+")
_RESERVED = re.compile(r"(?:urn:(?:ietf|auth0|okta)|https?://(?:[^/?#@]*@)?(?:[^/?#@:]+\.)?(?:auth0|okta)\.com)(?:[:/?#]|$)", re.IGNORECASE)
_PRIVATE = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
_EDITABLE = (
    "name", "subject_token_type", "connection_id", "issuer", "audience", "jwks_uri", "public_keys", "user_claim", "creates_users",
    "is_single_use",
)  # fmt: skip


@unit_of_work
def create_profile(*, tenant_id: str, **columns: Any) -> TokenExchangeProfile:
    """Create a profile. Raises `Invalid`, `AlreadyExists`."""
    # Lock the tenant, so that two concurrent requests cannot both pass the check of the limit.
    lock_rows(Tenant, [tenant_id])
    if TokenExchangeProfile.objects.of(tenant_id).count() >= MOST_PROFILES:
        raise Invalid({"name": [f"A tenant has at most {MOST_PROFILES} profiles."]})
    profile = TokenExchangeProfile(tenant_id=tenant_id)
    _write(profile, columns)
    return profile


@unit_of_work
def update_profile(*, tenant_id: str, profile_id: str, changes: dict[str, Any]) -> TokenExchangeProfile:
    """Replace the columns in `changes`. Raises `NotFound`, `Invalid`, `AlreadyExists`."""
    profile = _locked(tenant_id, profile_id)
    _write(profile, changes)
    return profile


@unit_of_work
def delete_profile(*, tenant_id: str, profile_id: str) -> None:
    """Delete a profile, so that its tokens can no longer be exchanged. Raises `NotFound`."""
    _locked(tenant_id, profile_id).delete()


def is_reserved(token_type: str) -> bool:
    """Tell whether a type of token is reserved, so that a tenant may not define it."""
    return _RESERVED.match(token_type) is not None


def _locked(tenant_id: str, profile_id: str) -> TokenExchangeProfile:
    rows = TokenExchangeProfile.objects.of(tenant_id).select_for_update(no_key=True)
    profile = rows.filter(pk=profile_id).first()
    if profile is None:
        raise NotFound("The token exchange profile does not exist.")
    return profile


def _write(profile: TokenExchangeProfile, columns: dict[str, Any]) -> None:
    unknown = {name: ["Unknown field."] for name in columns if name not in _EDITABLE}
    if unknown:
        raise Invalid(unknown)
    for name, value in columns.items():
        setattr(profile, name, value)
    _check(profile)
    try:
        validated_save(profile)
    except AlreadyExists as error:
        raise AlreadyExists("Another profile has this subject_token_type.") from error


def _check(profile: TokenExchangeProfile) -> None:
    problems: dict[str, list[str]] = {}
    if not _URI.fullmatch(profile.subject_token_type):
        problems["subject_token_type"] = ["A URI is expected, such as urn:acme:legacy-token."]
    elif is_reserved(profile.subject_token_type):
        problems["subject_token_type"] = ["This namespace is reserved: use your own."]
    if bool(profile.jwks_uri) == bool(profile.public_keys):
        problems["jwks_uri"] = ["Either the address of a key set or the keys themselves are expected."]
    if any(not isinstance(key, dict) or _PRIVATE & key.keys() or not is_usable_key(key) for key in profile.public_keys):
        problems["public_keys"] = ["Public keys are expected: RSA with 2048 to 8192 bits, or EC on P-256 or P-384."]
    connection = Connection.objects.of(profile.tenant_id).filter(pk=profile.connection_id, deletion_started_at=None).first()
    if connection is None:
        problems["connection"] = ["The connection does not exist."]
    elif profile.creates_users and (connection.is_database or profile.user_claim != TokenExchangeProfile.UserClaim.SUBJECT):
        problems["creates_users"] = ["Users can be created only if the claim sub identifies them and the connection is not a database."]
    if problems:
        raise Invalid(problems)
