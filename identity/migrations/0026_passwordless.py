"""Jobs that send codes, and indexes by which a linked identity is found by its address."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models.fields.json import KT
from django.db.models.functions import Lower


class Migration(migrations.Migration):
    # Not atomic: the indexes are built concurrently, so that a running service can write to the table.
    atomic = False

    dependencies = [
        ("identity", "0025_messages"),
    ]

    operations = [
        migrations.AlterField(
            model_name="job",
            name="type",
            field=models.CharField(
                choices=[
                    ("users_import", "Users Import"),
                    ("users_export", "Users Export"),
                    ("verification_email", "Verification Email"),
                    ("password_reset_email", "Password Reset Email"),
                    ("unblock_email", "Unblock Email"),
                    ("passwordless_code", "Passwordless Code"),
                    ("message", "Message"),
                    ("connection_deletion", "Connection Deletion"),
                    ("organization_deletion", "Organization Deletion"),
                    ("group_deletion", "Group Deletion"),
                    ("role_deletion", "Role Deletion"),
                    ("tenant_deletion", "Tenant Deletion"),
                    ("event_redelivery", "Event Redelivery"),
                    ("stream_synchronization", "Stream Synchronization"),
                    ("stream_reconciliation", "Stream Reconciliation"),
                    ("bulk_action", "Bulk Action"),
                ],
                max_length=32,
            ),
        ),
        AddIndexConcurrently(
            model_name="linkedidentity",
            index=models.Index("connection", Lower(KT("profile_data__email")), name="identity_linkedidentity_email"),
        ),
        AddIndexConcurrently(
            model_name="linkedidentity",
            index=models.Index("connection", KT("profile_data__phone_number"), name="identity_linkedidentity_phone"),
        ),
    ]
