"""Device grants (RFC 8628) store what authorization codes store, such as the API, and the IP addresses of the device and the browser."""

import uuid

import django.db.models.deletion
from django.db import migrations, models

_TABLE = "authapi_devicegrant"
_RELATIONS = (("user_id", "identity_user"), ("application_id", "authapi_client"))


def _add(column: str, target: str) -> str:
    return (
        f"ALTER TABLE {_TABLE} ADD CONSTRAINT {_TABLE}_{column}_same_tenant FOREIGN KEY (tenant_id, {column})"
        f" REFERENCES {target} (tenant_id, id) DEFERRABLE INITIALLY DEFERRED"
    )


def _drop(column: str) -> str:
    return f"ALTER TABLE {_TABLE} DROP CONSTRAINT {_TABLE}_{column}_same_tenant"


def _added(name: str, field: models.Field, *, keeps_default: bool = True) -> migrations.AddField:
    return migrations.AddField(model_name="devicegrant", name=name, field=field, preserve_default=keeps_default)


class Migration(migrations.Migration):
    dependencies = [("authapi", "0023_asked_beside_scopes")]

    operations = [
        # No earlier version has written rows to this table.
        migrations.RunSQL(f"TRUNCATE TABLE {_TABLE}", migrations.RunSQL.noop),
        _added(
            "application",
            models.ForeignKey(default=None, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="authapi.client"),
            keeps_default=False,
        ),
        _added("audience", models.CharField(blank=True, help_text="Empty: an opaque token for the profile.", max_length=600)),
        _added(
            "session",
            models.ForeignKey(
                blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="authapi.session"
            ),
        ),
        _added(
            "organization",
            models.ForeignKey(
                blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="identity.organization"
            ),
        ),
        _added("lineage", models.UUIDField(default=uuid.uuid4, editable=False)),
        _added("auth_time", models.DateTimeField(blank=True, null=True)),
        _added("methods", models.JSONField(blank=True, default=list, help_text="How the user proved who they are.")),
        _added(
            "asked",
            models.JSONField(
                blank=True,
                editable=False,
                help_text="What was asked for beside scopes, and granted; null for logins that ask for nothing more.",
                null=True,
            ),
        ),
        _added("confirmation", models.JSONField(blank=True, help_text="`cnf`: what the tokens are bound to.", null=True)),
        _added("issued_jti", models.CharField(blank=True, help_text="The access token that was issued with it.", max_length=64)),
        _added("issued_until", models.DateTimeField(blank=True, null=True)),
        _added("created", models.DateTimeField(auto_now_add=True)),
        _added("used_at", models.DateTimeField(blank=True, help_text="When the device got its tokens.", null=True)),
        _added("initial_ip", models.GenericIPAddressField(blank=True, null=True)),
        _added(
            "initial_country", models.CharField(blank=True, help_text="Where the edge saw the device, ISO 3166-1.", max_length=2)
        ),
        _added("initial_user_agent", models.CharField(blank=True, max_length=500)),
        _added(
            "approved_ip",
            models.GenericIPAddressField(blank=True, help_text="The browser in which the user answered.", null=True),
        ),
        migrations.AlterField(model_name="devicegrant", name="last_checked", field=models.DateTimeField(blank=True, null=True)),
        migrations.AddConstraint(
            model_name="devicegrant",
            constraint=models.UniqueConstraint(fields=("user_code", "tenant"), name="authapi_devicegrant_user_code_unique"),
        ),
        migrations.AddIndex(model_name="devicegrant", index=models.Index(fields=["lineage"], name="authapi_devicegrant_lineage")),
        migrations.AddIndex(model_name="devicegrant", index=models.Index(fields=["expires"], name="authapi_devicegrant_expired")),
        *(migrations.RunSQL(_add(column, target), _drop(column)) for column, target in _RELATIONS),
    ]
