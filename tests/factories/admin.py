"""Staff accounts and their browsers, and one row of any model for a tenant, for tests of the admin."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.contrib.admin import models as admin_log
from django.contrib.auth import models as auth
from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.test import Client
from django.urls import reverse

from events.models import Head
from identity.admin.tenant_page import TenantPage
from identity.models import Connection, Group, GroupMember, LinkedIdentity, PasswordCredential, Staff, Tenant, User
from identity.services import users
from identity.staff_roles import ADMINISTRATOR, ROLES, RoleRule
from tests.factories.identity import make_connection, make_user
from tests.factories.models.identity import STAFF_PASSWORD, GroupMemberFactory, StaffFactory, TenantFactory
from tests.factories.models.registry import FACTORIES

PASSWORD = STAFF_PASSWORD
PLATFORM = "localhost"


def new_tenant(prefix: str = "t") -> Tenant:
    """Create a tenant with an id that no other test has."""
    return TenantFactory.create(prefix=prefix)


def new_staff(tenant: Tenant | None, role: str = ADMINISTRATOR) -> Staff:
    """Create a staff account of the tenant, or of the platform if `tenant` is None."""
    return StaffFactory.create(tenant_id=tenant.pk if tenant else None, role=role)


@dataclass(frozen=True)
class AllBut(RoleRule):
    """A role with every permission except the named permissions. Tests use it to check that a permission is required."""

    def allows(self, permission: str) -> bool:
        return permission not in self.permissions


def take_from_administrators(monkeypatch: pytest.MonkeyPatch, *permissions: str) -> None:
    """Remove these permissions from the role of administrators until the end of the test."""
    monkeypatch.setitem(ROLES, ADMINISTRATOR, AllBut("Administrator", "", permissions))


def browser_of(staff: Staff) -> Client:
    """Return a browser in which `staff` has just signed in with the password."""
    browser = Client(headers={"host": PLATFORM})
    browser.force_login(staff)
    session = browser.session
    session["proof"] = {"at": int(time.time()), "by": "password"}
    session.save()
    return browser


def addresses_of_page(page: TenantPage) -> list[str]:
    """Return every URL of a page. If a URL needs the id of a row, use an unknown id."""
    parts = [(f"admin:{pattern.name}", dict.fromkeys(pattern.pattern.converters, "nothing")) for pattern in page.urls()]
    return [reverse(name, kwargs=values) for name, values in parts]


@dataclass
class Rows:
    """One row of each requested model, all of one tenant. The texts in the rows contain the id of the tenant."""

    tenant: Tenant
    made: dict[type[models.Model], Any] = field(default_factory=dict)

    def of(self, model: type[models.Model]) -> Any:
        """Return the row of `model`. Create it and the rows that it needs first."""
        if model not in self.made:
            maker = _MAKERS.get(model)
            self.made[model] = maker(self) if maker else self._made(model)
        return self.made[model]

    def _made(self, model: type[models.Model]) -> Any:
        columns = model._meta.concrete_fields
        needed = [column for column in columns if column.is_relation and (column.primary_key or not column.null)]
        values: dict[str, Any] = {column.name: self.of(column.related_model) for column in needed if column.name != "tenant"}  # type: ignore[arg-type]  # no generic relations here
        if any(column.attname == "tenant_id" for column in columns):
            values["tenant_id"] = self.tenant.pk
        factory = FACTORIES.get(model)
        if factory is None:
            # Django's table of a many-to-many relation.
            return model._default_manager.create(**values)
        return factory.create(**values)


def _user(rows: Rows) -> User:
    return make_user(connection=rows.of(Connection), email=f"user@{rows.tenant.pk}.test", password=PASSWORD)


def _linked(rows: Rows) -> LinkedIdentity:
    secondary = make_user(connection=rows.of(Connection), email=f"secondary@{rows.tenant.pk}.test")
    users.link_users(tenant_id=rows.tenant.pk, primary_id=rows.of(User).user_id, secondary_id=secondary.user_id)
    return LinkedIdentity.objects.of(rows.tenant.pk).get()


_MAKERS: dict[type[models.Model], Callable[[Rows], Any]] = {
    Tenant: lambda rows: rows.tenant,
    Head: lambda rows: Head.objects.get(pk=rows.tenant.pk),
    Connection: lambda rows: make_connection(tenant_id=rows.tenant.pk, name=f"people-{rows.tenant.pk}"),
    User: _user,
    LinkedIdentity: _linked,
    GroupMember: lambda rows: GroupMemberFactory.create(group=rows.of(Group), user=rows.of(User)),
    PasswordCredential: lambda rows: PasswordCredential.objects.get(user=rows.of(User)),
    # Models of Django.
    ContentType: lambda _rows: ContentType.objects.get_for_model(Staff),
    auth.Permission: lambda _rows: auth.Permission.objects.get(content_type__app_label="identity", codename="view_staff"),
    auth.Group: lambda rows: auth.Group.objects.create(name=f"{rows.tenant.pk}-{secrets.token_hex(4)}"),
    admin_log.LogEntry: lambda rows: admin_log.LogEntry.objects.create(
        user=rows.of(Staff), object_repr=rows.tenant.pk, action_flag=admin_log.CHANGE
    ),
}
