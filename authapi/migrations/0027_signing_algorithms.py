"""More algorithms for id tokens, and the secrets of APIs whose tokens are signed with HS256."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("authapi", "0026_token_exchange_profiles")]

    operations = [
        migrations.AlterField(
            model_name="client",
            name="algorithm",
            field=models.CharField(
                blank=True,
                choices=[("HS256", "HS256"), ("RS256", "RS256"), ("RS512", "RS512"), ("PS256", "PS256")],
                default="",
                help_text="Of id tokens. Empty: RS256.",
                max_length=5,
            ),
        ),
        migrations.AddField(
            model_name="apiresource",
            name="sealed_signing_secret",
            field=models.TextField(blank=True, default="", editable=False, help_text="What HS256 signs its tokens with."),
        ),
    ]
