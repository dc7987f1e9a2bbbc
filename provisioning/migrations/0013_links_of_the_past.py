"""Learn the accounts that deliveries of before have created; taking it back leaves the rows, which the table takes with it."""

from __future__ import annotations

from typing import Any

from django.db import migrations


def learn(apps: Any, schema_editor: Any) -> None:
    # Sealed addresses are opened by the code that seals them; a fresh database has none.
    versions = apps.get_model("provisioning", "ActionVersion")._base_manager.all()
    if not versions.exists():
        return
    from provisioning.links.links_of_the_past import learn_links_of_the_past  # noqa: PLC0415  (only where there is something to learn)

    learn_links_of_the_past(apps.get_model("provisioning", "Action")._base_manager.all(), versions)


class Migration(migrations.Migration):
    dependencies = [
        ("provisioning", "0012_users_not_found"),
        ("events", "0001_initial"),
    ]

    operations = [
        # One statement per version of an action, over all of its deliveries.
        migrations.RunSQL("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0", migrations.RunSQL.noop),
        migrations.RunPython(learn, migrations.RunPython.noop),
    ]
