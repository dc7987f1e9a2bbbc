"""Seal the secrets that older versions stored unsealed in the options of connections, and let the redaction change the audit log.

The secrets were also published: run `manage.py redact_connection_secrets` afterwards, and rotate the secrets that it lists (docs/adr/0075).
"""

import json

from django.conf import settings
from django.db import migrations

from identity.options.schemas import schema_of
from identity.options.schemas.nodes import split
from identity.options.sealed_options import seal_options

_AT_ONCE = 500
# Only the redaction can change an entry: its transaction sets a parameter, and only the values of a connection's options may change.
_GUARD = """
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
    RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'insufficient_privilege';
END
$body$
"""
_GUARD_BEFORE = """
CREATE OR REPLACE FUNCTION identity_audit_guard() RETURNS trigger LANGUAGE plpgsql AS $body$
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
$body$
"""


def seal_old_rows(apps, schema_editor):
    """Split the options of every connection again into readable and sealed options. Values that are already sealed do not change.

    The triggers of the table are disabled meanwhile. Otherwise they would store a copy of each old row with its secrets, and subscribers
    would receive an event of a change that no caller made.
    """
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT 1 FROM identity_connection)")
        if not cursor.fetchone()[0]:
            return
        cursor.execute("ALTER TABLE identity_connection DISABLE TRIGGER USER")
        last = ""
        while rows := _rows_after(cursor, last):
            for row in rows:
                _seal(cursor, *row)
            last = rows[-1][0]
        cursor.execute("ALTER TABLE identity_connection ENABLE TRIGGER USER")


def _rows_after(cursor, last):
    cursor.execute(
        "SELECT id, tenant_id, strategy, options, sealed_options FROM identity_connection WHERE id > %s ORDER BY id LIMIT %s",
        [last, _AT_ONCE],
    )
    return cursor.fetchall()


def _seal(cursor, identifier, tenant_id, strategy, options, sealed):
    # A cursor of Django returns jsonb as text.
    options, sealed = json.loads(options), json.loads(sealed)
    parts = split(schema_of(strategy, is_database=strategy == settings.DATABASE_STRATEGY), options)
    if parts.shown == options:
        return
    # If an option has both a sealed and an unsealed value, the sealed value is newer.
    found = {path: value for path, value in parts.secrets.items() if path not in sealed}
    sealed |= seal_options(found, place=f"{tenant_id}:connection:{identifier}")
    cursor.execute(
        "UPDATE identity_connection SET options = %s, sealed_options = %s WHERE id = %s",
        [json.dumps(parts.shown), json.dumps(sealed), identifier],
    )


class Migration(migrations.Migration):
    dependencies = [("identity", "0020_bulk_actions_at_work")]
    operations = [
        # A reverse migration leaves the values sealed: an older version does not read them, and shows fewer options.
        migrations.RunPython(seal_old_rows, migrations.RunPython.noop),
        migrations.RunSQL(_GUARD, _GUARD_BEFORE),
    ]
