from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("identity", "0014_audit_log")]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="setup_dismissed_at",
            field=models.DateTimeField(blank=True, editable=False, help_text="When its first steps were put away.", null=True),
        ),
    ]
