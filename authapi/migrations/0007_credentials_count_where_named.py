from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("authapi", "0006_logout_notices")]

    # Only the settings of the client define which credentials are used.
    operations = [migrations.RemoveField(model_name="clientcredential", name="is_active")]
