"""Staff accounts and their browsers, and one row of any model for a tenant, for tests of the admin."""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import models
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from identity.admin.tenant_page import TenantPage
from identity.models import Connection, Group, GroupMember, LinkedIdentity, PasswordCredential, Staff, Tenant, User
from identity.services import users
from identity.services.groups import add_group_members
from identity.services.staff import create_staff
from identity.services.tenants import create_tenant
from identity.staff_roles import ADMINISTRATOR, ROLES, RoleRule
from tests.factories.identity import make_connection, make_user

PASSWORD = "quite-a-long-password-1"
PLATFORM = "localhost"

# What a database constraint asks of rows that are otherwise filled by their types alone.
_VALUES: dict[str, dict[str, Any]] = {
    "provisioning.action": {"template": "scim-user-provisioning"},
    "authapi.signingkey": {"state": "revoked"},
    "authapi.samlkey": {"state": "previous"},
    "authapi.signin": {"is_success": True},
    "authapi.administrativeline": {"is_success": True},
    "admin.logentry": {"action_flag": 2},
    "identity.group": {"type": "tenant"},
    "identity.role": {"type": "tenant"},
    "identity.stafffactor": {"sealed_secret": "sealed"},
}


def new_tenant(prefix: str = "t") -> Tenant:
    """Create a tenant with an id that no other test has."""
    tenant_id = f"{prefix}-{secrets.token_hex(6)}"
    return create_tenant(tenant_id=tenant_id, name=f"Company {tenant_id}", host=f"{tenant_id}.example.test")


def new_staff(tenant: Tenant | None, role: str = ADMINISTRATOR) -> Staff:
    """Create an account of the tenant, or of the platform."""
    email = f"staff-{secrets.token_hex(4)}@example.test"
    return create_staff(tenant_id=tenant.pk if tenant else None, email=email, password=PASSWORD, role=role)


@dataclass(frozen=True)
class AllBut(RoleRule):
    """A role that has every permission but those it names; for tests of one permission among many."""

    def allows(self, permission: str) -> bool:
        return permission not in self.permissions


def take_from_administrators(monkeypatch: pytest.MonkeyPatch, *permissions: str) -> None:
    """Leave administrators everything but these permissions while a test runs."""
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
    """Return every address of a page; what stands in one for a row of somewhere is a name that nothing has."""
    parts = [(f"admin:{pattern.name}", dict.fromkeys(pattern.pattern.converters, "nothing")) for pattern in page.urls()]
    return [reverse(name, kwargs=values) for name, values in parts]


@dataclass
class Rows:
    """One row of each model asked for, all of one tenant; the tenant's id stands in every text of them."""

    tenant: Tenant
    made: dict[type[models.Model], Any] = field(default_factory=dict)

    def of(self, model: type[models.Model]) -> Any:
        """Return the row of `model`, making it and what it needs first."""
        if model not in self.made:
            special = _MAKERS.get(model)
            self.made[model] = special(self) if special else self._filled(model)
        return self.made[model]

    def _filled(self, model: type[models.Model]) -> Any:
        existing = model._default_manager.filter(pk=self.tenant.pk).first() if model._meta.pk.name == "tenant_id" else None
        if existing is not None:
            return existing
        values = {name.attname: self._value(name) for name in model._meta.concrete_fields if self._is_needed(name)}
        row = model(**{**values, **_VALUES.get(model._meta.label_lower, {})})
        row.save()
        return row

    def _is_needed(self, column: models.Field[Any, Any]) -> bool:
        if column.name == "tenant_id":
            return True
        if column.is_relation:
            return not column.null or column.primary_key
        if isinstance(column, models.AutoField):
            return False
        return not (
            column.null or column.blank or column.has_default() or column.has_db_default() or isinstance(column, models.BooleanField)
        )

    def _value(self, column: models.Field[Any, Any]) -> Any:
        if column.is_relation:
            return self.of(column.related_model).pk  # type: ignore[arg-type]  # no generic relations here
        if column.name == "tenant_id":
            return self.tenant.pk
        if column.choices:
            return next(iter(column.flatchoices))[0]
        return next(make(self, column) for kind, make in _KINDS if isinstance(column, kind))


_KINDS: list[tuple[type[models.Field[Any, Any]], Callable[[Rows, models.Field[Any, Any]], Any]]] = [
    (models.JSONField, lambda _rows, _column: {}),
    (models.BinaryField, lambda rows, _column: f'{{"x0tenant": "{rows.tenant.pk}"}}'.encode()),
    (models.DateTimeField, lambda _rows, _column: timezone.now()),
    (models.UUIDField, lambda _rows, _column: uuid.uuid4()),
    (models.BigIntegerField, lambda _rows, _column: secrets.randbelow(2**40)),
    (models.IntegerField, lambda _rows, _column: secrets.randbelow(1000)),
    (models.FloatField, lambda _rows, _column: 1.0),
    ((models.CharField, models.TextField), lambda rows, column: f"{rows.tenant.pk}-{secrets.token_hex(4)}"[: column.max_length or None]),  # type: ignore[list-item]
]


def _user(rows: Rows) -> User:
    return make_user(connection=rows.of(Connection), email=f"user@{rows.tenant.pk}.test", password=PASSWORD)


def _linked(rows: Rows) -> LinkedIdentity:
    secondary = make_user(connection=rows.of(Connection), email=f"secondary@{rows.tenant.pk}.test")
    users.link_users(tenant_id=rows.tenant.pk, primary_id=rows.of(User).user_id, secondary_id=secondary.user_id)
    return LinkedIdentity.objects.of(rows.tenant.pk).get()


def _group_member(rows: Rows) -> GroupMember:
    add_group_members(tenant_id=rows.tenant.pk, group_id=rows.of(Group).pk, user_ids=[rows.of(User).user_id])
    return GroupMember.objects.of(rows.tenant.pk).get()


_MAKERS: dict[type[models.Model], Callable[[Rows], Any]] = {
    Tenant: lambda rows: rows.tenant,
    Connection: lambda rows: make_connection(tenant_id=rows.tenant.pk, name=f"people-{rows.tenant.pk}"),
    User: _user,
    LinkedIdentity: _linked,
    GroupMember: _group_member,
    PasswordCredential: lambda rows: PasswordCredential.objects.get(user=rows.of(User)),
    Staff: lambda rows: new_staff(rows.tenant),
}
