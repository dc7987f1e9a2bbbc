"""Metadata of external providers, their refused messages, and tests of connections."""

import django.db.models.deletion
import django.db.models.manager
from django.db import migrations, models

_OPTIONS = {"abstract": False, "base_manager_name": "all_tenants", "default_manager_name": "all_tenants"}
_MANAGERS = [("all_tenants", django.db.models.manager.Manager())]
_ID = ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"))
_TENANT = ("tenant", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="identity.tenant"))


def _same_tenant(table: str) -> migrations.RunSQL:
    """Return a constraint: a row and its connection belong to one tenant."""
    name = f"{table}_connection_id_same_tenant"
    return migrations.RunSQL(
        f"ALTER TABLE {table} ADD CONSTRAINT {name} FOREIGN KEY (tenant_id, connection_id)"
        " REFERENCES identity_connection (tenant_id, id) DEFERRABLE INITIALLY DEFERRED",
        f"ALTER TABLE {table} DROP CONSTRAINT {name}",
    )


class Migration(migrations.Migration):
    dependencies = [
        ("authapi", "0014_participants_by_protocol"),
        ("authapi", "0015_saml_keys"),
        ("identity", "0022_user_search"),
    ]

    operations = [
        migrations.CreateModel(
            name="ProviderMetadata",
            fields=[
                _ID,
                ("address", models.CharField(max_length=2048)),
                ("document", models.JSONField(help_text="What of the document is used; empty until it was fetched once.", null=True)),
                ("problem", models.CharField(blank=True, help_text="Why the last attempt failed.", max_length=500)),
                ("fetched_at", models.DateTimeField(null=True)),
                ("tried_at", models.DateTimeField()),
                ("due_at", models.DateTimeField()),
                ("connection", models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="identity.connection")),
                _TENANT,
            ],
            options={**_OPTIONS, "ordering": ("id",), "indexes": [models.Index(fields=["due_at"], name="authapi_providermetadata_due")]},
            managers=_MANAGERS,
        ),
        migrations.CreateModel(
            name="RefusedMessage",
            fields=[
                _ID,
                ("line_id", models.CharField(max_length=32)),
                ("text", models.TextField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                _TENANT,
            ],
            options={
                **_OPTIONS,
                "ordering": ("id",),
                "indexes": [models.Index(fields=["created_at"], name="authapi_refusedmessage_expired")],
                "constraints": [models.UniqueConstraint(fields=("line_id", "tenant"), name="authapi_refusedmessage_unique")],
            },
            managers=_MANAGERS,
        ),
        migrations.CreateModel(
            name="ConnectionTest",
            fields=[
                _ID,
                ("digest", models.CharField(editable=False, max_length=64)),
                ("request_id", models.CharField(editable=False, max_length=64)),
                ("callback", models.CharField(editable=False, max_length=300)),
                ("result", models.JSONField(help_text="What came of it; empty while it waits.", null=True)),
                ("message", models.TextField(blank=True, help_text="The provider's answer without signatures.")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("expires_at", models.DateTimeField()),
                ("connection", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="identity.connection")),
                _TENANT,
            ],
            options={
                **_OPTIONS,
                "ordering": ("-id",),
                "indexes": [
                    models.Index(fields=["connection", "-id"], name="authapi_connectiontest_last"),
                    models.Index(fields=["expires_at"], name="authapi_connectiontest_expired"),
                ],
            },
            managers=_MANAGERS,
        ),
        _same_tenant("authapi_providermetadata"),
        _same_tenant("authapi_connectiontest"),
    ]
