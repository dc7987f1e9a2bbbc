"""The client of the account page, and the country of a session."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("authapi", "0030_attack_protection")]

    operations = [
        migrations.AddField(
            model_name="client",
            name="is_account_page",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="The account page of the tenant: made by the service and hidden.",
            ),
        ),
        migrations.AddConstraint(
            model_name="client",
            constraint=models.UniqueConstraint(
                condition=models.Q(("is_account_page", True)), fields=("tenant",), name="authapi_client_account_page_unique"
            ),
        ),
        migrations.AddField(
            model_name="session",
            name="last_country",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Where the edge saw the browser at the last login, ISO 3166-1.",
                max_length=2,
            ),
        ),
    ]
