"""Composite foreign keys: a user and its connection belong to the same tenant, and so do an identity and its user."""

from django.db import migrations

_RELATIONS = (
    ("identity_user", "connection_id", "identity_connection"),
    ("identity_linkedidentity", "connection_id", "identity_connection"),
    ("identity_linkedidentity", "user_id", "identity_user"),
)


def _add(table: str, column: str, target: str) -> str:
    return (
        f"ALTER TABLE {table} ADD CONSTRAINT {table}_{column}_same_tenant FOREIGN KEY (tenant_id, {column})"
        f" REFERENCES {target} (tenant_id, id) DEFERRABLE INITIALLY DEFERRED"
    )


def _drop(table: str, column: str, target: str) -> str:
    return f"ALTER TABLE {table} DROP CONSTRAINT {table}_{column}_same_tenant"


class Migration(migrations.Migration):
    dependencies = [("identity", "0001_initial")]
    operations = [migrations.RunSQL(_add(*relation), _drop(*relation)) for relation in _RELATIONS]
