"""Profiles of token exchange."""

import django.db.models.deletion
import django.db.models.manager
from django.db import migrations, models

import foundation.ids

_TABLE = "authapi_tokenexchangeprofile"
_NAME = f"{_TABLE}_connection_id_same_tenant"


class Migration(migrations.Migration):
    dependencies = [
        ("authapi", "0025_registration"),
        ("identity", "0027_tickets_with_a_way_back"),
    ]

    operations = [
        migrations.CreateModel(
            name="TokenExchangeProfile",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=foundation.ids.new_exchange_profile_id, editable=False, max_length=32, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=50)),
                ("subject_token_type", models.CharField(help_text="A URI of the tenant's own.", max_length=100)),
                ("issuer", models.CharField(max_length=2048)),
                (
                    "audience",
                    models.CharField(
                        help_text="What `aud` of a token must name, so that no token for another service counts.", max_length=600
                    ),
                ),
                ("jwks_uri", models.CharField(blank=True, help_text="Where the issuer publishes its keys.", max_length=2048)),
                (
                    "public_keys",
                    models.JSONField(blank=True, default=list, help_text="Its public keys as JWKs, in place of an address."),
                ),
                ("user_claim", models.CharField(choices=[("sub", "Subject"), ("email", "Email")], default="sub", max_length=8)),
                ("creates_users", models.BooleanField(default=False, help_text="Whether the first token of a user makes the account.")),
                ("is_single_use", models.BooleanField(default=True, help_text="Whether each token is exchanged once.")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "connection",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="identity.connection"),
                ),
                ("tenant", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="identity.tenant")),
            ],
            options={
                "ordering": ("created_at", "id"),
                "abstract": False,
                "base_manager_name": "all_tenants",
                "default_manager_name": "all_tenants",
                "indexes": [models.Index(fields=["tenant", "created_at", "id"], name="authapi_tokenexchange_list")],
                "constraints": [
                    models.UniqueConstraint(fields=("subject_token_type", "tenant"), name="authapi_tokenexchange_type_unique")
                ],
            },
            managers=[("all_tenants", django.db.models.manager.Manager())],
        ),
        migrations.RunSQL(
            f"ALTER TABLE {_TABLE} ADD CONSTRAINT {_NAME} FOREIGN KEY (tenant_id, connection_id)"
            " REFERENCES identity_connection (tenant_id, id) DEFERRABLE INITIALLY DEFERRED",
            f"ALTER TABLE {_TABLE} DROP CONSTRAINT {_NAME}",
        ),
    ]
