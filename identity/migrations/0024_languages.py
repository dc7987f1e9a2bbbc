from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("identity", "0023_custom_domain_proofs"),
    ]

    operations = [
        migrations.AddField(
            model_name="emailticket",
            name="language",
            field=models.CharField(blank=True, db_default="", default="", help_text="Of the mail and of the page of the link.", max_length=12),
        ),
    ]
