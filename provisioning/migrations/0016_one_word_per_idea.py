"""Rename fields in the code. No table and no column changes."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('provisioning', '0015_lookups_of_lanes'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveIndex(model_name='deadletter', name='provisioning_dead_by_redrive'),
                migrations.RenameField(model_name='deadletter', old_name='redrive', new_name='redelivery_job'),
                migrations.AlterField(
                    model_name='deadletter',
                    name='redelivery_job',
                    field=models.CharField(blank=True, db_column='redrive', db_default='', help_text='The redelivery job that last put it back into its lane.', max_length=32),
                ),
                migrations.AddIndex(
                    model_name='deadletter',
                    index=models.Index(condition=models.Q(('redelivery_job', ''), _negated=True), fields=['redelivery_job', 'state'], name='provisioning_dead_by_redrive'),
                ),
                migrations.AlterField(
                    model_name='trial',
                    name='kind',
                    field=models.CharField(choices=[('connection', 'Connection test'), ('canary', 'Connection test with a write check'), ('dry_run', 'Dry run for one user'), ('user_run', 'Run for one user'), ('event', 'Run for a test event')], max_length=16),
                ),
                migrations.AlterModelOptions(name='synchronizationrow', options={'ordering': ('job', 'pk'), 'verbose_name': 'synchronized user'}),
            ],
        ),
    ]
