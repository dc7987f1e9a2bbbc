"""Composite foreign keys: the two rows that a relation of a group, organization or role joins belong to the same tenant."""

from django.db import migrations

_RELATIONS = (
    ("identity_group", "connection_id", "identity_connection"),
    ("identity_group", "organization_id", "identity_organization"),
    ("identity_groupmember", "group_id", "identity_group"),
    ("identity_groupmember", "user_id", "identity_user"),
    ("identity_groupmember", "nested_group_id", "identity_group"),
    ("identity_grouprole", "group_id", "identity_group"),
    ("identity_grouprole", "role_id", "identity_role"),
    ("identity_userrole", "user_id", "identity_user"),
    ("identity_userrole", "role_id", "identity_role"),
    ("identity_organizationconnection", "organization_id", "identity_organization"),
    ("identity_organizationconnection", "connection_id", "identity_connection"),
    ("identity_organizationmember", "organization_id", "identity_organization"),
    ("identity_organizationmember", "user_id", "identity_user"),
    ("identity_organizationmemberrole", "organization_id", "identity_organization"),
    ("identity_organizationmemberrole", "user_id", "identity_user"),
    ("identity_organizationmemberrole", "role_id", "identity_role"),
    ("identity_organizationgrouprole", "organization_id", "identity_organization"),
    ("identity_organizationgrouprole", "group_id", "identity_group"),
    ("identity_organizationgrouprole", "role_id", "identity_role"),
)


def _add(table: str, column: str, target: str) -> str:
    return (
        f"ALTER TABLE {table} ADD CONSTRAINT {table}_{column}_same_tenant FOREIGN KEY (tenant_id, {column})"
        f" REFERENCES {target} (tenant_id, id) DEFERRABLE INITIALLY DEFERRED"
    )


def _drop(table: str, column: str, target: str) -> str:
    return f"ALTER TABLE {table} DROP CONSTRAINT {table}_{column}_same_tenant"


class Migration(migrations.Migration):
    dependencies = [("identity", "0003_groups_organizations_roles")]
    operations = [migrations.RunSQL(_add(*relation), _drop(*relation)) for relation in _RELATIONS]
