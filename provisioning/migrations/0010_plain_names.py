"""Change the name of synchronized users in the admin. No table changes."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("provisioning", "0009_lists_by_key"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="synchronizationrow",
            options={"ordering": ("job", "pk"), "verbose_name": "synchronised user"},
        ),
    ]
