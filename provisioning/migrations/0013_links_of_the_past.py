"""Create links for the accounts that earlier deliveries created. The reverse migration deletes nothing: it drops the table later."""

from __future__ import annotations

from typing import Any

from django.db import migrations


def learn(apps: Any, schema_editor: Any) -> None:
    # Import the code that decrypts the server URLs only if there are versions. A new database has none.
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
        # No time limit: one statement per version reads all deliveries of the action.
        migrations.RunSQL("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0", migrations.RunSQL.noop),
        migrations.RunPython(learn, migrations.RunPython.noop),
    ]
