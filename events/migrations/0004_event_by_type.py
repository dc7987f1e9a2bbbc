from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Built beside a running service: changes of users go on meanwhile.
    atomic = False

    dependencies = [
        ('events', '0003_tally'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='event',
            index=models.Index(fields=['tenant_id', 'type', 'id'], name='events_event_by_type'),
        ),
    ]
