"""Moves of tenants: their states, their rows, the lasting key of a user, and audit entries that the removal of an import may delete."""

from django.db import migrations, models

_FUNCTION = """
CREATE OR REPLACE FUNCTION identity_audit_guard() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
    named text := coalesce(current_setting('identity.audit_prune_before', true), '');
BEGIN
    IF TG_OP = 'DELETE' AND named <> '' THEN
        IF OLD.at < named::timestamptz AND OLD.at < now() - interval '30 days' THEN
            RETURN OLD;
        END IF;
    END IF;
    IF TG_OP = 'UPDATE' AND coalesce(current_setting('identity.audit_redaction', true), '') = 'connection options' THEN
        IF OLD.object_type = 'identity.connection'
           AND to_jsonb(OLD) - 'before' - 'after' = to_jsonb(NEW) - 'before' - 'after'
           AND OLD.before - 'options' IS NOT DISTINCT FROM NEW.before - 'options'
           AND OLD.after - 'options' IS NOT DISTINCT FROM NEW.after - 'options'
           AND (OLD.before ? 'options') IS NOT DISTINCT FROM (NEW.before ? 'options')
           AND (OLD.after ? 'options') IS NOT DISTINCT FROM (NEW.after ? 'options') THEN
            RETURN NEW;
        END IF;
    END IF;
%s    RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'insufficient_privilege';
END
$body$;
"""
# If the tenant is arriving, its entries are copies. The transaction that removes the import names the tenant and may delete them.
_OF_ARRIVING = """    IF TG_OP = 'DELETE' AND OLD.tenant_id = coalesce(current_setting('identity.audit_removed_import', true), '') THEN
        IF EXISTS (SELECT FROM identity_tenant WHERE id = OLD.tenant_id AND status = 'arriving') THEN
            RETURN OLD;
        END IF;
    END IF;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("identity", "0031_plain_help_texts"),
    ]

    operations = [
        migrations.CreateModel(
            name="TenantMove",
            fields=[
                ("tenant_id", models.CharField(max_length=63, primary_key=True, serialize=False)),
                ("direction", models.CharField(choices=[("out", "Out"), ("in", "In")], max_length=3)),
                ("archive_id", models.UUIDField(help_text="The archive of the import, or the verified archive of the export.", null=True)),
                ("earlier_status", models.CharField(help_text="The status that the tenant gets back.", max_length=16)),
                ("offsets", models.JSONField(default=dict, help_text="By table: what an import adds to the primary keys.")),
                ("parts_done", models.PositiveIntegerField(default=0, help_text="Parts of the archive whose rows are here.")),
                ("is_verified", models.BooleanField(default=False, help_text="Counts and digests of all tables match.")),
                (
                    "receipt_digest",
                    models.CharField(default="", help_text="Digest of the receipt that the other installation prints.", max_length=64),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "ordering": ("tenant_id",),
            },
        ),
        migrations.AddField(
            model_name="user",
            name="first_key",
            field=models.BigIntegerField(
                editable=False,
                help_text="The primary key of the user before its tenant moved here; empty for users created here.",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="tenant",
            name="status",
            field=models.CharField(
                choices=[
                    ("active", "Active"),
                    ("suspended", "Suspended"),
                    ("draining", "Draining"),
                    ("deleting", "Deleting"),
                    ("deleted", "Deleted"),
                    ("stopped", "Stopped"),
                    ("moved", "Moved"),
                    ("arriving", "Arriving"),
                ],
                default="active",
                max_length=16,
            ),
        ),
        migrations.RunSQL(_FUNCTION % _OF_ARRIVING, _FUNCTION % ""),
    ]
