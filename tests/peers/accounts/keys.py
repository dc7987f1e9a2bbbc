"""Identifiers of users, and how third-party servers answer a filter on the key (`externalId`) of a user with such an identifier."""

from __future__ import annotations

FOUND = {"plain": "7f3a9c"}
# SCIMMY 1.3.5 and django-scim2 0.23.0 refuse a filter with this identifier.
REFUSED = {"quote": 'o"hara'}
# SCIMMY and django-scim2 answer a filter with this identifier with an empty list, even if the account exists. saml-jackson 26.2.0 answers
# a filter on any key with an empty list.
MISSED = {"backslash": "back\\slash"}
KEYS = FOUND | REFUSED | MISSED


def is_followed_by_filter(server: str, identifier: str) -> bool:
    """Report whether the server answers a filter on the key of a missing user correctly, with an empty list.

    SCIMMY 1.3.5 and django-scim2 0.23.0 answer 400 to an escaped quote. Canaille 0.3.6 returns all users.
    """
    return server != "canaille" and not (refuses_filter(server) and '"' in identifier)


def refuses_filter(server: str) -> bool:
    """Report whether the server answers 400 to a filter with an escaped quote."""
    return server in ("scimmy", "django-scim2")


def answers_409(server: str) -> bool:
    """Report whether the server answers 409 if the user name is used. Canaille 0.3.6 answers with an HTML page and status 500."""
    return server != "canaille"
