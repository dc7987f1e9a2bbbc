"""Store where a link that verifies an address redirects the browser after its use."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("identity", "0026_passwordless")]

    operations = [
        migrations.AddField(
            model_name="emailticket",
            name="parameters",
            field=models.JSONField(blank=True, db_default={}, default=dict, help_text="Where the link leads once it was used."),
        ),
    ]
