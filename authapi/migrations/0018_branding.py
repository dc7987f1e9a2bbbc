"""Themes of tenants, and the pictures that were uploaded for them."""

import django.db.models.deletion
import django.db.models.manager
from django.db import migrations, models

import authapi.models.branding

_OPTIONS = {"abstract": False, "base_manager_name": "all_tenants", "default_manager_name": "all_tenants"}
_MANAGERS = [("all_tenants", django.db.models.manager.Manager())]
_TENANT = ("tenant", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="identity.tenant"))


class Migration(migrations.Migration):
    dependencies = [("authapi", "0017_pushed_requests"), ("identity", "0022_user_search")]

    operations = [
        migrations.CreateModel(
            name="BrandingPicture",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(max_length=16)),
                ("digest", models.CharField(editable=False, max_length=64)),
                ("ending", models.CharField(max_length=4)),
                ("media_type", models.CharField(max_length=32)),
                ("width", models.PositiveIntegerField()),
                ("height", models.PositiveIntegerField()),
                ("data", models.BinaryField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                _TENANT,
            ],
            options={
                **_OPTIONS,
                "ordering": ("id",),
                "constraints": [models.UniqueConstraint(fields=("tenant", "digest"), name="authapi_brandingpicture_unique")],
            },
            managers=_MANAGERS,
        ),
        migrations.CreateModel(
            name="BrandingTheme",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=authapi.models.branding.new_theme_id, editable=False, max_length=32, primary_key=True, serialize=False
                    ),
                ),
                ("display_name", models.CharField(blank=True, max_length=2048)),
                ("values", models.JSONField(default=dict)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                _TENANT,
            ],
            options={
                **_OPTIONS,
                "constraints": [models.UniqueConstraint(fields=("tenant",), name="authapi_brandingtheme_unique")],
            },
            managers=_MANAGERS,
        ),
    ]
