"""Call synchronised users in the admin what people call them; no table changes."""

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
