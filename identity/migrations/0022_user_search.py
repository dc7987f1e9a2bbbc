import sys

import django.contrib.postgres.indexes
import django.db.models.functions.text
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

from identity.search.indexes import build_search_indexes


def build(apps, schema_editor):
    """Build the inverted indexes. A server that does not allow their extensions only makes searches slower."""
    for problem in build_search_indexes(schema_editor.connection):
        sys.stderr.write(f"{problem}\n")


class Migration(migrations.Migration):
    # Not atomic: the indexes are built concurrently, so that a running service can write to the table.
    atomic = False

    dependencies = [
        ('identity', '0021_connection_options_sealed'),
    ]

    operations = [
        # The database connections of the service cancel a statement after 30 seconds, but an index of a large table takes longer.
        migrations.RunSQL('SET statement_timeout = 0; SET lock_timeout = 0', migrations.RunSQL.noop),
        AddIndexConcurrently(
            model_name='user',
            index=models.Index(
                models.F('tenant'),
                django.contrib.postgres.indexes.OpClass(
                    django.db.models.functions.text.Reverse(django.db.models.functions.text.Lower('email')), name='text_pattern_ops'
                ),
                name='identity_user_by_email_end',
            ),
        ),
        AddIndexConcurrently(
            model_name='user',
            index=models.Index(
                models.F('tenant'),
                models.OrderBy(models.F('last_login'), descending=True, nulls_last=True),
                models.OrderBy(models.F('id'), descending=True),
                name='identity_user_by_last_login',
            ),
        ),
        AddIndexConcurrently(
            model_name='user',
            index=models.Index(condition=models.Q(('phone_number__gt', '')), fields=['tenant', 'phone_number'], name='identity_user_by_phone'),
        ),
        migrations.RunSQL('RESET statement_timeout; RESET lock_timeout', migrations.RunSQL.noop),
        migrations.RunPython(build, migrations.RunPython.noop),
    ]
