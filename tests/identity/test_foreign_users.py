"""Service functions that change a user find only users of the given tenant, even if the caller has not checked the user id."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from authapi.services import permissions
from identity.models import Tenant, User
from identity.services import roles, users
from identity.services.failures import NotFound
from tests.config.two_tenants import make_other_tenant
from tests.factories.identity import make_connection, make_user

CHANGES: dict[str, Callable[[str, str], object]] = {
    "update": lambda tenant, user: users.update_user(tenant_id=tenant, user_id=user, changes={"name": "Eve"}),
    "block": lambda tenant, user: users.block_user(tenant_id=tenant, user_id=user),
    "delete": lambda tenant, user: users.delete_user(tenant_id=tenant, user_id=user),
    "unlink": lambda tenant, user: users.unlink_identity(tenant_id=tenant, user_id=user, provider="auth0", identifier="1"),
    "link": lambda tenant, user: users.link_users(tenant_id=tenant, primary_id=user, secondary_id=user + "2"),
    "assign roles": lambda tenant, user: roles.assign_user_roles(tenant_id=tenant, user_id=user, role_ids=[]),
    "grant permissions": lambda tenant, user: permissions.add_user_permissions(tenant_id=tenant, user_id=user, permissions=[]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_service_function_does_not_find_a_user_of_another_tenant(tenant: Tenant, change: Callable[[str, str], object]) -> None:
    user = make_user(connection=make_connection(tenant_id=make_other_tenant().pk), name="Ada")

    with pytest.raises(NotFound):
        change(tenant.pk, user.user_id)

    left = User.objects.of(user.tenant_id).get(pk=user.pk)
    assert (left.name, left.blocked) == ("Ada", None)
