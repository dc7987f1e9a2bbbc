"""Links that verify an address may lead somewhere afterwards, and a worker mails invitations."""

from django.db import migrations, models

_TYPES = [
    ("users_import", "Users Import"),
    ("users_export", "Users Export"),
    ("verification_email", "Verification Email"),
    ("password_reset_email", "Password Reset Email"),
    ("unblock_email", "Unblock Email"),
    ("invitation_email", "Invitation Email"),
    ("connection_deletion", "Connection Deletion"),
    ("organization_deletion", "Organization Deletion"),
    ("group_deletion", "Group Deletion"),
    ("role_deletion", "Role Deletion"),
    ("tenant_deletion", "Tenant Deletion"),
    ("event_redelivery", "Event Redelivery"),
    ("stream_synchronization", "Stream Synchronization"),
    ("stream_reconciliation", "Stream Reconciliation"),
    ("bulk_action", "Bulk Action"),
]


class Migration(migrations.Migration):
    dependencies = [("identity", "0023_custom_domain_proofs")]

    operations = [
        migrations.AddField(
            model_name="emailticket",
            name="parameters",
            field=models.JSONField(blank=True, db_default={}, default=dict, help_text="Where the link leads once it was used."),
        ),
        migrations.AlterField(model_name="job", name="type", field=models.CharField(choices=_TYPES, max_length=32)),
    ]
