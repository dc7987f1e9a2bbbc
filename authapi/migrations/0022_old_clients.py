"""Tickets of login forms in applications, and keys of devices."""

import django.db.models.deletion
import django.db.models.manager
from django.db import migrations, models

import foundation.ids

_OPTIONS = {"abstract": False, "base_manager_name": "all_tenants", "default_manager_name": "all_tenants", "ordering": ("id",)}
_MANAGERS = [("all_tenants", django.db.models.manager.Manager())]
_ID = ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"))
_TENANT = ("tenant", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="identity.tenant"))
_CLIENT = ("client", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="authapi.client"))
_USER = ("user", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="identity.user"))


def _same_tenant(table: str, column: str, target: str) -> migrations.RunSQL:
    """Return a constraint: a row and the row to which it refers belong to one tenant."""
    name = f"{table}_{column}_same_tenant"
    return migrations.RunSQL(
        f"ALTER TABLE {table} ADD CONSTRAINT {name} FOREIGN KEY (tenant_id, {column})"
        f" REFERENCES {target} (tenant_id, id) DEFERRABLE INITIALLY DEFERRED",
        f"ALTER TABLE {table} DROP CONSTRAINT {name}",
    )


class Migration(migrations.Migration):
    dependencies = [
        ("authapi", "0021_invitations"),
        ("identity", "0022_user_search"),
    ]

    operations = [
        migrations.CreateModel(
            name="LoginTicket",
            fields=[
                _ID,
                ("digest", models.CharField(editable=False, max_length=64)),
                ("browser_digest", models.CharField(editable=False, max_length=64)),
                ("verifier_digest", models.CharField(blank=True, editable=False, max_length=64)),
                (
                    "co_id",
                    models.CharField(
                        blank=True, editable=False, help_text="Under which name the page keeps the verifier.", max_length=64
                    ),
                ),
                (
                    "origin",
                    models.CharField(blank=True, help_text="The page that asked; empty for a page of this host.", max_length=300),
                ),
                ("methods", models.JSONField(default=list, help_text="How the user proved who they are.")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("expires_at", models.DateTimeField()),
                _CLIENT,
                (
                    "connection",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="identity.connection"),
                ),
                _TENANT,
                _USER,
            ],
            options={
                **_OPTIONS,
                "indexes": [models.Index(fields=["expires_at"], name="authapi_loginticket_expired")],
                "constraints": [models.UniqueConstraint(fields=("digest", "tenant"), name="authapi_loginticket_digest_unique")],
            },
            managers=_MANAGERS,
        ),
        migrations.CreateModel(
            name="DeviceKey",
            fields=[
                _ID,
                (
                    "wire_id",
                    models.CharField(default=foundation.ids.new_device_credential_id, editable=False, max_length=24, unique=True),
                ),
                ("device_name", models.CharField(max_length=255)),
                ("device_id", models.CharField(max_length=255)),
                ("public_key", models.TextField(help_text="PEM of an RSA key.")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                _CLIENT,
                _TENANT,
                _USER,
            ],
            options={
                **_OPTIONS,
                "indexes": [
                    models.Index(fields=["tenant", "id"], name="authapi_devicekey_list"),
                    models.Index(fields=["user"], name="authapi_devicekey_by_user"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("client", "user", "device_id"), name="authapi_devicekey_unique"),
                ],
            },
            managers=_MANAGERS,
        ),
        _same_tenant("authapi_loginticket", "client_id", "authapi_client"),
        _same_tenant("authapi_loginticket", "user_id", "identity_user"),
        _same_tenant("authapi_loginticket", "connection_id", "identity_connection"),
        _same_tenant("authapi_devicekey", "client_id", "authapi_client"),
        _same_tenant("authapi_devicekey", "user_id", "identity_user"),
    ]
