"""Change the name of linked identities in the admin. No table changes."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("identity", "0018_bulk_actions"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="linkedidentity",
            options={
                "base_manager_name": "all_tenants",
                "default_manager_name": "all_tenants",
                "ordering": ("id",),
                "verbose_name_plural": "linked identities",
            },
        ),
    ]
