"""Prevent lookups of lanes by id from using the index of due lanes."""

from django.db import migrations, models
from django.db.models import F


class Migration(migrations.Migration):

    dependencies = [
        ('provisioning', '0014_breaker_by_status'),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='lane',
            name='provisioning_lane_by_due',
        ),
        migrations.AddIndex(
            model_name='lane',
            index=models.Index(F('stream_id'), F('not_before'), F('id') + 0, name='provisioning_lane_by_due'),
        ),
    ]
