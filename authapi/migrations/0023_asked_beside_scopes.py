"""Requested values other than scopes: authorization details, single claims, a context of authentication. Few logins have them."""

from django.db import migrations, models

_HELP = "What was asked for beside scopes, and granted; null for logins that ask for nothing more."
_ALLOWED = "Authorization details and single claims that the user has allowed."


def _asked(model: str, help_text: str = _HELP) -> migrations.AddField:
    return migrations.AddField(
        model_name=model, name="asked", field=models.JSONField(blank=True, editable=False, help_text=help_text, null=True)
    )


class Migration(migrations.Migration):
    dependencies = [
        ("authapi", "0022_old_clients"),
    ]

    operations = [
        _asked("authorizationcode"),
        _asked("refreshtoken"),
        _asked("accesstoken"),
        _asked("consent", _ALLOWED),
    ]
