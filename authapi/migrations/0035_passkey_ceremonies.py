"""Ceremonies of passkeys whose user is not known yet."""

import django.db.models.deletion
import django.db.models.manager
from django.conf import settings
from django.db import migrations, models


def _same_tenant(column: str, target: str) -> migrations.RunSQL:
    name = f"authapi_passkeyceremony_{column}_same_tenant"
    return migrations.RunSQL(
        f"ALTER TABLE authapi_passkeyceremony ADD CONSTRAINT {name} FOREIGN KEY (tenant_id, {column})"
        f" REFERENCES {target} (tenant_id, id) DEFERRABLE INITIALLY DEFERRED",
        f"ALTER TABLE authapi_passkeyceremony DROP CONSTRAINT {name}",
    )


class Migration(migrations.Migration):

    dependencies = [
        ('authapi', '0034_mfa_tokens'),
        ('identity', '0028_factors_of_users'),
    ]

    operations = [
        migrations.CreateModel(
            name='PasskeyCeremony',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(editable=False, max_length=64)),
                ('bound_to', models.CharField(blank=True, editable=False, max_length=80)),
                ('relying_party', models.CharField(help_text='The domain that the passkey is for.', max_length=253)),
                ('is_registration', models.BooleanField(default=False, help_text='Whether the answer makes an account.')),
                ('sealed', models.TextField(editable=False, help_text='The challenge, and the profile of a sign-up, encrypted.')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(blank=True, null=True)),
                ('client', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.OAUTH2_PROVIDER_APPLICATION_MODEL)),
                ('connection', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='identity.connection')),
                ('organization', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='identity.organization')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='identity.tenant')),
            ],
            options={
                'ordering': ('id',),
                'abstract': False,
                'base_manager_name': 'all_tenants',
                'default_manager_name': 'all_tenants',
                'indexes': [models.Index(fields=['tenant', 'bound_to', '-id'], name='authapi_passkeyceremony_bound'), models.Index(fields=['expires_at'], name='authapi_passkeyceremony_over')],
                'constraints': [models.UniqueConstraint(fields=('digest', 'tenant'), name='authapi_passkeyceremony_unique')],
            },
            managers=[
                ('all_tenants', django.db.models.manager.Manager()),
            ],
        ),
        _same_tenant("client_id", "authapi_client"),
        _same_tenant("connection_id", "identity_connection"),
        _same_tenant("organization_id", "identity_organization"),
    ]
