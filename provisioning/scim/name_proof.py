"""Decides whether a user name proves that an account without a key belongs to the user (docs/adr/0072)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from provisioning.mapping.table import Person
from provisioning.scim.links import same_name
from provisioning.scim.options import ScimOptions

# Strategies of connections whose identifiers this service verifies. The name of the database strategy is a setting.
_PASSWORDLESS_STRATEGIES = frozenset({"email", "sms"})


def trusted_strategies() -> frozenset[str]:
    """Return the strategies of connections whose verified email addresses prove the owner of an account (docs/adr/0072)."""
    return _PASSWORDLESS_STRATEGIES | {settings.DATABASE_STRATEGY}


def proves_name(
    document: Mapping[str, Any], person: Person, options: ScimOptions, *, strategy: str, trusted_strategies: frozenset[str]
) -> bool:
    """Tell whether the account with the mapped `userName` is accepted as the account of this user.

    The proof `verified` has three conditions: the user name is the email address, the address is verified, and `strategy` is trusted.
    An unverified email address proves nothing, because an attacker can sign up with any email address.
    """
    if options.user_name_proof != "verified":
        return options.user_name_proof == "always"
    is_trusted = strategy in trusted_strategies or options.trust_connection_addresses
    email = document.get("email")
    is_verified = document.get("email_verified") is True and isinstance(email, str)
    return is_trusted and is_verified and bool(person.user_name) and same_name(str(email), person.user_name)
