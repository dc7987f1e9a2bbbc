"""Authorization requests that clients push (RFC 9126)."""

import django.db.models.deletion
import django.db.models.manager
from django.db import migrations, models

_TABLE = "authapi_pushedrequest"
_CONSTRAINT = f"{_TABLE}_client_id_same_tenant"


class Migration(migrations.Migration):
    dependencies = [("authapi", "0016_foreign_providers")]

    operations = [
        migrations.CreateModel(
            name="PushedRequest",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(editable=False, max_length=64)),
                ("sealed_parameters", models.TextField(editable=False, help_text="What the client asked for, encrypted.")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("expires_at", models.DateTimeField()),
                ("client", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="authapi.client")),
                ("tenant", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="identity.tenant")),
            ],
            options={
                "abstract": False,
                "base_manager_name": "all_tenants",
                "default_manager_name": "all_tenants",
                "ordering": ("id",),
                "indexes": [models.Index(fields=["expires_at"], name="authapi_pushedrequest_expired")],
                "constraints": [models.UniqueConstraint(fields=("digest", "tenant"), name="authapi_pushedrequest_unique")],
            },
            managers=[("all_tenants", django.db.models.manager.Manager())],
        ),
        # A row and its client stay in one tenant.
        migrations.RunSQL(
            f"ALTER TABLE {_TABLE} ADD CONSTRAINT {_CONSTRAINT} FOREIGN KEY (tenant_id, client_id)"
            " REFERENCES authapi_client (tenant_id, id) DEFERRABLE INITIALLY DEFERRED",
            f"ALTER TABLE {_TABLE} DROP CONSTRAINT {_CONSTRAINT}",
        ),
    ]
