"""Codes and links that log users in without a password."""

import django.db.models.deletion
import django.db.models.manager
from django.db import migrations, models


def _same_tenant(column: str, target: str) -> migrations.RunSQL:
    """Return a constraint: a row and the row to which it refers belong to one tenant."""
    name = f"authapi_passwordlesscode_{column}_same_tenant"
    return migrations.RunSQL(
        f"ALTER TABLE authapi_passwordlesscode ADD CONSTRAINT {name} FOREIGN KEY (tenant_id, {column})"
        f" REFERENCES {target} (tenant_id, id) DEFERRABLE INITIALLY DEFERRED",
        f"ALTER TABLE authapi_passwordlesscode DROP CONSTRAINT {name}",
    )


class Migration(migrations.Migration):
    dependencies = [
        ("authapi", "0019_languages"),
        ("identity", "0026_passwordless"),
    ]

    operations = [
        migrations.CreateModel(
            name="PasswordlessCode",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("address", models.CharField(help_text="E-mail address in lower case, or phone number.", max_length=254)),
                ("bound_to", models.CharField(blank=True, editable=False, max_length=80)),
                ("code_digest", models.CharField(blank=True, editable=False, max_length=160)),
                ("link_digest", models.CharField(blank=True, editable=False, max_length=64)),
                ("protocol", models.CharField(blank=True, max_length=32)),
                (
                    "sealed_request",
                    models.TextField(
                        blank=True, editable=False, help_text="What the link answers to, in words of its protocol, encrypted."
                    ),
                ),
                (
                    "language",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The language of the message, so that its link speaks the same.",
                        max_length=12,
                    ),
                ),
                ("takes_sign_up", models.BooleanField(default=True)),
                ("failures", models.PositiveSmallIntegerField(default=0, help_text="Wrong codes tried while this one counted.")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("code_expires_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField(help_text="When neither the code nor the link works any more.")),
                ("used_at", models.DateTimeField(blank=True, null=True)),
                ("client", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="authapi.client")),
                ("connection", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="identity.connection")),
                ("tenant", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="identity.tenant")),
            ],
            options={
                "ordering": ("id",),
                "abstract": False,
                "base_manager_name": "all_tenants",
                "default_manager_name": "all_tenants",
                "indexes": [
                    models.Index(fields=["connection", "address", "-id"], name="authapi_passwordless_address"),
                    models.Index(fields=["expires_at"], name="authapi_passwordless_expired"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=~models.Q(link_digest=""),
                        fields=("link_digest", "tenant"),
                        name="authapi_passwordlesscode_link_unique",
                    )
                ],
            },
            managers=[("all_tenants", django.db.models.manager.Manager())],
        ),
        _same_tenant("client_id", "authapi_client"),
        _same_tenant("connection_id", "identity_connection"),
    ]
