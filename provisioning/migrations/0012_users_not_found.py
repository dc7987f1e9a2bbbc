"""Count the users that a server does not find."""

from __future__ import annotations

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Not atomic: the index is built concurrently, so that a running service can write to the table.
    atomic = False

    dependencies = [
        ("provisioning", "0011_account_links"),
    ]

    operations = [
        # The database connections of the service cancel a statement after 30 seconds, but an index of a large table takes longer.
        migrations.RunSQL("SET statement_timeout = 0; SET lock_timeout = 0", migrations.RunSQL.noop),
        AddIndexConcurrently(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("reason__in", ("no user to update", "no user to delete")), ("state", "skipped")),
                fields=["stream_id", "created_at"],
                name="provisioning_delivery_notfound",
            ),
        ),
        migrations.RunSQL("RESET statement_timeout; RESET lock_timeout", migrations.RunSQL.noop),
        migrations.AlterField(
            model_name="alert",
            name="kind",
            field=models.CharField(
                choices=[
                    ("new_failure", "A failure of a new kind"),
                    ("many_open", "Many open dead letters"),
                    ("old_open", "An old open dead letter"),
                    ("held", "The stream is held"),
                    ("not_found", "Many users are not found on the server"),
                ],
                max_length=16,
            ),
        ),
    ]
