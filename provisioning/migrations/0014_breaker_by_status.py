"""Count consecutive 401 answers and 403 answers separately from the other failures of a stream."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('provisioning', '0013_links_of_the_past'),
    ]

    operations = [
        migrations.AddField(
            model_name='breaker',
            name='forbidden_keys',
            field=models.JSONField(db_default=models.Value([], models.JSONField()), default=list, help_text='Distinct order keys with consecutive 403 answers; counts only while there are failures.'),
        ),
        migrations.AddField(
            model_name='breaker',
            name='unauthorized',
            field=models.PositiveIntegerField(db_default=0, default=0, help_text='Consecutive 401 answers; counts only while there are failures.'),
        ),
    ]
