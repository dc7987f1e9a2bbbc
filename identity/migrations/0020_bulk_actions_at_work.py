from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Not atomic: the index is built concurrently, so that a running service can write to the table.
    atomic = False

    dependencies = [
        ('identity', '0019_plain_names'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='job',
            index=models.Index(
                condition=models.Q(('status__in', ('pending', 'processing')), ('type', 'bulk_action')),
                fields=['tenant', 'created_at'],
                name='identity_job_bulk_at_work',
            ),
        ),
    ]
