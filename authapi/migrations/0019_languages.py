import django.db.models.deletion
import django.db.models.manager
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("authapi", "0018_branding"),
        ("identity", "0024_languages"),
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
        migrations.CreateModel(
            name="CustomText",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("prompt", models.CharField(max_length=64)),
                ("language", models.CharField(max_length=12)),
                ("texts", models.JSONField(default=dict)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("tenant", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="identity.tenant")),
            ],
            options={
                "ordering": ("prompt", "language"),
                "abstract": False,
                "base_manager_name": "all_tenants",
                "default_manager_name": "all_tenants",
            },
            managers=[("all_tenants", django.db.models.manager.Manager())],
        ),
        migrations.AddConstraint(
            model_name="customtext",
            constraint=models.UniqueConstraint(fields=("tenant", "prompt", "language"), name="authapi_customtext_unique"),
        ),
    ]
