"""Create the audit log and the triggers that keep it append-only, and copy the entries of Django's own admin log into it."""

import django.utils.timezone
from django.db import migrations, models

# Only the retention can delete entries. Its transaction sets a time, and the trigger permits the deletion of entries that are older than
# this time and older than thirty days. The error code is that of a missing privilege, because no account has it.
_GUARD = """
CREATE FUNCTION identity_audit_guard() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
    named text := coalesce(current_setting('identity.audit_prune_before', true), '');
BEGIN
    IF TG_OP = 'DELETE' AND named <> '' THEN
        IF OLD.at < named::timestamptz AND OLD.at < now() - interval '30 days' THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'insufficient_privilege';
END
$body$;
CREATE TRIGGER identity_audit_rows BEFORE UPDATE OR DELETE ON identity_auditentry FOR EACH ROW EXECUTE FUNCTION identity_audit_guard();
CREATE TRIGGER identity_audit_truncate BEFORE TRUNCATE ON identity_auditentry FOR EACH STATEMENT EXECUTE FUNCTION identity_audit_guard();
"""
_UNGUARD = """
DROP TRIGGER identity_audit_rows ON identity_auditentry;
DROP TRIGGER identity_audit_truncate ON identity_auditentry;
DROP FUNCTION identity_audit_guard();
"""
_COPY = """
INSERT INTO identity_auditentry (
    tenant_id, at, act_id, kind, act, object_type, object_id, object_text, actor_kind, actor_id, actor_name, user_agent, reason, facts
)
SELECT staff.tenant_id, noted.action_time, gen_random_uuid(), CASE noted.action_flag WHEN 1 THEN 'add' WHEN 3 THEN 'delete' ELSE 'change' END,
    '', coalesce(kind.app_label || '.' || kind.model, ''), left(coalesce(noted.object_id, ''), 400), noted.object_repr,
    'staff', staff.id::text, staff.email, '', '', jsonb_build_object('note', noted.change_message)
FROM django_admin_log noted
JOIN identity_staff staff ON staff.id = noted.user_id
LEFT JOIN django_content_type kind ON kind.id = noted.content_type_id
ORDER BY noted.id
"""


class Migration(migrations.Migration):
    dependencies = [
        ("identity", "0013_sign_in_mails_and_former_passwords"),
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]
    operations = [
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("tenant_id", models.CharField(editable=False, max_length=63, null=True)),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                ("act_id", models.UUIDField()),
                (
                    "kind",
                    models.CharField(
                        choices=[("add", "Added"), ("change", "Changed"), ("delete", "Deleted"), ("act", "Done")], max_length=8
                    ),
                ),
                ("act", models.CharField(blank=True, help_text="The button, page or command.", max_length=200)),
                ("object_type", models.CharField(blank=True, max_length=100)),
                ("object_id", models.CharField(blank=True, max_length=400)),
                ("object_text", models.CharField(blank=True, max_length=200)),
                ("actor_kind", models.CharField(max_length=16)),
                ("actor_id", models.CharField(blank=True, max_length=128)),
                ("actor_name", models.CharField(max_length=254)),
                ("ip", models.GenericIPAddressField(null=True)),
                ("user_agent", models.CharField(blank=True, max_length=300)),
                ("reason", models.TextField(blank=True)),
                ("before", models.JSONField(null=True)),
                ("after", models.JSONField(null=True)),
                ("facts", models.JSONField(default=dict)),
            ],
            options={
                "verbose_name": "audit entry",
                "verbose_name_plural": "audit log",
                "indexes": [
                    models.Index(fields=["tenant_id", "at", "id"], name="identity_audit_by_tenant"),
                    models.Index(fields=["at", "id"], name="identity_audit_by_time"),
                    models.Index(fields=["actor_name", "at", "id"], name="identity_audit_by_actor"),
                    models.Index(fields=["object_id", "at", "id"], name="identity_audit_by_object"),
                    models.Index(fields=["act_id"], name="identity_audit_by_act"),
                ],
            },
        ),
        migrations.RunSQL(_COPY, migrations.RunSQL.noop),
        migrations.RunSQL(_GUARD, _UNGUARD),
    ]
