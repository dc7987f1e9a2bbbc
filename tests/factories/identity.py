"""Users and connections for tests, created by the product's own services and committed."""

from __future__ import annotations

from typing import Any

from identity.models import Connection, User
from tests.factories.models.identity import ConnectionFactory, UserFactory


def make_connection(**fields: Any) -> Connection:
    """Create a connection of `tenant_id` with these fields."""
    return ConnectionFactory.create(**fields)


def make_user(**profile: Any) -> User:
    """Create a user of `connection` with these fields."""
    return UserFactory.create(**profile)
