"""Composite foreign keys: a client grant, its client and its API are rows of one tenant."""

from django.db import migrations

_RELATIONS = (
    ("authapi_clientgrant", "client_id", "authapi_client"),
    ("authapi_clientgrant", "api_resource_id", "authapi_apiresource"),
)


def _add(table: str, column: str, target: str) -> str:
    return (
        f"ALTER TABLE {table} ADD CONSTRAINT {table}_{column}_same_tenant FOREIGN KEY (tenant_id, {column})"
        f" REFERENCES {target} (tenant_id, id) DEFERRABLE INITIALLY DEFERRED"
    )


def _drop(table: str, column: str, target: str) -> str:
    return f"ALTER TABLE {table} DROP CONSTRAINT {table}_{column}_same_tenant"


class Migration(migrations.Migration):
    dependencies = [("authapi", "0001_initial")]
    operations = [migrations.RunSQL(_add(*relation), _drop(*relation)) for relation in _RELATIONS]
