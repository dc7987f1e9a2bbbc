"""Logins store the name of their protocol and the encrypted request of the client. A new table stores logouts that wait for a browser."""

import django.db.models.deletion
import django.db.models.manager
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("authapi", "0012_administrative_log"),
        ("identity", "0022_user_search"),
    ]

    operations = [
        # The table keeps its name, because the previous version reads and writes it during an upgrade.
        migrations.AlterModelTable(name="authorizationrequest", table="authapi_authorizationrequest"),
        migrations.RenameModel("AuthorizationRequest", "LoginTransaction"),
        migrations.AlterField(
            model_name="logintransaction", name="parameters", field=models.JSONField(default=dict, editable=False),
        ),
        migrations.AddField(
            model_name="logintransaction",
            name="protocol",
            field=models.CharField(db_default="oauth", default="oauth", editable=False, max_length=32),
        ),
        migrations.AddField(
            model_name="logintransaction",
            name="sealed_request",
            field=models.TextField(blank=True, db_default="", default="", editable=False, help_text="What the client asked for, in the words of its protocol, encrypted."),
        ),
        migrations.AddField(
            model_name="sessionclient",
            name="protocol",
            field=models.CharField(db_default="oauth", default="oauth", editable=False, max_length=32),
        ),
        migrations.AddField(
            model_name="sessionclient",
            name="sealed_state",
            field=models.TextField(blank=True, db_default="", default="", editable=False, help_text="What the protocol has to know in order to tell the client, encrypted."),
        ),
        migrations.CreateModel(
            name="LogoutTransaction",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(editable=False, max_length=64)),
                ("sealed_route", models.TextField(editable=False, help_text="Where the browser is, and where it still has to go, encrypted.")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("expires_at", models.DateTimeField()),
                ("tenant", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="identity.tenant")),
            ],
            options={
                "ordering": ("id",),
                "abstract": False,
                "base_manager_name": "all_tenants",
                "default_manager_name": "all_tenants",
                "indexes": [models.Index(fields=["expires_at"], name="authapi_logouttx_expired")],
                "constraints": [models.UniqueConstraint(fields=("digest", "tenant"), name="authapi_logouttransaction_unique")],
            },
            managers=[
                ("all_tenants", django.db.models.manager.Manager()),
            ],
        ),
    ]
