"""Plain names of APIs and failed logins in the admin. No table changes."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("authapi", "0009_lists_by_key"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="apiresource",
            options={
                "base_manager_name": "all_tenants",
                "default_manager_name": "all_tenants",
                "ordering": ("created_at", "id"),
                "verbose_name": "API",
            },
        ),
        migrations.AlterModelOptions(
            name="loginfailures",
            options={
                "base_manager_name": "all_tenants",
                "default_manager_name": "all_tenants",
                "ordering": ("id",),
                "verbose_name": "failed logins",
                "verbose_name_plural": "failed logins",
            },
        ),
    ]
