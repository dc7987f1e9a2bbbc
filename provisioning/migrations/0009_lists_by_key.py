from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Not atomic: the indexes are built concurrently, so that a running service can write to the tables.
    atomic = False

    dependencies = [
        ('provisioning', '0008_trials_of_events'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='attempt',
            index=models.Index(fields=['tenant_id', 'id'], name='provisioning_attempt_listed'),
        ),
        AddIndexConcurrently(
            model_name='deadletter',
            index=models.Index(fields=['tenant_id', 'id'], name='provisioning_dead_by_age'),
        ),
        AddIndexConcurrently(
            model_name='synchronizationrow',
            index=models.Index(fields=['job', 'id'], name='provisioning_syncrow_listed'),
        ),
    ]
