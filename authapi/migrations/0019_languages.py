from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("authapi", "0016_foreign_providers"),
    ]

    operations = [
        migrations.AddField(
            model_name="logintransaction",
            name="language",
            field=models.CharField(blank=True, db_default="", default="", help_text="Of its pages and mails.", max_length=12),
        ),
        migrations.AddField(
            model_name="accountticket",
            name="language",
            field=models.CharField(blank=True, db_default="", default="", help_text="Of the mail and of the page of the link.", max_length=12),
        ),
    ]
