"""Factors of end users: their names and ids, keys of WebAuthn, recovery codes, and enrolments that are not confirmed."""

import django.db.models.functions.comparison
import django.db.models.functions.math
import django.db.models.functions.text
import foundation.ids
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('identity', '0027_tickets_with_a_way_back'),
    ]

    operations = [
        migrations.AddField(
            model_name='enrolledfactor',
            name='aaguid',
            field=models.CharField(blank=True, db_default='', default='', editable=False, max_length=36),
        ),
        migrations.AddField(
            model_name='enrolledfactor',
            name='code_digest',
            field=models.CharField(blank=True, db_default='', default='', editable=False, max_length=160),
        ),
        migrations.AddField(
            model_name='enrolledfactor',
            name='credential_id',
            field=models.CharField(blank=True, editable=False, max_length=1400, null=True),
        ),
        migrations.AddField(
            model_name='enrolledfactor',
            name='device',
            field=models.CharField(db_default=django.db.models.functions.text.Concat(models.Value('dev_'), django.db.models.functions.text.MD5(django.db.models.functions.comparison.Cast(django.db.models.functions.math.Random(), models.TextField()))), default=foundation.ids.new_factor_id, editable=False, help_text='The id on the wire, without its kind.', max_length=40),
        ),
        migrations.AddField(
            model_name='enrolledfactor',
            name='is_backed_up',
            field=models.BooleanField(db_default=False, default=False, editable=False, help_text='Whether the passkey is synchronized.'),
        ),
        migrations.AddField(
            model_name='enrolledfactor',
            name='is_confirmed',
            field=models.BooleanField(db_default=True, default=True),
        ),
        migrations.AddField(
            model_name='enrolledfactor',
            name='last_step',
            field=models.BigIntegerField(db_default=0, default=0, editable=False),
        ),
        migrations.AddField(
            model_name='enrolledfactor',
            name='last_used_at',
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name='enrolledfactor',
            name='name',
            field=models.CharField(blank=True, db_default='', default='', max_length=60),
        ),
        migrations.AddField(
            model_name='enrolledfactor',
            name='public_key',
            field=models.BinaryField(null=True),
        ),
        migrations.AddField(
            model_name='enrolledfactor',
            name='relying_party',
            field=models.CharField(blank=True, db_default='', default='', editable=False, max_length=253),
        ),
        migrations.AddField(
            model_name='enrolledfactor',
            name='sign_count',
            field=models.BigIntegerField(db_default=0, default=0, editable=False),
        ),
        migrations.AddField(
            model_name='enrolledfactor',
            name='transports',
            field=models.JSONField(db_default=[], default=list, editable=False),
        ),
        migrations.AlterField(
            model_name='enrolledfactor',
            name='kind',
            field=models.CharField(choices=[('phone', 'Text message'), ('email', 'Email'), ('totp', 'Authenticator app'), ('webauthn-roaming', 'Security key'), ('webauthn-platform', 'This device'), ('passkey', 'Passkey'), ('recovery-code', 'Recovery code')], max_length=24),
        ),
        migrations.AddIndex(
            model_name='enrolledfactor',
            index=models.Index(condition=models.Q(('is_confirmed', False)), fields=['created_at'], name='identity_enrolledfactor_open'),
        ),
        migrations.AddConstraint(
            model_name='enrolledfactor',
            constraint=models.UniqueConstraint(fields=('tenant', 'device'), name='identity_enrolledfactor_device'),
        ),
        migrations.AddConstraint(
            model_name='enrolledfactor',
            constraint=models.UniqueConstraint(fields=('tenant', 'credential_id'), name='identity_enrolledfactor_credential'),
        ),
        migrations.AddConstraint(
            model_name='enrolledfactor',
            constraint=models.UniqueConstraint(condition=models.Q(('kind', 'recovery-code')), fields=('user',), name='identity_enrolledfactor_recovery'),
        ),
    ]
