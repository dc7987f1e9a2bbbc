"""Certificates of tenants for SAML and WS-Federation."""

import django.db.models.deletion
import django.db.models.manager
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("authapi", "0014_participants_by_protocol"), ("identity", "0023_custom_domain_proofs")]

    operations = [
        migrations.CreateModel(
            name="SamlKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kid", models.CharField(help_text="The first characters of the certificate's SHA-256 fingerprint.", max_length=64)),
                ("certificate", models.TextField(help_text="PEM.")),
                ("sealed_private_key", models.TextField(editable=False)),
                ("state", models.CharField(choices=[("next", "Next"), ("current", "Current"), ("previous", "Previous")], max_length=16)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("current_since", models.DateTimeField(blank=True, null=True)),
                ("rotated_at", models.DateTimeField(blank=True, help_text="When it stopped signing.", null=True)),
                ("expires_at", models.DateTimeField(help_text="As its certificate says.")),
                (
                    "tenant",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="identity.tenant"),
                ),
            ],
            options={"ordering": ("id",), "base_manager_name": "all_tenants", "default_manager_name": "all_tenants"},
            managers=[("all_tenants", django.db.models.manager.Manager())],
        ),
        migrations.AddConstraint(
            model_name="samlkey", constraint=models.UniqueConstraint(fields=("tenant", "kid"), name="authapi_samlkey_kid_unique")
        ),
        migrations.AddConstraint(
            model_name="samlkey",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "current")), fields=("tenant",), name="authapi_samlkey_one_current"
            ),
        ),
        migrations.AddConstraint(
            model_name="samlkey",
            constraint=models.UniqueConstraint(condition=models.Q(("state", "next")), fields=("tenant",), name="authapi_samlkey_one_next"),
        ),
    ]
