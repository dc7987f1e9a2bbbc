"""Logins of applications that wait for a second factor."""

import django.db.models.deletion
import django.db.models.manager
from django.conf import settings
from django.db import migrations, models


def _same_tenant(column: str, target: str) -> migrations.RunSQL:
    name = f"authapi_factortransaction_{column}_same_tenant"
    return migrations.RunSQL(
        f"ALTER TABLE authapi_factortransaction ADD CONSTRAINT {name} FOREIGN KEY (tenant_id, {column})"
        f" REFERENCES {target} (tenant_id, id) DEFERRABLE INITIALLY DEFERRED",
        f"ALTER TABLE authapi_factortransaction DROP CONSTRAINT {name}",
    )


class Migration(migrations.Migration):

    dependencies = [
        ('authapi', '0031_account_page'),
        ('identity', '0028_factors_of_users'),
    ]

    operations = [
        migrations.CreateModel(
            name='FactorTransaction',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(editable=False, max_length=64)),
                ('methods', models.JSONField(default=list, help_text='How the user has proven who they are so far.')),
                ('grant', models.CharField(help_text='What tokens say of the grant.', max_length=64)),
                ('audience', models.CharField(blank=True, max_length=600)),
                ('scope', models.TextField(blank=True, null=True)),
                ('key', models.CharField(blank=True, editable=False, help_text='Thumbprint of the key of the first request (RFC 9449).', max_length=64)),
                ('may_enroll', models.BooleanField(help_text='Whether the user had no factor when it began.')),
                ('ip', models.CharField(blank=True, max_length=64)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(blank=True, null=True)),
                ('client', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.OAUTH2_PROVIDER_APPLICATION_MODEL)),
                ('connection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='identity.connection')),
                ('organization', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='identity.organization')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='identity.tenant')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='identity.user')),
            ],
            options={
                'ordering': ('id',),
                'abstract': False,
                'base_manager_name': 'all_tenants',
                'default_manager_name': 'all_tenants',
                'indexes': [models.Index(fields=['expires_at'], name='authapi_factortransaction_over')],
                'constraints': [models.UniqueConstraint(fields=('digest', 'tenant'), name='authapi_factortransaction_unique')],
            },
            managers=[
                ('all_tenants', django.db.models.manager.Manager()),
            ],
        ),
        _same_tenant("client_id", "authapi_client"),
        _same_tenant("user_id", "identity_user"),
        _same_tenant("connection_id", "identity_connection"),
        _same_tenant("organization_id", "identity_organization"),
    ]
