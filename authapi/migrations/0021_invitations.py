"""Invitations to organizations."""

import django.db.models.deletion
import django.db.models.manager
from django.db import migrations, models

import foundation.ids

_TABLE = "authapi_invitation"
_RELATIONS = (
    ("organization_id", "identity_organization"),
    ("client_id", "authapi_client"),
    ("connection_id", "identity_connection"),
    ("accepted_by_id", "identity_user"),
)


def _same_tenant(column: str, target: str) -> migrations.RunSQL:
    """Return a constraint: a row and the row to which it refers belong to one tenant."""
    name = f"{_TABLE}_{column}_same_tenant"
    return migrations.RunSQL(
        f"ALTER TABLE {_TABLE} ADD CONSTRAINT {name} FOREIGN KEY (tenant_id, {column})"
        f" REFERENCES {target} (tenant_id, id) DEFERRABLE INITIALLY DEFERRED",
        f"ALTER TABLE {_TABLE} DROP CONSTRAINT {name}",
    )


def _cascade(to: str, **options: object) -> models.ForeignKey:
    return models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to=to, **options)


class Migration(migrations.Migration):
    dependencies = [
        ("authapi", "0020_passwordless_codes"),
        ("identity", "0027_tickets_with_a_way_back"),
    ]

    operations = [
        migrations.CreateModel(
            name="Invitation",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=foundation.ids.new_invitation_id, editable=False, max_length=32, primary_key=True, serialize=False
                    ),
                ),
                ("inviter_name", models.CharField(max_length=300)),
                ("email", models.EmailField(max_length=254)),
                ("roles", models.JSONField(blank=True, default=list, help_text="Ids of the roles that the new member gets.")),
                ("user_metadata", models.JSONField(blank=True, default=dict, help_text="For a user who does not exist yet.")),
                ("app_metadata", models.JSONField(blank=True, default=dict, help_text="For a user who does not exist yet.")),
                ("language", models.CharField(blank=True, help_text="Of the mail. Empty: the first language of the tenant.", max_length=35)),
                ("life_seconds", models.PositiveIntegerField()),
                ("digest", models.CharField(editable=False, max_length=64)),
                ("sealed_ticket", models.TextField(editable=False)),
                ("mail_digest", models.CharField(blank=True, editable=False, max_length=64)),
                ("mail_count", models.PositiveSmallIntegerField(default=0, editable=False)),
                ("mailed_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("expires_at", models.DateTimeField()),
                ("accepted_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("accepted_by", _cascade("identity.user", blank=True, editable=False, null=True)),
                ("client", _cascade("authapi.client", verbose_name="application")),
                ("connection", _cascade("identity.connection", blank=True, null=True)),
                ("organization", _cascade("identity.organization")),
                ("tenant", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="identity.tenant")),
            ],
            options={
                "ordering": ("-created_at", "-id"),
                "abstract": False,
                "base_manager_name": "all_tenants",
                "default_manager_name": "all_tenants",
                "indexes": [
                    models.Index(fields=["organization", "created_at", "id"], name="authapi_invitation_list"),
                    models.Index(fields=["tenant", "created_at", "id"], name="authapi_invitation_listed"),
                    models.Index(fields=["tenant", "mail_digest"], name="authapi_invitation_mailed"),
                    models.Index(fields=["organization", "email"], name="authapi_invitation_address"),
                    models.Index(fields=["expires_at"], name="authapi_invitation_expired"),
                ],
                "constraints": [models.UniqueConstraint(fields=("digest", "tenant"), name="authapi_invitation_unique")],
            },
            managers=[("all_tenants", django.db.models.manager.Manager())],
        ),
        *(_same_tenant(*relation) for relation in _RELATIONS),
    ]
