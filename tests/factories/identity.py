"""Users and connections for tests, committed through the services that the product uses."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from factory.base import Factory
from factory.declarations import LazyFunction, Sequence

from identity.models import Connection, User
from identity.services.connections import create_connection
from identity.services.users import create_user


class ConnectionFactory(Factory[Connection]):
    """A database connection; `tenant_id` is required."""

    class Meta:
        model = Connection

    name = Sequence(lambda number: f"connection-{number}")  # type: ignore[no-untyped-call]
    strategy = LazyFunction(lambda: settings.DATABASE_STRATEGY)  # type: ignore[no-untyped-call]

    @classmethod
    def _create(cls, model_class: type[Connection], *args: Any, **fields: Any) -> Connection:
        return create_connection(**fields)


class UserFactory(Factory[User]):
    """A user with an e-mail address; `connection` is required and says the tenant."""

    class Meta:
        model = User

    email = Sequence(lambda number: f"user-{number}@example.test")  # type: ignore[no-untyped-call]

    @classmethod
    def _create(cls, model_class: type[User], *args: Any, connection: Connection, **profile: Any) -> User:
        return create_user(tenant_id=connection.tenant_id, connection=connection, **profile)


def make_connection(**fields: Any) -> Connection:
    """Create a connection of `tenant_id`, with what the test cares about."""
    return ConnectionFactory.create(**fields)


def make_user(**profile: Any) -> User:
    """Create a user of `connection`, with what the test cares about."""
    return UserFactory.create(**profile)
