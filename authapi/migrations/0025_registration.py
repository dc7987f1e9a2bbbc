"""Clients that register themselves (RFC 7591), and the initial access tokens with which they register."""

import django.db.models.deletion
import django.db.models.manager
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("authapi", "0024_device_flow")]

    operations = [
        migrations.AddField(
            model_name="client",
            name="registration_digest",
            field=models.CharField(blank=True, db_default="", default="", editable=False, max_length=64),
        ),
        migrations.CreateModel(
            name="InitialAccessToken",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(help_text="For administrators: who has the token, or what it is for.", max_length=128)),
                ("digest", models.CharField(editable=False, max_length=64)),
                (
                    "most_uses",
                    models.PositiveIntegerField(
                        blank=True, help_text="How many applications may register with it. Empty: any number.", null=True
                    ),
                ),
                ("use_count", models.PositiveIntegerField(default=0, editable=False)),
                ("last_used_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("expires_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("tenant", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="identity.tenant")),
            ],
            options={
                "abstract": False,
                "base_manager_name": "all_tenants",
                "default_manager_name": "all_tenants",
                "ordering": ("id",),
                "indexes": [
                    models.Index(fields=["tenant", "id"], name="authapi_initialtoken_listed"),
                    models.Index(fields=["expires_at"], name="authapi_initialtoken_expired"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("digest", "tenant"), name="authapi_initialaccesstoken_unique"),
                ],
            },
            managers=[("all_tenants", django.db.models.manager.Manager())],
        ),
    ]
