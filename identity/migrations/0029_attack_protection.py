"""Store when a user was notified of a breached password, and add the mails about logins from new browsers."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('identity', '0028_factors_of_users'),
    ]

    operations = [
        migrations.AddField(
            model_name='passwordcredential',
            name='leak_told_at',
            field=models.DateTimeField(blank=True, editable=False, help_text='When the user was told that the password was found in a breach.', null=True),
        ),
        migrations.AlterField(
            model_name='job',
            name='type',
            field=models.CharField(choices=[('users_import', 'Users Import'), ('users_export', 'Users Export'), ('verification_email', 'Verification Email'), ('password_reset_email', 'Password Reset Email'), ('unblock_email', 'Unblock Email'), ('leaked_password_email', 'Leaked Password Email'), ('new_device_email', 'New Device Email'), ('passwordless_code', 'Passwordless Code'), ('message', 'Message'), ('connection_deletion', 'Connection Deletion'), ('organization_deletion', 'Organization Deletion'), ('group_deletion', 'Group Deletion'), ('role_deletion', 'Role Deletion'), ('tenant_deletion', 'Tenant Deletion'), ('event_redelivery', 'Event Redelivery'), ('stream_synchronization', 'Stream Synchronization'), ('stream_reconciliation', 'Stream Reconciliation'), ('bulk_action', 'Bulk Action')], max_length=32),
        ),
    ]
