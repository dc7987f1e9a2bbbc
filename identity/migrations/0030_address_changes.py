"""Links that give a user another e-mail address."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("identity", "0029_attack_protection")]

    operations = [
        migrations.AddField(
            model_name="emailticket",
            name="former_email",
            field=models.EmailField(
                blank=True,
                help_text="The address that this one takes the place of; null where none changes.",
                max_length=254,
                null=True,
            ),
        ),
    ]
