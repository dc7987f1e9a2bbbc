"""Count the users that a server does not find."""

from __future__ import annotations

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Built beside a running service: the table is written meanwhile.
    atomic = False

    dependencies = [
        ("provisioning", "0011_account_links"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("reason__in", ("no user to update", "no user to delete")), ("state", "skipped")),
                fields=["stream_id", "created_at"],
                name="provisioning_delivery_notfound",
            ),
        ),
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
