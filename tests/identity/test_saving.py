"""Service functions refuse text and JSON that the database cannot store, or that a consumer of the event would read differently."""

from __future__ import annotations

from typing import Any

import pytest

from identity.models import Connection, Tenant, User
from identity.services import users
from identity.services.failures import Invalid
from tests.events.log_reading import types


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("name", "a\x00b", "Text with a NUL character."),
        ("name", "a\ud800b", "Text with a lone surrogate."),
        ("app_metadata", {"seats": 2**63}, "A number beyond 64 bits."),
        ("user_metadata", {"note": "a\x00b"}, "Text with a NUL character."),
    ],
    ids=["NUL", "lone surrogate", "large number", "NUL in JSON"],
)
def test_a_value_that_an_event_cannot_contain_is_refused(
    tenant: Tenant, database_connection: Connection, field: str, value: Any, problem: str
) -> None:
    user = users.create_user(tenant_id=tenant.pk, connection=database_connection, name="Ada")
    with pytest.raises(Invalid) as refused:
        users.update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={field: value})
    assert refused.value.errors == {field: [problem]}
    with pytest.raises(Invalid):
        users.create_user(tenant_id=tenant.pk, connection=database_connection, **{field: value})
    assert User.objects.of(tenant.pk).count() == 1
    assert types(tenant.pk) == ["connection.created", "user.created"]
