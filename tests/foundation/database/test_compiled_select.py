"""A compiled query returns the same rows as the query set, and reads the rows from the database at each call."""

from __future__ import annotations

import secrets
import threading

import pytest
from django.db import connection, connections, transaction
from django.db.models import QuerySet
from django.db.models.signals import post_init
from django.forms.models import model_to_dict
from django.test.utils import CaptureQueriesContext

from foundation.database.compiled_select import CompiledSelect
from identity.models import Connection, LinkedIdentity, Tenant, User
from identity.services.users import update_user
from tests.factories.models.identity import TenantFactory, UserFactory


def users() -> CompiledSelect[User]:
    return CompiledSelect(
        lambda tenant_id, user_id: User.objects.of(tenant_id).select_related("connection").filter(user_id=user_id).order_by(),
        "tenant_id",
        "user_id",
    )


@pytest.fixture
def user(database_connection: Connection) -> User:
    return UserFactory.create(
        tenant_id=database_connection.tenant_id,
        connection=database_connection,
        email="ada@example.test",
        user_metadata={"colours": ["red", None]},
    )


def test_a_row_is_the_instance_that_the_query_set_returns(user: User) -> None:
    found = users().first(tenant_id=user.tenant_id, user_id=user.user_id)
    expected = User.objects.of(user.tenant_id).select_related("connection").get(pk=user.pk)
    assert found is not None
    assert found == expected
    for field in User._meta.concrete_fields:
        assert getattr(found, field.attname) == getattr(expected, field.attname), field.attname
    with CaptureQueriesContext(connection) as queries:
        assert model_to_dict(found.connection) == model_to_dict(expected.connection)
    assert len(queries) == 0
    assert not found._state.adding
    assert found._state.db == "default"


def test_each_call_reads_the_database_again(user: User) -> None:
    select = users()
    assert select.first(tenant_id=user.tenant_id, user_id=user.user_id) == user
    update_user(tenant_id=user.tenant_id, user_id=user.user_id, changes={"nickname": "Countess"})
    found = select.first(tenant_id=user.tenant_id, user_id=user.user_id)
    assert found is not None
    assert found.nickname == "Countess"


@pytest.mark.parametrize("value", ["", "nobody", "' OR 1 = 1 --", "%s", "\\"])
def test_a_value_is_never_interpreted_as_sql(user: User, value: str) -> None:
    assert users().first(tenant_id=user.tenant_id, user_id=value) is None


def test_a_user_of_one_tenant_is_not_found_at_another_tenant(user: User) -> None:
    other = TenantFactory.create(id=f"t-{secrets.token_hex(6)}", name="other", host=f"{secrets.token_hex(6)}.example.test")
    select = users()
    assert select.first(tenant_id=user.tenant_id, user_id=user.user_id) == user
    assert select.first(tenant_id=other.pk, user_id=user.user_id) is None


def test_a_relation_without_a_row_is_none(tenant: Tenant, user: User) -> None:
    select = CompiledSelect(
        lambda tenant_id: LinkedIdentity.objects.of(tenant_id).select_related("user__connection").order_by(), "tenant_id"
    )
    assert select.first(tenant_id=tenant.pk) is None


def test_a_query_with_a_lock_holds_the_lock_until_the_transaction_ends(user: User) -> None:
    select = CompiledSelect(
        lambda tenant_id: User.objects.of(tenant_id).select_for_update(of=("self",), no_key=True, nowait=True).order_by(), "tenant_id"
    )
    refused: list[BaseException] = []

    def second() -> None:
        try:
            with transaction.atomic():
                select.first(tenant_id=user.tenant_id)
        except BaseException as error:
            refused.append(error)
        finally:
            connections.close_all()

    with transaction.atomic():
        assert select.first(tenant_id=user.tenant_id) == user
        other = threading.Thread(target=second)
        other.start()
        other.join(30)
    assert [type(error).__name__ for error in refused] == ["OperationalError"]


def test_a_value_that_the_query_does_not_use_is_an_error(user: User) -> None:
    select = CompiledSelect(lambda tenant_id, user_id: User.objects.of(tenant_id).order_by(), "tenant_id", "user_id")
    with pytest.raises(ValueError, match="does not use user_id"):
        select.first(tenant_id=user.tenant_id, user_id=user.user_id)


def test_a_row_with_some_columns_loads_the_other_columns_on_access(user: User) -> None:
    def some(tenant_id: str) -> QuerySet[User]:
        return User.objects.of(tenant_id).select_related("connection").only("email", "connection__name").order_by()

    found, expected = CompiledSelect(some, "tenant_id").first(tenant_id=user.tenant_id), some(user.tenant_id).get()
    assert found is not None
    assert found.get_deferred_fields() == expected.get_deferred_fields()
    assert found.connection.get_deferred_fields() == expected.connection.get_deferred_fields()
    assert (found.email, found.user_id, found.connection.strategy) == (user.email, user.user_id, user.connection.strategy)


def test_a_model_with_init_signals_uses_its_own_constructor(user: User) -> None:
    made: list[User] = []

    def note(instance: User, **_: object) -> None:
        made.append(instance)

    post_init.connect(note, sender=User)
    try:
        found = users().first(tenant_id=user.tenant_id, user_id=user.user_id)
    finally:
        post_init.disconnect(note, sender=User)
    assert made == [found]
