"""The purge of a tenant covers every table with rows of tenants. The tests fail if a new table is not declared."""

from __future__ import annotations

from django.apps import apps

from identity.models import JobChunk, PasswordCredential, Role, Tenant, User
from identity.purging import coverage, path_to_tenant
from provisioning.models import ActionSecret

OWN_APPS = ("identity", "authapi", "events", "provisioning", "config")
# Tables of Django. Permissions, groups and content types are platform-wide. The table of sessions contains the sessions of staff. It has no
# tenant column, so the purge reads the tenant from the data of each session.
PLATFORM_WIDE = {"auth.Permission", "auth.Group", "contenttypes.ContentType", "sessions.Session"}


def test_every_table_is_purged_or_declared_platform_wide() -> None:
    known = {table.model for table in coverage().tables} | coverage().platform_wide | coverage().outliving
    forgotten = {model._meta.label for model in apps.get_models() if model not in known} - PLATFORM_WIDE
    assert forgotten == set(), "add the table to the `cover` call of its app"


def test_a_platform_wide_table_has_no_tenant_column() -> None:
    assert [model.__name__ for model in coverage().platform_wide if path_to_tenant(model) is not None] == []


def test_only_the_audit_log_is_kept_after_a_tenant_is_purged() -> None:
    assert [model.__name__ for model in coverage().outliving] == ["AuditEntry"]


def test_purge_finds_rows_without_a_tenant_column_through_their_parents() -> None:
    assert path_to_tenant(ActionSecret) == "action__tenant_id"
    assert path_to_tenant(JobChunk) == "job__tenant_id"
    assert path_to_tenant(PasswordCredential) == "user__tenant_id"
    assert path_to_tenant(Tenant) is None


def test_purge_deletes_referring_rows_before_the_row_that_they_refer_to() -> None:
    order = [table.model for table in coverage().ordered]
    assert order.index(PasswordCredential) < order.index(User)
    assert order[0].__name__ in ("Head", "EventStream")
    assert order[-1].__name__ == "Mark"
    assert all(order.index(model) < order.index(Role) for model in order if model.__name__ in ("RolePermission", "UserRole", "GroupRole"))
