from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("authapi", "0006_logout_notices")]

    # Whether a credential counts is said by its client alone.
    operations = [migrations.RemoveField(model_name="clientcredential", name="is_active")]
