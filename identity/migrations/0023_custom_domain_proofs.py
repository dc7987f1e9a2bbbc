from __future__ import annotations

from typing import Any

import django.core.validators
import foundation.ids
from django.db import migrations, models


def give_tokens(apps: Any, schema_editor: Any) -> None:
    """Draw a token for each domain: the default of the column is the same for all rows, and an empty one proves nothing."""
    domains = apps.get_model("identity", "CustomDomain")
    manager = domains._base_manager
    for domain in manager.only("pk").iterator():
        manager.filter(pk=domain.pk).update(verification_token=foundation.ids.new_domain_token())


class Migration(migrations.Migration):
    dependencies = [
        ("identity", "0022_user_search"),
    ]

    operations = [
        migrations.AddField(
            model_name="customdomain",
            name="certificate_type",
            field=models.CharField(
                choices=[("managed", "Managed"), ("self_managed", "Self Managed")],
                db_default="self_managed",
                default="self_managed",
                max_length=16,
            ),
        ),
        migrations.AddField(
            model_name="customdomain",
            name="client_ip_header",
            field=models.CharField(blank=True, db_default="", default="", max_length=32),
        ),
        migrations.AddField(
            model_name="customdomain",
            name="is_default",
            field=models.BooleanField(db_default=False, default=False, help_text="Links in mails lead to it."),
        ),
        migrations.AddField(
            model_name="customdomain",
            name="metadata",
            field=models.JSONField(blank=True, db_default={}, default=dict),
        ),
        migrations.AddField(
            model_name="customdomain",
            name="verification_problem",
            field=models.CharField(blank=True, db_default="", default="", help_text="Why the last check failed.", max_length=200),
        ),
        migrations.AddField(
            model_name="customdomain",
            name="verification_token",
            field=models.CharField(blank=True, db_default="", default=foundation.ids.new_domain_token, editable=False, max_length=64),
        ),
        migrations.AlterField(
            model_name="customdomain",
            name="host",
            field=models.CharField(
                max_length=253,
                validators=[
                    django.core.validators.RegexValidator(
                        "^(?=.{1,253}$)([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)(\\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$",
                        "A lower-case host name without a port.",
                    )
                ],
            ),
        ),
        migrations.AddConstraint(
            model_name="customdomain",
            constraint=models.UniqueConstraint(
                condition=models.Q(("verified_at__isnull", False)), fields=("host",), name="identity_customdomain_verified_host"
            ),
        ),
        migrations.AddConstraint(
            model_name="customdomain",
            constraint=models.UniqueConstraint(fields=("tenant", "host"), name="identity_customdomain_tenant_host"),
        ),
        migrations.AddConstraint(
            model_name="customdomain",
            constraint=models.UniqueConstraint(
                condition=models.Q(("is_default", True)), fields=("tenant",), name="identity_customdomain_one_default"
            ),
        ),
        migrations.RunPython(give_tokens, migrations.RunPython.noop),
    ]
